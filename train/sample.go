package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"zeroshard/prng"
)

// Sampling says how a text is drawn. Given the same logits it always draws the same text.
type Sampling struct {
	Tokens      int     // how many to draw
	Context     int     // how many of the last tokens the model can see: at most its sequence length
	Temperature float64 // logits are divided by it; 0 takes the best
	TopK        int     // only the best so many are drawn from; 0: all
	TopP        float64 // of those, only the best that together have this probability; 0 or 1: all
	Seed        uint64
	Copies      []int           // Generate: how many prompts with the same tokens came before each; nil: what the call itself shows
	End         *int32          // the token that ends a text, and is no part of it; nil: none does
	Stop        <-chan struct{} // closed: draw no more
}

// Sample continues prompt (at least one token) and returns what it drew. Where the text has become longer than Context, the model sees
// its end. Errors: those of w, and *LogitsError.
func Sample(ctx context.Context, w World, prompt []int32, s Sampling) ([]int32, error) {
	t := begin(prompt, s, prng.New(s.Seed).Named("sample"))
	for !t.done && !stopped(s.Stop) {
		logits, err := w.Logits(ctx, t.seen())
		if err != nil {
			return t.drawn(), fmt.Errorf("train: sample: %w", err)
		}
		if _, _, err := t.draw(logits, s); err != nil {
			return t.drawn(), fmt.Errorf("train: sample: %w", err)
		}
	}
	return t.drawn(), nil
}

// Scorer scores what follows texts, side by side. *zeroshard.Cluster is one.
type Scorer interface {
	// Scores returns for each text the scores of the token after it, nil for an empty one.
	Scores(ctx context.Context, texts [][]int32) ([][]float32, error)
}

// Drawn is a token of a text that is being generated.
type Drawn struct {
	Prompt int // index of the text's prompt
	Token  int32
	Last   bool // no more will follow
	Ended  bool // the text has come to its end, of which Token is the sign and not a part
}

// Copies counts for each prompt the ones before it that have the same tokens.
func Copies(prompts [][]int32) []int {
	copies, had := make([]int, len(prompts)), map[string]int{}
	var raw []byte
	for i, p := range prompts {
		raw = raw[:0]
		for _, id := range p {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(id))
		}
		copies[i] = had[string(raw)]
		had[string(raw)]++
	}
	return copies
}

// promptKey is a function of the prompt's tokens, and of how many like it came before.
func promptKey(seed uint64, prompt []int32, before int) prng.Key {
	key := prng.New(seed).Named("generate").Sub(uint64(len(prompt)))
	for _, id := range prompt {
		key = key.Sub(uint64(uint32(id)))
	}
	return key.Sub(uint64(before))
}

// Generate continues prompts (each at least one token) side by side and calls emit for each token drawn; a text's tokens come in order. What
// is drawn for a prompt is a function of the seed, its tokens and how often the same stood before it: not of other prompts. An error of
// emit ends it. Errors: those of w and of emit, and *LogitsError.
func Generate(ctx context.Context, w Scorer, prompts [][]int32, s Sampling, emit func(Drawn) error) error {
	if s.Copies == nil {
		s.Copies = Copies(prompts)
	}
	if len(s.Copies) != len(prompts) {
		return fmt.Errorf("train: generate: %d counts of copies for %d prompts", len(s.Copies), len(prompts))
	}
	texts, seen := make([]*text, len(prompts)), make([][]int32, len(prompts))
	for i, p := range prompts {
		texts[i] = begin(p, s, promptKey(s.Seed, p, s.Copies[i]))
	}
	for !stopped(s.Stop) {
		left := false
		for i, t := range texts {
			if seen[i] = nil; !t.done {
				seen[i], left = t.seen(), true
			}
		}
		if !left {
			break
		}
		rows, err := w.Scores(ctx, seen)
		if err != nil {
			return fmt.Errorf("train: generate: %w", err)
		}
		for i, t := range texts {
			if t.done {
				continue
			}
			id, ended, err := t.draw(rows[i], s)
			if err != nil {
				return fmt.Errorf("train: generate: %w", &LogitsError{i, err.Token})
			}
			if err := emit(Drawn{Prompt: i, Token: id, Last: t.done, Ended: ended}); err != nil {
				return err
			}
		}
	}
	return nil
}

// text is one that is being drawn.
type text struct {
	tokens        []int32
	prompt, start int // tokens of the prompt; the first token that the model sees
	most, context int
	key           prng.Key // token i is drawn by its i-th number
	done          bool
}

func begin(prompt []int32, s Sampling, key prng.Key) *text {
	return &text{tokens: slices.Clone(prompt), prompt: len(prompt), start: max(0, len(prompt)-s.Context), most: s.Tokens, context: s.Context, key: key, done: s.Tokens <= 0}
}

func (t *text) drawn() []int32 { return t.tokens[t.prompt:] }

// seen is what the model sees. When that is full the older half goes, and not a token each time: all that a model remembers of a text changes
// with its first token, so that a window that slides would cost as much as computing the whole text for each token.
func (t *text) seen() []int32 {
	for len(t.tokens)-t.start > t.context {
		t.start += max(1, t.context/2)
	}
	return t.tokens[t.start:]
}

// draw adds one token, but not the one that ends the text.
func (t *text) draw(logits []float32, s Sampling) (id int32, ended bool, err *LogitsError) {
	for _, v := range logits {
		if v-v != 0 { // NaN, +Inf, -Inf
			return 0, false, &LogitsError{Token: len(t.tokens)}
		}
	}
	n := len(t.tokens) - t.prompt
	id = pick(logits, s, float64(t.key.Uniform(uint64(n))))
	if ended = s.End != nil && id == *s.End; !ended {
		t.tokens = append(t.tokens, id)
	}
	t.done = ended || n+1 >= t.most
	return id, ended, nil
}
