package prepare

import (
	"context"
	"fmt"
	"io"
	"math"

	"golang.org/x/sync/errgroup"

	"zeroshard/data"
	"zeroshard/data/tokenizer"
)

// Options say what is made.
type Options struct {
	Tokenizer tokenizer.Tokenizer
	Out       string    // folder for the files
	Val       float64   // fraction for validation, in [0, 1), in millionths; 0: no val.bin
	Format    Format    // of the inputs
	TextField string    // of a JSONL line: the field that holds the text
	Threads   int       // that encode, at least 1
	Force     bool      // overwrite
	Stdin     io.Reader // what the input "-" is
	Report    func(Progress)
}

// Progress is how far a run is, as Options.Report hears it, from one goroutine at a time.
type Progress struct {
	Done, Total int64 // bytes of the inputs; Total is 0 where it is not known
	Tokens      int64
}

// Result is what was made.
type Result struct {
	Meta    data.Meta
	Inputs  int // files read
	Skipped int // entries of folders that were not: hidden, or no regular file
	// LastHeldOut says that no document was for validation by the fraction, so that the last one is.
	LastHeldOut bool
}

// The parts.
const (
	trainPart = iota
	valPart
	parts
)

// Run makes token files of the inputs: files, folders (all files in them, in the order of their names), or "-".
//
// Errors: ErrOptions, ErrExists, *InputError (ErrInput), ErrEmpty, ErrID, the context's cause, and the operating system's.
func Run(ctx context.Context, inputs []string, o Options) (res *Result, err error) {
	if err := o.judge(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found, err := find(inputs, o.Format, o.Out)
	if err != nil {
		return nil, err
	}
	split := newSplit(o.Val)
	if err := split.foresee(found.files); err != nil {
		return nil, err
	}
	out, err := newOutput(&o)
	if err != nil {
		return nil, err
	}
	defer func() { out.discard(err) }()
	if split.single && found.files[0].path == stdinName {
		if err := out.spool(interruptible(ctx, o.Stdin), &found.files[0]); err != nil {
			return nil, err
		}
		found.total = found.files[0].size
	}
	if err := encodeAll(ctx, &o, found, split, out); err != nil {
		return nil, err
	}
	last, err := split.holdOutLast(out)
	if err != nil {
		return nil, err
	}
	if err := split.judge(out); err != nil {
		return nil, err
	}
	meta, err := out.commit(ctx)
	if err != nil {
		return nil, err
	}
	return &Result{Meta: *meta, Inputs: len(found.files), Skipped: found.skipped, LastHeldOut: last}, nil
}

func (o *Options) judge() error {
	switch {
	case o.Tokenizer == nil || o.Tokenizer.Vocab() < 1:
		return optionf("no tokenizer")
	case o.Out == "":
		return optionf("no folder to write to")
	case !(o.Val >= 0 && o.Val < 1):
		return optionf("a validation fraction of %v: want one from 0 to under 1", o.Val)
	case o.Val > 0 && o.Val*million < 1:
		return optionf("a validation fraction of %v: the smallest is 0.000001", o.Val)
	case o.Threads < 1:
		return optionf("%d threads: want at least 1", o.Threads)
	case o.Format < 0 || o.Format > JSONL:
		return optionf("unknown format")
	case o.TextField == "":
		return optionf("no name of the field that holds the text")
	}
	return nil
}

// encodeAll sends the texts through the encoders to the files, in order.
func encodeAll(ctx context.Context, o *Options, found *inputs, split *split, out *output) error {
	group, ctx := errgroup.WithContext(ctx)
	p := newPipe(o, found, split)
	if p.eot >= 0 {
		out.eot = &p.eot
	}
	group.Go(func() error {
		defer p.close()
		return p.read(ctx, found.files)
	})
	for range o.Threads {
		group.Go(func() error { return p.encode(ctx) })
	}
	group.Go(func() error { return p.write(ctx, out) })
	return group.Wait()
}

// split decides what is for validation.
type split struct {
	millionths int64
	single     bool  // one text is cut by place
	documents  int64 // so far
}

const million = 1_000_000

func newSplit(val float64) *split { return &split{millionths: int64(math.Round(val * million))} }

// foresee judges what can be known before anything is read: a folder of few, large files should not fail at its end.
func (s *split) foresee(files []input) error {
	n := int64(0)
	for _, f := range files {
		if f.kind != plain {
			return nil
		}
		n++
	}
	s.single = n == 1
	if s.share(n) == n && !s.single {
		return fmt.Errorf("%w: no document of %d is left to train on: take a smaller validation fraction", ErrEmpty, n)
	}
	return nil
}

// share is how many of n documents are for validation, rounded down.
func (s *split) share(n int64) int64 { return ofMillion(n, s.millionths) }

// cut is how many of n bytes are to train on, rounded down, as nanoGPT does.
func (s *split) cut(n int64) int64 { return ofMillion(n, million-s.millionths) }

// ofMillion is ⌊n·m/10⁶⌋, without the product, which could overflow.
func ofMillion(n, m int64) int64 { return n/million*m + n%million*m/million }

// next is the part of the next document.
func (s *split) next() int {
	s.documents++
	if s.share(s.documents) > s.share(s.documents-1) {
		return valPart
	}
	return trainPart
}

// holdOutLast gives validation the last document that has text where the fraction has left it no token and others have some.
func (s *split) holdOutLast(out *output) (bool, error) {
	train, val := out.parts[trainPart], out.parts[valPart]
	if s.single || val == nil || val.tokens > 0 || train.last.tokens == 0 {
		return false, nil
	}
	return true, train.moveLast(val)
}

// judge refuses parts without a token.
func (s *split) judge(out *output) error {
	train, val := out.parts[trainPart], out.parts[valPart]
	switch {
	case train.tokens == 0 && (val == nil || val.tokens == 0):
		return fmt.Errorf("%w: the inputs hold no text", ErrEmpty)
	case train.tokens == 0:
		return fmt.Errorf("%w: nothing is left to train on: take a smaller validation fraction", ErrEmpty)
	case val != nil && val.tokens == 0 && s.single:
		return fmt.Errorf("%w: the text is too short to keep a part of it for validation: take a fraction of 0 for none", ErrEmpty)
	case val != nil && val.tokens == 0:
		return fmt.Errorf("%w: of %d document(s) at most one has text, so none is for validation: take a fraction of 0 for none, or give it as a text "+
			"alone, which is cut by place", ErrEmpty, s.documents)
	}
	return nil
}
