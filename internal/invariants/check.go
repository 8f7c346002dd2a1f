package invariants

import "fmt"

// Check panics with the formatted text if checks are enabled and cond is false. Arguments are evaluated in every build: where
// they cost something, write "if invariants.Enabled" around the call.
func Check(cond bool, format string, args ...any) {
	if Enabled && !cond {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}

// Broken panics in every build. It is for calls that break a documented contract where there is no error to return and going on
// would corrupt memory or results: the branch of a switch that cannot be reached, a slice past its end.
func Broken(format string, args ...any) {
	panic("invariant broken: " + fmt.Sprintf(format, args...))
}
