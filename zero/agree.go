package zero

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/shard"
)

// agree compares the ranks' programs and settings before anything runs. Where they differ, every rank returns the first line that
// does, instead of a hang at the first collective that does not match, or of weights that drift apart.
func (e *Engine) agree(ctx context.Context) error {
	g := e.cfg.Groups[shard.World]
	text := e.settings() + e.cfg.Program.text()
	sum := sha256.Sum256([]byte(e.settings() + e.cfg.Program.SHA256()))
	mine := make([]uint64, 5) // hash, and the length of the text in words
	for i := range 4 {
		mine[i] = binary.LittleEndian.Uint64(sum[8*i:])
	}
	mine[4] = uint64(len(text)+7) / 8
	all, err := gatherHost(ctx, g, mine)
	if err != nil {
		return err
	}
	same, longest := true, uint64(0)
	for r := range g.Size() {
		same = same && [5]uint64(all[5*r:5*r+5]) == [5]uint64(all[:5])
		longest = max(longest, all[5*r+4])
	}
	if same {
		return nil
	}
	padded := make([]byte, 8*longest)
	copy(padded, text)
	words := make([]uint64, longest)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(padded[8*i:])
	}
	if all, err = gatherHost(ctx, g, words); err != nil {
		return err
	}
	return differing(all, g.Size())
}

func gatherHost(ctx context.Context, g collectives.Group, mine []uint64) ([]uint64, error) {
	all := make([]uint64, len(mine)*g.Size())
	return all, g.AllGather(ctx, nil, device.Host(all), device.Host(mine))
}

// settings is what ranks must have alike beside the program, as a line.
func (e *Engine) settings() string {
	return fmt.Sprintf("clip %v  optimizer %s  key %x\n", e.cfg.Clip, e.cfg.Optimizer.Name(), e.cfg.Key)
}

// text is all that the program's hash covers, in lines.
func (pr *Program) text() string {
	var b strings.Builder
	for _, p := range pr.Plans() {
		b.WriteString(p.Text())
		b.WriteString(p.Buffers())
	}
	return b.String()
}

func differing(all []uint64, ranks int) error {
	texts := make([][]string, ranks)
	n := len(all) / ranks
	for r := range texts {
		raw := make([]byte, 8*n)
		for i, w := range all[r*n : (r+1)*n] {
			binary.LittleEndian.PutUint64(raw[8*i:], w)
		}
		texts[r] = strings.Split(strings.TrimRight(string(raw), "\x00"), "\n")
	}
	line := func(r, i int) string {
		if i < len(texts[r]) {
			return texts[r][i]
		}
		return "(end)"
	}
	for i := 0; ; i++ {
		for r := range texts {
			if line(r, i) != line(0, i) {
				return fmt.Errorf("%w: they differ first at line %d:\nrank 0: %s\nrank %d: %s", ErrMismatch, i+1, line(0, i), r, line(r, i))
			}
		}
		if i >= n*8 {
			return fmt.Errorf("%w: their layouts differ", ErrMismatch)
		}
	}
}
