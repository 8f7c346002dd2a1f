package lint

// Allowance lets a finding pass: a rule, a file and a symbol, and the reason.
type Allowance struct{ Rule, Path, Symbol, Reason string }

// Allowed is the list of what passes.
var Allowed = []Allowance{
	{"fields", "config.go", "Config", "settings, one field each; its methods only judge and translate them"},
	{"fields", "zero/options.go", "Options", "settings, one field each; its methods only judge and complete them"},
	{"panic", "device/buffer.go", "Buffer.Slice", "documented, like slicing a Go slice past its end; a buffer of garbage bounds would corrupt memory"},
	{"panic", "device/buffer.go", "view", "documented, like a failed type assertion"},
	{"panic", "device/cpu/pool.go", "Pool.Run", "raises a task's panic again on the caller's goroutine, whose stream turns it into an error"},
}
