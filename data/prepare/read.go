package prepare

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"zeroshard/data/tokenizer"
)

const (
	// block is how much text is encoded at a time, in bytes.
	block = 256 << 10
	// maxItems bounds the documents of a block, which may be empty.
	maxItems = 1 << 12
	// maxRun is the longest text, in bytes, in which no place to cut is found.
	maxRun = 1 << 20
)

// item is a document or a part of one.
type item struct {
	part       int
	text       string
	begin, end bool
}

// read cuts the inputs into chunks, in order.
func (p *pipe) read(ctx context.Context, files []input) error {
	for i := range files {
		if err := p.readFile(ctx, &files[i]); err != nil {
			return err
		}
	}
	return p.flush(ctx)
}

func (p *pipe) readFile(ctx context.Context, in *input) error {
	var raw io.Reader
	if in.path == stdinName && in.spooled == "" {
		raw = interruptible(ctx, p.o.Stdin)
	} else {
		f, err := os.Open(in.name())
		if err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
		defer f.Close()
		if p.split.single {
			return p.readSingle(ctx, in, f)
		}
		raw = f
	}
	raw = &counter{raw, &p.done}
	switch in.kind {
	case plain:
		return p.readText(ctx, in.path, raw, item{part: p.split.next(), begin: true, end: true})
	case gzipLines:
		unzipped, err := gzip.NewReader(raw)
		if err != nil {
			return &InputError{Path: in.path, Offset: -1, Reason: err.Error()}
		}
		raw = unzipped
	}
	return p.readLines(ctx, in, raw)
}

// readSingle cuts one text by place.
func (p *pipe) readSingle(ctx context.Context, in *input, f *os.File) error {
	p.split.documents++
	at, err := runeStart(f, p.split.cut(in.size))
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	train := &counter{io.NewSectionReader(f, 0, at), &p.done}
	if err := p.readText(ctx, in.path, train, item{part: trainPart, begin: true}); err != nil || at == in.size {
		return err
	}
	val := &counter{io.NewSectionReader(f, at, in.size-at), &p.done}
	return p.readText(ctx, in.path, val, item{part: valPart})
}

// runeStart is the place of the character that byte at is in.
func runeStart(r io.ReaderAt, at int64) (int64, error) {
	var b [1]byte
	for back := int64(0); back < 4 && back <= at; back++ {
		if _, err := r.ReadAt(b[:], at-back); errors.Is(err, io.EOF) {
			return at, nil
		} else if err != nil {
			return 0, err
		}
		if b[0]&0xC0 != 0x80 {
			return at - back, nil
		}
	}
	return at, nil // no UTF-8
}

func (p *pipe) readLines(ctx context.Context, in *input, r io.Reader) error {
	for l := newLineReader(in.path, p.o.TextField, r); ; {
		text, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && in.kind == gzipLines && !errors.Is(err, ErrInput):
			return l.fault("%v", err.Error())
		case errors.Is(err, ErrInput):
			return err
		case err != nil:
			return fmt.Errorf("prepare: %w", err)
		}
		d := &document{path: in.path, line: l.line, item: item{part: p.split.next(), begin: true, end: true}}
		if _, err := p.send(ctx, d, []byte(text), true); err != nil {
			return err
		}
	}
}

// readText sends a text on as it is read. of says what it is.
func (p *pipe) readText(ctx context.Context, path string, r io.Reader, of item) error {
	d := &document{path: path, item: of}
	var text []byte
	for {
		had := len(text)
		text = append(text, make([]byte, block)...)
		n, err := io.ReadFull(r, text[had:])
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return fmt.Errorf("prepare: %w", err)
		}
		rest, err := p.send(ctx, d, text[:had+n], last)
		if err != nil || last {
			return err
		}
		text = append(text[:0], rest...)
	}
}

// document is a text of which parts are sent on.
type document struct {
	path string
	line int   // of a JSONL file, else 0
	at   int64 // bytes sent
	item       // what the next part is; its end is meant for the last
}

// send sends on what can be cut off text, or all of it if it is the last, and returns the rest.
func (p *pipe) send(ctx context.Context, d *document, text []byte, last bool) ([]byte, error) {
	for window := block; !last || len(text) > window; {
		if len(text) < window {
			return text, nil
		}
		n := tokenizer.LastCut(p.o.Tokenizer, text[:window])
		switch {
		case n == 0 && window >= maxRun:
			return nil, &InputError{Path: d.path, Line: d.line, Offset: d.at, Reason: fmt.Sprintf("%d bytes without a place where the text can be cut "+
				"and no id changes (a word's end): break it up, or take the tokenizer bytes", window)}
		case n == 0:
			window *= 2
			continue
		}
		if err := p.emit(ctx, d, text[:n], false); err != nil {
			return nil, err
		}
		text, window = text[n:], block
	}
	return nil, p.emit(ctx, d, text, d.end)
}

func (p *pipe) emit(ctx context.Context, d *document, text []byte, end bool) error {
	i := item{part: d.part, text: string(text), begin: d.begin, end: end}
	d.begin, d.at = false, d.at+int64(len(text))
	return p.add(ctx, i)
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n *int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	*c.n += int64(n)
	return n, err
}

// interruptible is r, but a read ends with the context: a terminal may never say another word.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	from, to := io.Pipe()
	go func() {
		_, err := io.Copy(to, r)
		to.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { to.CloseWithError(context.Cause(ctx)) })
	return from
}
