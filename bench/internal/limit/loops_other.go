//go:build !amd64

package limit

// Name says which loops run.
func Name() string { return portableName }

// FMA does turns turns of Flops operations each.
func FMA(turns int) { portableFMA(turns) }

// Add is dst += src, of equal lengths.
func Add(dst, src []float32) { portableAdd(dst, src) }

// Read returns the sum of src, in an order of its own.
func Read(src []float32) float32 { return portableRead(src) }

// Copiers are the ways to copy that this machine has.
func Copiers() []Copier { return []Copier{{"memmove", func(dst, src []byte) { copy(dst, src) }}} }
