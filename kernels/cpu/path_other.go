//go:build !amd64 && !arm64

package cpu

func paths() []*path { return []*path{portable()} }
