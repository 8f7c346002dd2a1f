package inproc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"zeroshard/collectives"
	"zeroshard/device"
)

// group is what the ranks share.
type group struct {
	meeting *rendezvous
	posts   []post
}

// post is what a rank shows to its peers between the two meetings of a call.
type post struct {
	call collectives.Call
	src  device.Buffer
	_    [64]byte // peers write theirs at the same time
}

// end is one rank's end of a group.
type end struct {
	*group
	rank   int
	folder collectives.Folder
	closed atomic.Bool

	mu   sync.Mutex // held during a call
	seq  uint64     // calls made
	fold collectives.Operands
}

// New returns the ends of a group of size ranks, by rank. folder gives the arithmetic of one rank: reductions run on the goroutine
// that makes the call, so each rank needs its own where a Folder serves one goroutine.
func New(size int, folder func(rank int) collectives.Folder) ([]collectives.Group, error) {
	if size < 1 || folder == nil {
		return nil, fmt.Errorf("%w: in-process group of %d ranks, folder given: %t", collectives.ErrArgument, size, folder != nil)
	}
	g := &group{meeting: newRendezvous(size), posts: make([]post, size)}
	ends := make([]collectives.Group, size)
	for r := range ends {
		ends[r] = &end{group: g, rank: r, folder: folder(r), fold: collectives.Operands{Parts: make([]device.Buffer, size)}}
	}
	return ends, nil
}

func (e *end) Rank() int { return e.rank }
func (e *end) Size() int { return len(e.posts) }

// Workspace is 0: peers' memory is read where it lies. (The fold's temporaries are a few chunks outside device memory.)
func (e *end) Workspace(collectives.Verb, int64) int64 { return 0 }

func (e *end) AllGather(ctx context.Context, _ device.Stream, dst, src device.Buffer) error {
	call, err := collectives.GatherCall(e.rank, e.Size(), dst, src)
	if err := e.enter(ctx, call, src, err); err != nil {
		return err
	}
	defer e.leave()
	if err := e.agree(call); err != nil {
		return err
	}
	to, n := dst.Raw(), int(src.Bytes())
	if n == 0 || to == nil {
		return nil
	}
	// Everyone starts with its own piece and goes round, so that peers read different pieces at a time. The own one may lie in
	// its place already: then it must not be written, for peers are reading it.
	for i := range e.posts {
		r := (e.rank + i) % len(e.posts)
		place, from := to[r*n:(r+1)*n], e.posts[r].src.Raw()
		if from != nil && &place[0] != &from[0] {
			move(place, from, len(to) <= cacheBytes)
		}
	}
	return nil
}

func (e *end) ReduceScatter(ctx context.Context, s device.Stream, r collectives.Reduction) error {
	call, err := collectives.ReduceCall(e.rank, e.Size(), r)
	if err := e.enter(ctx, call, r.Src, err); err != nil {
		return err
	}
	defer e.leave()
	if err := e.agree(call); err != nil {
		return err
	}
	if !e.gatherParts(r, call.Len) {
		return nil
	}
	e.fold.Out, e.fold.In = r.Out, r.In
	e.temps(r.Fold.Temps)
	r.Fold.Run(e.folder, s, &e.fold)
	e.fold.Out, e.fold.In = nil, nil
	return nil
}

// gatherParts points the fold's operands at this rank's slice of every part, and reports whether there is something to add that
// the CPU can address.
func (e *end) gatherParts(r collectives.Reduction, n int) bool {
	addressable := n > 0
	for _, out := range r.Out {
		addressable = addressable && out.Raw() != nil
	}
	for _, in := range r.In {
		addressable = addressable && in.Raw() != nil
	}
	for p, present := range r.Fold.Present {
		e.fold.Parts[p] = device.Buffer{}
		if present {
			e.fold.Parts[p] = e.posts[p].src.Slice(e.rank*n, (e.rank+1)*n)
			addressable = addressable && e.fold.Parts[p].Raw() != nil
		}
	}
	return addressable
}

// temps makes n temporaries, which stay for later calls.
func (e *end) temps(n int) {
	for len(e.fold.Temps) < n {
		e.fold.Temps = append(e.fold.Temps, device.Host(make([]float32, collectives.Chunk)))
	}
}

// enter shows the call to the peers and meets them. bad is what is wrong with the caller's arguments: the peers must not wait
// for a call that never comes, so it aborts the group. After nil, leave must follow.
func (e *end) enter(ctx context.Context, call collectives.Call, src device.Buffer, bad error) error {
	if !e.mu.TryLock() {
		return fmt.Errorf("%w: two calls at once on rank %d", collectives.ErrArgument, e.rank)
	}
	if err := e.meet(ctx, call, src, bad); err != nil {
		e.mu.Unlock()
		return err
	}
	return nil
}

func (e *end) meet(ctx context.Context, call collectives.Call, src device.Buffer, bad error) error {
	if e.closed.Load() {
		return fmt.Errorf("%w: %v on rank %d", collectives.ErrClosed, call.Verb, e.rank)
	}
	if bad != nil {
		e.meeting.abort(e.rank, bad)
		return bad
	}
	e.seq++
	p := &e.posts[e.rank]
	p.call, p.src = call, src
	return e.meeting.meet(ctx, e.rank)
}

// leave waits until no peer reads this rank's source any more.
func (e *end) leave() {
	e.meeting.part(e.rank)
	e.posts[e.rank].src = device.Buffer{}
	e.mu.Unlock()
}

// agree compares what the ranks show. All of them compare the same, so all come to the same error, and the group is of no use
// afterwards.
func (e *end) agree(call collectives.Call) error {
	for r := range e.posts {
		if e.posts[r].call != call {
			calls := make([]collectives.Call, len(e.posts))
			for i := range calls {
				calls[i] = e.posts[i].call
			}
			err := &collectives.MismatchError{Seq: e.seq, Calls: calls}
			e.meeting.abort(e.rank, err)
			return err
		}
	}
	return nil
}

func (e *end) Abort(cause error) { e.meeting.abort(e.rank, cause) }

// Close makes calls of peers fail that this rank will not take part in. It waits for nobody.
func (e *end) Close() error {
	if !e.closed.Swap(true) {
		e.meeting.abort(e.rank, collectives.ErrClosed)
	}
	return nil
}
