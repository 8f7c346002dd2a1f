package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"zeroshard"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/zero"
)

// training is a model and what a rank's micro-batch of it is.
type training struct {
	preset     string
	seq, micro int
}

var trainings = [...]training{{"tiny", 128, 4}, {"small", 256, 4}, {"gpt2", 256, 2}, {"gpt2", 1024, 1}}

// grid is how many ranks share the threads, each with its own.
type grid struct{ ranks, threads int }

// stages are those that are compared: nothing sharded, all sharded.
var stages = [...]int{0, 3}

// Step measures training steps: tokens in a second, at most what the multiply-add peak would do of the model's operations; stage 3 by
// stage 0; allocations of a step, against one for each operation of the plan; and the peak memory of a rank, against what was planned.
func Step(ctx context.Context, b Backend, o Options, emit Emit) error {
	n := o.Threads
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	grids := []grid{{n, 1}}
	if n > 1 {
		grids = append(grids, grid{1, n})
	}
	for _, t := range trainings {
		for _, g := range grids {
			if err := t.compare(ctx, b, o, g, emit); err != nil {
				return fmt.Errorf("bench: %s, %s: %w", t.preset, t.shape(g), err)
			}
		}
	}
	return nil
}

func (t training) shape(g grid) string {
	return fmt.Sprintf("T %d, %d a rank, %d ranks x %d threads", t.seq, t.micro, g.ranks, g.threads)
}

func (t training) name(stage int) string { return fmt.Sprintf("%s stage %d", t.preset, stage) }

// compare runs the stages that are wanted in turn, and the peak.
func (t training) compare(ctx context.Context, b Backend, o Options, g grid, emit Emit) (err error) {
	var runs []*stepper
	defer func() {
		for _, s := range runs {
			err = errors.Join(err, s.cluster.Close())
		}
	}()
	for _, stage := range stages {
		if !o.wants(t.name(stage), t.shape(g)) {
			continue
		}
		s, err := t.start(ctx, g, stage)
		if err != nil {
			return err
		}
		runs = append(runs, s)
	}
	if len(runs) == 0 {
		return nil
	}
	pool := b.Pool(g.ranks * g.threads)
	defer pool.Close()
	peak, flops := fmaLoop(pool)
	contenders := []work{peak}
	for _, s := range runs {
		contenders = append(contenders, s.step)
	}
	seconds, err := contest(o.Time, contenders...)
	if err != nil {
		return err
	}
	row := Row{Shape: t.shape(g), Threads: g.ranks * g.threads}
	for i, s := range runs {
		s.report(row, seconds[1+i], flops/seconds[0], emit)
	}
	if len(runs) == len(stages) {
		row.Name, row.Unit = t.preset+" stage 3 by stage 0", "ratio"
		row.Value, row.Limit = seconds[1]/seconds[2], 1
		emit(row.held())
	}
	return nil
}

// stepper trains a cluster, step after step.
type stepper struct {
	training
	stage   int
	cluster *zeroshard.Cluster
	model   *gpt.Model
	batches []zero.Batch // by leaf
	ctx     context.Context
	steps   int
	mallocs uint64 // of all steps but the first
}

// start makes a cluster and its data. GPT-2's vocabulary is rounded up to a multiple of 128, as most trainers do.
func (t training) start(ctx context.Context, g grid, stage int) (*stepper, error) {
	cfg, err := gpt.Preset(t.preset)
	if err != nil {
		return nil, err
	}
	cfg.Vocab = (cfg.Vocab + 127) / 128 * 128
	s := &stepper{training: t, stage: stage, ctx: ctx}
	if s.model, err = gpt.New(cfg); err != nil {
		return nil, err
	}
	for leaf := range g.ranks {
		s.batches = append(s.batches, tokens(cfg.Vocab, t.seq*t.micro, uint64(leaf)))
	}
	s.cluster, err = zeroshard.Local(ctx, zeroshard.Config{Model: s.model, Ranks: g.ranks, Threads: g.threads, Stage: stage,
		GlobalBatch: g.ranks * t.micro, MicroBatch: t.micro, Seq: t.seq, Prefetch: 1, Clip: 1, Seed: 1})
	return s, err
}

// tokens is a batch by chance.
func tokens(vocab, n int, seed uint64) zero.Batch {
	key := prng.New(seed)
	b := zero.Batch{Tokens: make([]int32, n), Targets: make([]int32, n)}
	for i := range n {
		b.Tokens[i] = int32(key.Intn(uint64(i), vocab))
		b.Targets[i] = int32(key.Intn(uint64(i+1), vocab))
	}
	return b
}

func (s *stepper) leaf(i int) (zero.Batch, error) { return s.batches[i], nil }

func (s *stepper) step() error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.steps++
	_, err := s.cluster.Step(s.ctx, s.leaf, optim.Hyper{Step: s.steps, LR: 1e-4})
	if runtime.ReadMemStats(&after); s.steps > 1 {
		s.mallocs += after.Mallocs - before.Mallocs
	}
	return err
}

// FlopsPerToken is what the model asks for, forward and backward: 6 for each parameter but those of positions, and 12·T for each
// element of each layer's vector, the products of attention over all pairs.
func FlopsPerToken(m *gpt.Model, seq int) float64 {
	c := m.Config()
	return 6*float64(m.Params()-c.Positions*c.Width) + 12*float64(c.Layers)*float64(c.Width)*float64(seq)
}

// report emits a stage's rows; peak is in operations a second.
func (s *stepper) report(row Row, seconds, peak float64, emit Emit) {
	name := s.name(s.stage)
	var tokens float64
	for _, b := range s.batches {
		tokens += float64(len(b.Tokens))
	}
	row.Name, row.Unit = name, "tokens/s"
	row.Value, row.Limit = tokens/seconds, peak/FlopsPerToken(s.model, s.seq)
	emit(row.held())

	ranks := s.cluster.Memory()
	row.Name, row.Unit = name+" allocations", "allocations/step"
	row.Value, row.Limit = float64(s.mallocs)/float64(s.steps-1), float64(len(s.cluster.Program().Train.Ops)*len(ranks))
	emit(row.held())

	row.Name, row.Unit, row.Value = name+" memory", "bytes/rank", 0
	for _, m := range ranks {
		row.Value, row.Limit = max(row.Value, float64(m.Used)), float64(m.Planned)
	}
	emit(row.held())
}
