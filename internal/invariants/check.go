package invariants

import "fmt"

// Check panics with the formatted text if checks are enabled and cond is false. Arguments are evaluated in every build: where
// they cost something, write "if invariants.Enabled" around the call.
func Check(cond bool, format string, args ...any) {
	if Enabled && !cond {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
