package gpt

import "fmt"

// CheckTokens reports the first token or target that the vocabulary has not (ErrToken).
func (m *Model) CheckTokens(tokens, targets []int32) error {
	for i, t := range tokens {
		if t < 0 || int(t) >= m.cfg.Vocab {
			return fmt.Errorf("%w: token %d at place %d, the vocabulary has %d", ErrToken, t, i, m.cfg.Vocab)
		}
	}
	for i, t := range targets {
		if int(t) >= m.cfg.Vocab {
			return fmt.Errorf("%w: target %d at place %d, the vocabulary has %d", ErrToken, t, i, m.cfg.Vocab)
		}
	}
	return nil
}
