package cpu

//go:generate go run -C asm . -out ../loops_amd64.s -pkg cpu
//go:generate go run -C asm ./neon ../loops_arm64.s
