package gpt

import (
	"fmt"
	"slices"
	"strings"
)

var presets = [...]struct {
	name string
	Config
}{
	// For tests, for a first run, for a CPU.
	{"micro", Config{Layers: 2, Heads: 2, Width: 24, Vocab: 97, Positions: 16, Bias: true}},
	{"tiny", Config{Layers: 4, Heads: 4, Width: 128, Vocab: 256, Positions: 128, Bias: true}},
	{"small", Config{Layers: 6, Heads: 6, Width: 384, Vocab: 50304, Positions: 256, Bias: true}},
	// Hugging Face's.
	{"gpt2", Config{Layers: 12, Heads: 12, Width: 768, Vocab: 50257, Positions: 1024, Bias: true}},
	{"gpt2-medium", Config{Layers: 24, Heads: 16, Width: 1024, Vocab: 50257, Positions: 1024, Bias: true}},
	{"gpt2-large", Config{Layers: 36, Heads: 20, Width: 1280, Vocab: 50257, Positions: 1024, Bias: true}},
	{"gpt2-xl", Config{Layers: 48, Heads: 25, Width: 1600, Vocab: 50257, Positions: 1024, Bias: true}},
	// For planning: sizes of the ZeRO paper (arXiv 1910.02054) and of GPT-3.
	{"7.5b", Config{Layers: 36, Heads: 32, Width: 4096, Vocab: 50257, Positions: 2048, Bias: true}},
	{"13b", Config{Layers: 40, Heads: 40, Width: 5120, Vocab: 50257, Positions: 2048, Bias: true}},
	{"128b", Config{Layers: 70, Heads: 96, Width: 12288, Vocab: 50257, Positions: 2048, Bias: true}},
	{"175b", Config{Layers: 96, Heads: 96, Width: 12288, Vocab: 50257, Positions: 2048, Bias: true}},
	{"1t", Config{Layers: 128, Heads: 160, Width: 25600, Vocab: 50257, Positions: 2048, Bias: true}},
}

// Presets lists the names that Preset knows, small to large.
func Presets() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}

// Preset returns a known configuration. The error (ErrPreset) lists near names, or all.
func Preset(name string) (Config, error) {
	for _, p := range presets {
		if p.name == name {
			return p.Config, nil
		}
	}
	if near := nearNames(name); len(near) > 0 {
		return Config{}, fmt.Errorf("%w %q: did you mean %s?", ErrPreset, name, strings.Join(near, " or "))
	}
	return Config{}, fmt.Errorf("%w %q: known are %s", ErrPreset, name, strings.Join(Presets(), ", "))
}

// nearNames returns presets at most two edits away, or that name is the start of, nearest first.
func nearNames(name string) []string {
	name = strings.ToLower(name)
	var near []string
	far := map[string]int{}
	for _, p := range Presets() {
		far[p] = distance(name, p)
		if far[p] <= min(2, len(p)/2) || (name != "" && strings.HasPrefix(p, name)) {
			near = append(near, p)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return far[a] - far[b] })
	return near
}

// distance is the edit distance of Levenshtein, by rows.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			keep := diagonal
			if a[i] != b[j] {
				keep++
			}
			diagonal = row[j+1]
			row[j+1] = min(keep, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
