package modeltest

import (
	"slices"
	"testing"

	"zeroshard/models"
	"zeroshard/prng"
)

// Decode holds a model that is a models.Decoder to mode Decode: however the leaf's texts are cut into calls, each in its own way, the logits
// that follow a row are, bit for bit, those of mode Logits over the whole text so far.
func Decode(t testing.TB, l *Leaf) {
	if _, ok := l.Model.(models.Decoder); !ok {
		t.Skip("the model knows no mode Decode")
	}
	want := l.prefixes(t)
	for trial := range uint64(4) {
		key := prng.New(trial).Named("cuts")
		d := l.decoder()
		for call := uint64(0); !d.done(); call++ {
			rows := 1 + key.Named("rows").Intn(call, max(1, l.Shape.Seq>>trial))
			d.plan(rows, func(b, most int) int { return key.Named("texts").Sub(call).Intn(uint64(b), most+1) })
			got := d.call(t)
			for b := range l.Shape.Batch {
				at, n := d.run.spans[2*b], d.run.spans[2*b+1]
				if n == 0 {
					continue
				}
				row := want[int(at+n)-1][b]
				if i := firstDifference(got[b*len(row):][:len(row)], row); i >= 0 {
					t.Fatalf("text %d, %d tokens after %d: logit %d is %v, want %v", b, n, at, i, got[b*len(row)+i], row[i])
				}
			}
		}
	}
}

// prefixes is the logits after each place of each sequence.
func (l *Leaf) prefixes(t testing.TB) (out [][][]float32) {
	for at := range l.Shape.Seq {
		one := *l
		one.Targets = slices.Repeat([]int32{-1}, l.Shape.Rows())
		for b := range l.Shape.Batch {
			one.Targets[b*l.Shape.Seq+at] = 0
		}
		logits, err := one.Logits()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, slices.Collect(slices.Chunk(logits, len(logits)/l.Shape.Batch)))
	}
	return out
}

// decoder runs a leaf's texts part by part.
type decoder struct {
	texts *Leaf
	run   *run
	reach []int // by text: tokens so far
}

func (l *Leaf) decoder() *decoder {
	d := &decoder{texts: l, reach: make([]int, l.Shape.Batch)}
	one := *l
	one.Shape = models.Shape{Batch: l.Shape.Batch, Seq: 1, Room: l.Shape.Seq}
	d.run = one.begin(models.Decode)
	for _, u := range d.run.units {
		d.run.caches = append(d.run.caches, l.memory(u.Sizes(one.Shape, models.Decode).Cache))
	}
	return d
}

func (d *decoder) done() bool {
	return !slices.ContainsFunc(d.reach, func(n int) bool { return n < d.texts.Shape.Seq })
}

// plan makes the next call one of so many rows, of which each text takes as many as take says.
func (d *decoder) plan(rows int, take func(b, most int) int) {
	r, seq := d.run, d.texts.Shape.Seq
	r.Shape.Seq = rows
	r.Tokens, r.Targets, r.spans = make([]int32, r.Shape.Rows()), slices.Repeat([]int32{-1}, r.Shape.Rows()), nil
	for b, at := range d.reach {
		n := take(b, min(rows, seq-at))
		copy(r.Tokens[b*rows:], d.texts.Tokens[b*seq+at:][:n])
		if n > 0 {
			r.Targets[b*rows+n-1] = 0
		}
		r.spans = append(r.spans, int32(at), int32(n))
		d.reach[b] += n
	}
}

func (d *decoder) call(t testing.TB) []float32 {
	r := d.run
	r.outs, r.saved = nil, nil
	if err := r.forward(); err != nil {
		t.Fatal(err)
	}
	return r.outs[len(r.outs)-1].values()
}
