package prepare

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"zeroshard/data"
)

// llm.c's header for uint32 ids: 256 int32, of which three are used.
const (
	headerBytes = 256 * 4
	magic32     = 20240801
	version32   = 7
)

// partFile is one token file: nanoGPT's, raw uint16, or, for vocabularies beyond, llm.c's of uint32.
type partFile struct {
	*os.File
	name  string
	w     *bufio.Writer
	width int

	mark
	last mark // where the last document begins that has text
}

// mark is a place in a part: what is before it.
type mark struct{ tokens, text, docs int64 }

func (m mark) plus(n mark) mark { return mark{m.tokens + n.tokens, m.text + n.text, m.docs + n.docs} }

func newPartFile(f *os.File, name string, width int) *partFile {
	p := &partFile{File: f, name: name, width: width, w: bufio.NewWriterSize(f, 1<<18)}
	if width == 4 { // its place, in the buffer: the count is known at the end
		_, _ = p.w.Write(make([]byte, headerBytes))
	}
	return p
}

// take appends ids as they are in the file.
func (p *partFile) take(ids []byte, text, docs int64) error {
	p.tokens += int64(len(ids) / p.width)
	p.text += text
	p.docs += docs
	if p.width == 4 && p.tokens > math.MaxInt32 {
		return fmt.Errorf("%w: over %d tokens in %s, more than llm.c's header can count: prepare the inputs in several runs and give their files to "+
			"training together", ErrID, math.MaxInt32, p.name)
	}
	if _, err := p.w.Write(ids); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}

// moveLast moves what begins at p.last to the end of another part.
func (p *partFile) moveLast(to *partFile) error {
	at := p.last.tokens * int64(p.width)
	if p.width == 4 {
		at += headerBytes
	}
	err := p.w.Flush()
	if err == nil {
		_, err = io.Copy(to.w, io.NewSectionReader(p.File, at, (p.tokens-p.last.tokens)*int64(p.width)))
	}
	if err == nil {
		err = p.Truncate(at)
	}
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	to.mark = to.plus(mark{p.tokens - p.last.tokens, p.text - p.last.text, p.docs - p.last.docs})
	p.mark = p.last
	return nil
}

// finish makes the file last, and reads it again as training will.
func (p *partFile) finish(ctx context.Context, vocab int) (*data.MetaPart, error) {
	err := p.w.Flush()
	if err == nil && p.width == 4 {
		head := binary.LittleEndian.AppendUint32(nil, magic32)
		head = binary.LittleEndian.AppendUint32(head, version32)
		_, err = p.WriteAt(binary.LittleEndian.AppendUint32(head, uint32(p.tokens)), 0)
	}
	if err = errors.Join(err, p.Sync(), p.Close()); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	f, err := data.Open(p.Name(), vocab)
	if err != nil {
		return nil, fmt.Errorf("prepare: %s cannot be read again: %w", p.name, err)
	}
	defer f.Close()
	if int64(f.Len()) != p.tokens {
		return nil, fmt.Errorf("prepare: %s has %d tokens, %d were written: %w", p.name, f.Len(), p.tokens, io.ErrUnexpectedEOF)
	}
	sum, err := hashFile(p.Name())
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	return &data.MetaPart{File: p.name, Tokens: p.tokens, Documents: p.docs, Bytes: p.text, SHA256: sum}, nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
