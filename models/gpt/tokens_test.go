package gpt_test

import (
	"errors"
	"testing"

	"zeroshard/models/gpt"
)

func TestCheckTokens(t *testing.T) {
	cfg, err := gpt.Preset("micro")
	if err != nil {
		t.Fatal(err)
	}
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	v := int32(cfg.Vocab)
	for _, c := range []struct {
		name            string
		tokens, targets []int32
		ok              bool
	}{
		{"all in range", []int32{0, v - 1}, []int32{v - 1, 0}, true},
		{"targets that do not count", []int32{0}, []int32{-1}, true},
		{"a token past the end", []int32{0, v}, nil, false},
		{"a negative token", []int32{-1}, nil, false},
		{"a target past the end", []int32{0}, []int32{v}, false},
		{"nothing", nil, nil, true},
	} {
		if err := m.CheckTokens(c.tokens, c.targets); (err == nil) != c.ok || err != nil && !errors.Is(err, gpt.ErrToken) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
