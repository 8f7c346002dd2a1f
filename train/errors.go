package train

import (
	"errors"
	"fmt"

	"zeroshard/zero"
)

// Errors of this package. All texts start with "train: ".
var (
	// ErrDiverged is the end of a run whose steps are skipped one after another.
	ErrDiverged = errors.New("train: diverged")
	// ErrExists is a run folder that holds a run already.
	ErrExists = errors.New("train: the run folder is in use")
	// ErrLogits is what every [LogitsError] wraps: no token can be drawn.
	ErrLogits = errors.New("train: logits that are not finite")
)

// LogitsError says which token of a text has logits among which is NaN or an infinity.
type LogitsError struct {
	Prompt int // index of the text's prompt in the call
	Token  int // counted from 0, with the prompt's
}

func (e *LogitsError) Error() string {
	return fmt.Sprintf("the logits of token %d are not finite", e.Token)
}

// Unwrap makes errors.Is(err, ErrLogits) true.
func (e *LogitsError) Unwrap() error { return ErrLogits }

// DivergedError says where the last of the skipped steps went wrong.
type DivergedError struct {
	Step, Skips int
	Last        *zero.Skip
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("train: diverged: %d steps in a row skipped, the last is step %d: %s; lower the learning rate or lengthen the warm-up",
		e.Skips, e.Step, skipText(e.Last))
}

// Unwrap makes errors.Is(err, ErrDiverged) true.
func (e *DivergedError) Unwrap() error { return ErrDiverged }

// skipText says why a step was skipped, and where.
func skipText(s *zero.Skip) string {
	switch {
	case s.Rank < 0:
		return s.What
	case s.Param == "":
		return fmt.Sprintf("%s (rank %d, plan line %s)", s.What, s.Rank, s.Line)
	}
	return fmt.Sprintf("%s (rank %d, parameter %s, plan line %s)", s.What, s.Rank, s.Param, s.Line)
}
