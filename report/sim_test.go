package report

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"zeroshard/models"
	"zeroshard/models/gpt"
	"zeroshard/shard"
	"zeroshard/zero"
)

// sim runs a plan on ranks that do nothing but take a stated time, on a clock of its own.
type sim struct {
	t       *testing.T
	program *zero.Program
	book    *Book
	now     time.Duration
}

// newSim is a small GPT on two ranks at stage 3, one micro-batch each.
func newSim(t *testing.T, keep int) *sim {
	t.Helper()
	return simOf(t, keep, 1, 2, zero.Options{Leaves: 2, Prefetch: 1})
}

func simOf(t *testing.T, keep, replicas, shards int, o zero.Options) *sim {
	t.Helper()
	m, err := gpt.New(gpt.Config{Vocab: 19, Positions: 4, Layers: 2, Heads: 2, Width: 8})
	if err != nil {
		t.Fatal(err)
	}
	l, err := shard.NewLayout(m.Flats(), 0)
	if err != nil {
		t.Fatal(err)
	}
	mesh, err := shard.NewMesh(replicas, shards)
	if err != nil {
		t.Fatal(err)
	}
	o.Shape, o.States = models.Shape{Batch: 1, Seq: 4}, []string{"m", "v"}
	pr, err := zero.CompileAll(l, m, zero.Stages[3], mesh, o)
	if err != nil {
		t.Fatal(err)
	}
	s := &sim{t: t, program: pr}
	s.book = NewBook(pr, m, keep, func() time.Duration { return s.now })
	return s
}

// lasts is how long an op takes: rank 1 computes a quarter slower, so rank 0 waits for it.
func lasts(op *zero.Op, rank int) time.Duration {
	us := time.Microsecond
	switch {
	case op.Lane == zero.Comm:
		return 8 * us
	case op.Lane != zero.Compute:
		return 2 * us
	case op.Verb == zero.Forward:
		us *= 10
	case op.Verb == zero.Backward || op.Verb == zero.LossGrad:
		us *= 20
	}
	return us * time.Duration(4+rank) / 4
}

// schedule is when each op of the plan runs on each rank: lanes in list order, behind their waits; a collective moves when its last member
// has come.
func (s *sim) schedule(begin time.Duration) [][]opTime {
	p := s.program.Train
	world := p.Mesh.World()
	times, free := make([][]opTime, world), make([][zero.Host]int64, world)
	for r := range times {
		times[r] = make([]opTime, len(p.Ops))
		for l := range free[r] {
			free[r][l] = int64(begin)
		}
	}
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Lane == zero.Host {
			continue
		}
		for r := range times {
			t := &times[r][i]
			t.start = free[r][op.Lane]
			for _, d := range op.After {
				t.start = max(t.start, times[r][d].end)
			}
			t.end = t.start + int64(lasts(op, r))
		}
		for r := range times {
			if op.Lane == zero.Comm {
				for _, peer := range p.Mesh.Ranks(r, op.Axis) {
					times[r][i].end = max(times[r][i].end, times[peer][i].start+int64(lasts(op, r)))
				}
			}
			free[r][op.Lane] = times[r][i].end
		}
	}
	return times
}

// step tells the recorders of one step, in the order of time.
func (s *sim) step(number int) []RankStep {
	type call struct {
		at       int64
		rank, op int
		done     bool
	}
	begin := s.now
	var calls []call
	for r, times := range s.schedule(begin) {
		for i, t := range times {
			if t.end != 0 {
				calls = append(calls, call{t.start, r, i, false}, call{t.end, r, i, true})
			}
		}
	}
	slices.SortStableFunc(calls, func(x, y call) int {
		if x.at != y.at {
			return cmp.Compare(x.at, y.at)
		}
		if x.done != y.done && x.op != y.op { // bytes are handed on: ends first
			if x.done {
				return -1
			}
			return 1
		}
		return 0
	})
	for _, c := range calls {
		s.now = time.Duration(c.at)
		s.book.Rank(c.rank).Op(s.program.Train, c.op, c.done)
	}
	return s.book.EndStep(number, s.now-begin)
}
