package checkpoint

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"zeroshard/shard"
)

// Format is the version that this package writes. It reads this one only.
const Format = 1

// Weights is the state of the master weights, beside the optimizer's.
const Weights = "weights"

// Manifest is what a step is: all that a run needs to go on, and what its files must be.
type Manifest struct {
	Format int `json:"format"`
	Position

	Model    json.RawMessage `json:"model"`    // as the model describes itself
	Settings json.RawMessage `json:"settings"` // of the command, by flag
	Params   []Param         `json:"params"`
	States   []string        `json:"states"` // of the optimizer, in its order
	Data     Data            `json:"data"`
	Scaler   *Scaler         `json:"scaler"` // null without loss scaling
	World    World           `json:"world"`
	Files    []Entry         `json:"files"`
	CRC32C   string          `json:"crc32c"` // of this text with this field empty
}

// Position is where the run stands.
type Position struct {
	Step    int    `json:"step"`    // steps done
	Updates int    `json:"updates"` // of the optimizer: steps less the skipped ones. Its bias correction counts these
	Tokens  int64  `json:"tokens"`  // trained on
	Seed    uint64 `json:"seed"`    // initial values, data order and dropout are functions of it and of the step: there is no other state of randomness
}

// Param is a parameter of the model.
type Param struct {
	Name    string `json:"name"`
	Shape   []int  `json:"shape"`
	NoDecay bool   `json:"no_decay,omitempty"`
	Frozen  bool   `json:"frozen,omitempty"` // has weights only
}

// Len is the number of elements.
func (p Param) Len() int { return shard.Param{Shape: p.Shape}.Len() }

// Data is the position in the data. Its order is a function of (seed, step), so the position is the step; the counts and the hash show
// whether it is the same data.
type Data struct {
	Files     []string `json:"files"` // as they were named
	Train     int64    `json:"train_tokens"`
	Val       int64    `json:"val_tokens"`
	SHA256    string   `json:"tokens_sha256"` // of all of them: data.Set.SHA256
	Sequences int64    `json:"sequences"`     // drawn so far
	Tokenizer string   `json:"tokenizer,omitempty"`
	// TokenizerSHA256 is tokenizer.SHA256 of the files in TokenizerFolder, which is then the tokenizer's name.
	TokenizerSHA256 string `json:"tokenizer_sha256,omitempty"`
}

// Scaler is the state of dynamic loss scaling.
type Scaler struct {
	Scale float64 `json:"scale"`
	Good  int     `json:"good_steps"`
}

// World is who saved. Nothing of it matters to who loads, but that arithmetic which fuses and one that does not give other bits from there on.
type World struct {
	Ranks    int    `json:"ranks"`
	Replicas int    `json:"replicas"`
	Strategy string `json:"strategy"`
	Plan     string `json:"plan_sha256"`
	Kernels  string `json:"kernels"` // the path of the arithmetic: avx512, portable
}

// Entry is a file of the step.
type Entry struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Block int64  `json:"block"`  // bytes of a block; the last may be shorter
	Sums  Sums   `json:"crc32c"` // of each block
}

// Sums is CRC-32C values, in JSON as hexadecimal digits, eight for each.
type Sums []uint32

// MarshalText writes the digits.
func (s Sums) MarshalText() ([]byte, error) {
	raw := make([]byte, 0, 4*len(s))
	for _, v := range s {
		raw = append(raw, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return hex.AppendEncode(nil, raw), nil
}

// UnmarshalText reads them.
func (s *Sums) UnmarshalText(text []byte) error {
	raw, err := hex.AppendDecode(nil, text)
	if err != nil || len(raw)%4 != 0 {
		return fmt.Errorf("checksums are eight hexadecimal digits each, not %d characters", len(text))
	}
	*s = make(Sums, len(raw)/4)
	for i := range *s {
		b := raw[4*i:]
		(*s)[i] = uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

// text is the manifest with crc in its last field, in the one way in which it is written.
func (m Manifest) text(crc string) ([]byte, error) {
	m.CRC32C = crc
	b, err := json.MarshalIndent(m, "", " ")
	return append(b, '\n'), err
}

// encode returns the text of m, with its checksum.
func (m Manifest) encode() ([]byte, error) {
	blank, err := m.text("")
	if err != nil {
		return nil, fmt.Errorf("checkpoint: manifest: %w", err)
	}
	return m.text(fmt.Sprintf("%08x", sum(blank)))
}

// decode reads a manifest of path. Text that this package would not have written in just this way is corrupt: so a flipped bit is
// found also in a space or in the case of a letter, which JSON would not mind.
func decode(path string, text []byte) (*Manifest, error) {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, corrupt(path, "no manifest: %v", err)
	}
	m := &Manifest{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		if version.Format != Format {
			return nil, formatError(path, version.Format)
		}
		return nil, corrupt(path, "no manifest: %v", err)
	}
	want, err := m.encode()
	if err != nil || !bytes.Equal(want, text) {
		if version.Format > Format {
			return nil, formatError(path, version.Format)
		}
		return nil, corrupt(path, "its text and its checksum do not agree")
	}
	if m.Format != Format {
		return nil, formatError(path, m.Format)
	}
	return m, m.check(path)
}

func formatError(path string, v int) error {
	return fmt.Errorf("%w: %s has format %d, this program reads %d: use the version that wrote it, or a newer one", ErrMismatch, path, v, Format)
}

// check finds what no writer would have written.
func (m *Manifest) check(path string) error {
	if m.Step < 0 || m.Updates < 0 || m.Updates > m.Step {
		return corrupt(path, "%d updates in %d steps", m.Updates, m.Step)
	}
	seen := map[string]bool{}
	for _, p := range m.Params {
		if p.Name == "" || seen[p.Name] || slices.ContainsFunc(p.Shape, func(d int) bool { return d < 0 }) {
			return corrupt(path, "parameter %q of shape %v: no name, named twice, or a negative dim", p.Name, p.Shape)
		}
		seen[p.Name] = true
	}
	named := map[string]bool{}
	for _, f := range m.Files {
		if f.Name == "" || strings.ContainsAny(f.Name, `/\`) || strings.HasPrefix(f.Name, ".") || named[f.Name] {
			return corrupt(path, "file name %q", f.Name)
		}
		named[f.Name] = true
		if f.Block < 1 || f.Bytes < 0 || int64(len(f.Sums)) != (f.Bytes+f.Block-1)/f.Block {
			return corrupt(path, "%s: %d checksums for %d bytes in blocks of %d", f.Name, len(f.Sums), f.Bytes, f.Block)
		}
	}
	return nil
}

// StatesOf lists the states that a parameter has.
func (m *Manifest) StatesOf(p Param) []string {
	if p.Frozen {
		return []string{Weights}
	}
	return append([]string{Weights}, m.States...)
}
