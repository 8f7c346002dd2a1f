package prepare

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"zeroshard/data/tokenizer"
)

// pipe takes texts from one reader through the encoders to one writer. Chunks are written in the order in which they were read;
// few are on their way at a time.
type pipe struct {
	o     *Options
	total int64
	split *split
	width int   // bytes of an id
	eot   int32 // −1: none is written

	work  chan *chunk // for the encoders, in any order
	order chan *chunk // for the writer, in the order of the texts
	cur   *chunk
	done  int64 // bytes of the inputs that were read
}

// chunk is some text: parts of one document, or several small ones.
type chunk struct {
	items []item
	size  int
	read  int64 // bytes of the inputs up to here

	ids   [parts][]byte // as in the files
	text  [parts]int64  // bytes
	docs  [parts]int64  // that begin here
	last  [parts]*mark  // the last beginning of a document that has text, from the chunk's, nil for none
	err   error
	ready chan struct{} // closed when the encoder is done
}

func newPipe(o *Options, found *inputs, split *split) *pipe {
	p := &pipe{o: o, total: found.total, split: split, width: width(o.Tokenizer), eot: -1, cur: &chunk{}}
	if id, ok := o.Tokenizer.EndOfText(); ok && !split.single {
		p.eot = id
	}
	p.work, p.order = make(chan *chunk, o.Threads), make(chan *chunk, 2*o.Threads)
	return p
}

// width is how many bytes hold any id of a vocabulary.
func width(t tokenizer.Tokenizer) int {
	if t.Vocab() <= 1<<16-1 {
		return 2
	}
	return 4
}

// add takes a text into the current chunk.
func (p *pipe) add(ctx context.Context, i item) error {
	p.cur.items = append(p.cur.items, i)
	if p.cur.size += len(i.text); p.cur.size >= block || len(p.cur.items) == maxItems {
		return p.flush(ctx)
	}
	return nil
}

// flush sends the current chunk on.
func (p *pipe) flush(ctx context.Context) error {
	c := p.cur
	if len(c.items) == 0 {
		return nil
	}
	c.read, c.ready, p.cur = p.done, make(chan struct{}), &chunk{}
	for _, to := range []chan *chunk{p.order, p.work} {
		select {
		case to <- c:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (p *pipe) close() {
	close(p.work)
	close(p.order)
}

// encode is one encoder. What fails is told by the writer, in the order of the texts.
func (p *pipe) encode(ctx context.Context) error {
	var ids []int32
	for {
		select {
		case c, ok := <-p.work:
			if !ok {
				return nil
			}
			ids, c.err = p.encodeChunk(c, ids)
			close(c.ready)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// encodeChunk fills in what a chunk gives to the files. It uses ids as scratch, and returns it.
func (p *pipe) encodeChunk(c *chunk, ids []int32) ([]int32, error) {
	vocab := int64(p.o.Tokenizer.Vocab())
	for _, i := range c.items {
		ids = p.o.Tokenizer.Encode(ids[:0], i.text)
		if i.end && p.eot >= 0 {
			ids = append(ids, p.eot)
		}
		if i.begin && i.text != "" {
			c.last[i.part] = &mark{int64(len(c.ids[i.part]) / p.width), c.text[i.part], c.docs[i.part]}
		}
		out := slices.Grow(c.ids[i.part], len(ids)*p.width)
		for _, id := range ids {
			if id < 0 || int64(id) >= vocab {
				return ids, fmt.Errorf("%w: the tokenizer %s gave id %d, its vocabulary has %d", ErrID, p.o.Tokenizer.Name(), id, vocab)
			}
			if p.width == 2 {
				out = binary.LittleEndian.AppendUint16(out, uint16(id))
			} else {
				out = binary.LittleEndian.AppendUint32(out, uint32(id))
			}
		}
		c.ids[i.part] = out
		c.text[i.part] += int64(len(i.text))
		if i.begin {
			c.docs[i.part]++
		}
	}
	c.items = nil
	return ids, nil
}

// write gives chunks to the files.
func (p *pipe) write(ctx context.Context, out *output) error {
	tokens := int64(0)
	for c := range p.order {
		select {
		case <-c.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if c.err != nil {
			return c.err
		}
		for i, f := range out.parts {
			if f == nil {
				continue
			}
			if last := c.last[i]; last != nil {
				f.last = f.plus(*last)
			}
			if err := f.take(c.ids[i], c.text[i], c.docs[i]); err != nil {
				return err
			}
			tokens += int64(len(c.ids[i]) / p.width)
		}
		if p.o.Report != nil {
			p.o.Report(Progress{Done: c.read, Total: p.total, Tokens: tokens})
		}
	}
	return nil
}
