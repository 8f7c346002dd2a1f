package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
)

// whole is tokenizer.json, as far as it matters: newer writers put all into this one file.
type whole struct {
	Model struct {
		Type    string            `json:"type"`
		Vocab   map[string]int64  `json:"vocab"`
		Merges  []json.RawMessage `json:"merges"` // "left right", or ["left", "right"]
		Prefix  string            `json:"continuing_subword_prefix"`
		Suffix  string            `json:"end_of_word_suffix"`
		Dropout *float64          `json:"dropout"`
		Whole   bool              `json:"ignore_merges"`
		Bytes   bool              `json:"byte_fallback"`
	} `json:"model"`
	Normalizer *struct {
		Type string `json:"type"`
	} `json:"normalizer"`
	Pieces *struct {
		Type     string `json:"type"`
		Prefix   bool   `json:"add_prefix_space"`
		UseRegex *bool  `json:"use_regex"`
	} `json:"pre_tokenizer"`
	Added []struct {
		ID      int64  `json:"id"`
		Content string `json:"content"`
	} `json:"added_tokens"`
}

// loadWhole takes tokenizer.json.
func (f *folder) loadWhole() error {
	path := f.path(wholeFile)
	var w whole
	if err := json.Unmarshal(f.files[wholeFile], &w); err != nil {
		return badFile(path, "%v", err.Error())
	}
	if why := w.differs(); why != "" {
		return badFile(path, "%s: only GPT-2's way of encoding is known", why)
	}
	for i, raw := range w.Model.Merges {
		where := fmt.Sprintf("%s: merge %d", path, i)
		var text string
		var two []string
		switch {
		case json.Unmarshal(raw, &text) == nil:
		case json.Unmarshal(raw, &two) == nil && len(two) == 2:
			text = strings.Join(two, " ")
		default:
			return badFile(where, "%s: want two tokens", raw)
		}
		if err := f.pair(where, text); err != nil {
			return err
		}
	}
	for _, a := range w.Added {
		if err := f.add(wholeFile, a.Content, a.ID); err != nil {
			return err
		}
		f.special[int32(a.ID)] = true
	}
	return f.addAll(wholeFile, w.Model.Vocab)
}

// differs says what would give other ids than GPT-2's way of encoding, "" if nothing.
func (w *whole) differs() string {
	m, p := &w.Model, w.Pieces
	switch {
	case m.Type != "BPE":
		return fmt.Sprintf("model type %q", m.Type)
	case m.Prefix != "" || m.Suffix != "":
		return "a prefix or suffix of words"
	case m.Dropout != nil && *m.Dropout != 0:
		return "dropout"
	case m.Whole:
		return "ignore_merges"
	case m.Bytes:
		return "byte_fallback"
	case w.Normalizer != nil:
		return fmt.Sprintf("a normalizer (%s)", w.Normalizer.Type)
	case p == nil || p.Type != "ByteLevel":
		return "a pre_tokenizer that is not ByteLevel alone"
	case p.Prefix:
		return "add_prefix_space"
	case p.UseRegex != nil && !*p.UseRegex:
		return "use_regex false"
	}
	return ""
}
