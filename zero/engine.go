package zero

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/offload"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/shard"
)

// Config is what one rank's engine is made of. All is needed but Clip.
type Config struct {
	Rank      int
	Program   *Program
	Model     models.Model
	Optimizer optim.Optimizer
	Device    device.Device
	Arena     *memory.Arena // over Device
	Net       kernels.Net   // Net and Vector serve the compute lane
	Vector    kernels.Vector
	Groups    map[shard.Axis]collectives.Group // axes shard, replicate, world
	Tiers     map[string]offload.Tier          // by name; only those that the program uses are needed
	Key       prng.Key                         // of the run: dropout
	Clip      float64                          // global norm to clip to; 0 = off
	Watch     Watcher                          // nil = nobody watches
}

// Watcher is told where a rank stands: it is called on an op's lane just before the op runs and just after, from several lanes at
// once. It must be quick and must not allocate.
type Watcher interface {
	Op(p *Plan, line int, done bool)
}

// Batch is one leaf on the host: Shape.Rows() tokens, and as many targets (< 0 does not count).
type Batch struct{ Tokens, Targets []int32 }

// Engine runs the plans of one rank.
//
// It is an issuer: it walks a plan's list and hands each op to the stream of its lane behind the op's waits, then waits for the
// streams. All decisions were made by Compile; all memory was reserved and every task built in New, so a step allocates nothing.
//
// An error on any op sticks: it aborts the groups, so that peers return instead of waiting, and the engine is of no use after.
type Engine struct {
	cfg     Config
	mem     arenas
	streams [lanes]device.Stream
	first   *exec // the program's first plan, which is of training where there is one
	eval    *exec
	logits  *exec
	next    *exec // nil where the model is no models.Decoder
	held    []int // by text: tokens that the caches hold

	mu     sync.Mutex
	failed error // the first failure
}

type arenas struct{ resident, transient device.Mem }

// New reserves the program's memory, builds its tasks and agrees with the other ranks that all have the same program.
// Parameters and state are zero.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	e, pr := &Engine{cfg: cfg}, cfg.Program
	if err := pr.runnable(); err != nil {
		e.abort(err) // peers must not wait for a rank that will not come
		return nil, err
	}
	if err := e.agree(ctx); err != nil {
		e.abort(err)
		return nil, err
	}
	if err := errors.Join(e.tooLarge(e.reserve()), e.room(ctx)); err != nil {
		e.abort(err)
		return nil, errors.Join(err, e.closeTiers(), cfg.Arena.Close())
	}
	for l := range Host {
		s, err := cfg.Device.NewStream(l.String())
		if err != nil {
			e.abort(err)
			return nil, errors.Join(err, e.closeTiers(), cfg.Arena.Close())
		}
		e.streams[l] = s
	}
	e.eval, e.logits = newExec(e, pr.Eval), newExec(e, pr.Logits)
	if e.first = e.eval; pr.Train != nil {
		e.first = newExec(e, pr.Train)
	}
	if pr.Next != nil {
		e.next = newExec(e, pr.Next)
	}
	return e, nil
}

// runnable reports what can be planned but not run, and plans that are not sound.
func (pr *Program) runnable() error {
	if p := pr.first().Options.Precision; p != FP32 {
		return fmt.Errorf("%w: precision %v can be planned but not run yet: use fp32", ErrOptions, p)
	}
	for _, p := range pr.Plans() {
		if err := p.Check(); err != nil {
			return err
		}
	}
	return pr.sameCaches()
}

// scratchUser is a kernels backend that takes its scratch from the engine's arena.
type scratchUser interface{ UseScratch(device.Mem) error }

// reserve takes all device memory that the engine will ever use.
func (e *Engine) reserve() (err error) {
	a, pr := e.cfg.Arena, e.cfg.Program
	first := pr.first()
	if e.mem.resident, err = a.Reserve("resident", first.Resident); err != nil {
		return err
	}
	if e.mem.transient, err = a.Reserve("transient", pr.Transient); err != nil {
		return err
	}
	if pr.Scratch > 0 {
		m, err := a.Reserve("kernel scratch", pr.Scratch)
		if err != nil {
			return err
		}
		if u, ok := e.cfg.Net.(scratchUser); ok {
			if err := u.UseScratch(m); err != nil {
				return err
			}
		}
		a.Begin(memory.Span{Kind: memory.Workspace, Name: "kernel scratch", Bytes: pr.Scratch})
	}
	if pr.Workspace > 0 {
		if _, err = a.Reserve("transport", pr.Workspace); err != nil {
			return err
		}
		a.Begin(memory.Span{Kind: memory.Communication, Name: "transport", Bytes: pr.Workspace})
	}
	for i := range first.Bufs {
		if b := &first.Bufs[i]; b.Resident && b.Tier == "" {
			a.Begin(memory.Span{Kind: b.Kind, Name: b.Name, Bytes: b.Bytes()})
		}
	}
	return nil
}

// tooLarge says where the plan needs most, and for what, if memory was refused.
func (e *Engine) tooLarge(err error) error {
	if err == nil {
		return nil
	}
	p, where := e.cfg.Program.first(), ""
	if c := p.Cost(); c.PeakOp != none {
		where = fmt.Sprintf(" (most is live at plan line %s)", p.Line(c.PeakOp))
	}
	return fmt.Errorf("zero: rank %d: device memory%s: %w", e.cfg.Rank, where, err)
}

// Program returns what the engine runs.
func (e *Engine) Program() *Program { return e.cfg.Program }

// Rank is the engine's place in the world.
func (e *Engine) Rank() int { return e.cfg.Rank }

// Step trains on one global batch. micro holds this rank's leaves by slot (Plan.Leaves); entries of slots without a leaf are not
// looked at. All ranks must call it with the same h.
func (e *Engine) Step(ctx context.Context, micro []Batch, h optim.Hyper) (Stats, error) {
	x := e.first
	if e.cfg.Program.Train == nil {
		return Stats{}, fmt.Errorf("%w: the engine was made for inference and cannot train", ErrOptions)
	}
	if err := x.load(ctx, micro); err != nil {
		return Stats{}, err
	}
	x.run.step, x.run.hyper = h.Step, h
	if err := x.issue(); err != nil {
		return Stats{}, err
	}
	return x.stats(), nil
}

// Eval computes the loss of one pass over the evaluation plan's leaves, which are in micro as in Step.
func (e *Engine) Eval(ctx context.Context, micro []Batch) (Loss, error) {
	x := e.eval
	if err := x.load(ctx, micro); err != nil {
		return Loss{}, err
	}
	if err := x.issue(); err != nil {
		return Loss{}, err
	}
	return x.loss(), nil
}

// Err is the failure that ended the engine, or nil.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed
}

// Fail records the first failure and wakes the peers.
func (e *Engine) Fail(err error) error {
	e.mu.Lock()
	if e.failed == nil {
		e.failed = err
	}
	e.mu.Unlock()
	e.abort(err)
	return err
}

func (e *Engine) abort(cause error) {
	for _, g := range e.cfg.Groups {
		g.Abort(cause)
	}
}

// Close ends the engine: its groups, its memory, its device.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.failed == nil {
		e.failed = ErrClosed
	}
	e.mu.Unlock()
	var errs []error
	for _, g := range e.cfg.Groups {
		errs = append(errs, g.Close())
	}
	errs = append(errs, e.cfg.Arena.Close(), e.cfg.Device.Close(), e.closeTiers())
	return errors.Join(errs...)
}
