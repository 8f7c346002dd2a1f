package zeroshard_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"zeroshard"
	"zeroshard/device"
	"zeroshard/internal/golden"
	"zeroshard/memory"
	"zeroshard/zero"
)

// refusal is what CheckFit says of c, or nil.
func refusal(t testing.TB, c zeroshard.Config) *zeroshard.FitError {
	t.Helper()
	err := zeroshard.CheckFit(c, program(t, c))
	var fit *zeroshard.FitError
	if err != nil && !errors.As(err, &fit) {
		t.Fatalf("not a *FitError: %v", err)
	}
	if err != nil && !errors.Is(err, memory.ErrLimit) {
		t.Errorf("not memory.ErrLimit: %v", err)
	}
	return fit
}

func peak(t testing.TB, c zeroshard.Config) int64 { return program(t, c).Cost().Peak() }

// What the user reads: who needs what, and what to change. Kernel scratch, which differs from one machine to the next, is taken out of all
// numbers.
func TestFitErrorText(t *testing.T) {
	c := preset(t, "tiny")
	c.Prefetch, c.Threads = 1, 1 // the default of Threads follows the cores
	scratch := program(t, c).Cost().Scratch
	var b strings.Builder
	for _, limit := range []int64{20 << 20, 12 << 20, 8 << 20, 1 << 20} {
		c.DeviceMemory = limit + scratch
		e := refusal(t, c)
		e.Peak, e.Limit = e.Peak-scratch, e.Limit-scratch
		for _, list := range [][]zeroshard.Candidate{e.Stages, e.Nearest} {
			for i := range list {
				list[i].Cost.Scratch -= scratch
			}
		}
		fmt.Fprintf(&b, "%v\n\n", e)
	}
	golden.Check(t, "testdata/fit-tiny.txt", b.String())
}

// A limit of exactly the peak is kept, to the byte: the run uses all of it. With one byte less it is refused before anything is made.
func TestLimitIsExact(t *testing.T) {
	for stage := range zero.Stages {
		t.Run(fmt.Sprintf("stage %d", stage), func(t *testing.T) {
			c := micro(t)
			c.Stage, c.Prefetch = stage, 1
			c.DeviceMemory = peak(t, c)
			cl := local(t, c)
			steps(t, cl, c, 1, 1)
			for _, m := range cl.Memory() {
				if m.Used != c.DeviceMemory {
					t.Errorf("rank %d used %d of %d bytes", m.Rank, m.Used, c.DeviceMemory)
				}
			}
			c.DeviceMemory--
			made := 0
			_, err := zeroshard.Local(ctx, c, zeroshard.WithDevice(func(_ int, d device.Device) device.Device {
				made++
				return d
			}))
			var fit *zeroshard.FitError
			if !errors.As(err, &fit) || !errors.Is(err, memory.ErrLimit) {
				t.Fatalf("one byte less: %v", err)
			}
			if fit.Peak != c.DeviceMemory+1 || fit.Limit != c.DeviceMemory {
				t.Errorf("one byte less: peak %d, limit %d, want %d and %d", fit.Peak, fit.Limit, c.DeviceMemory+1, c.DeviceMemory)
			}
			if made > 0 {
				t.Errorf("%d devices were made for a run that does not fit", made)
			}
		})
	}
}

func TestNoLimitIsNoLimit(t *testing.T) {
	if e := refusal(t, micro(t)); e != nil {
		t.Error(e)
	}
}

// The table has a row for every stage, and each says what that stage alone changes; also where the run has a window, or rests on the
// host what other stages cannot.
func TestFitErrorHasARowForEveryStage(t *testing.T) {
	for _, with := range []struct {
		stages  []int
		window  int
		offload zeroshard.Offload
	}{
		{stages: []int{0, 1, 2, 3}},
		{stages: []int{0, 1, 2, 3}, window: 1},
		{stages: []int{2, 3}, window: 64}, // stages 0 and 1 refuse it
		{stages: []int{1, 2, 3}, offload: zeroshard.Offload{Optimizer: zero.HostTier}},
		{stages: []int{3}, offload: zeroshard.Offload{Optimizer: zero.HostTier, Param: zero.HostTier}},
	} {
		for _, stage := range with.stages {
			c := micro(t)
			c.Stage, c.Window, c.Offload, c.DeviceMemory = stage, with.window, with.offload, 1
			e := refusal(t, c)
			if len(e.Stages) != len(zero.Stages) {
				t.Fatalf("stage %d, %+v: %d rows", stage, with, len(e.Stages))
			}
			for i, row := range e.Stages {
				other := c
				if other.Stage = i; i != stage {
					other.Window = 0
				}
				if i < 3 {
					other.Offload.Param = ""
				}
				if i < 1 {
					other.Offload.Optimizer = ""
				}
				if row.Stage != i || row.Cost != program(t, other).Cost() {
					t.Errorf("stage %d, %+v: row %d is of stage %d: %+v", stage, with, i, row.Stage, row.Cost)
				}
			}
			if e.Stages[stage].Cost.Peak() != e.Peak {
				t.Errorf("stage %d, %+v: its row says %d, the peak is %d", stage, with, e.Stages[stage].Cost.Peak(), e.Peak)
			}
		}
	}
}

// change says how far a setting is from c: first by ranks, then replicas, recompute, prefetch, and last by stage, upwards before downwards.
func change(c, near zeroshard.Config) int {
	n := near.Ranks
	for _, differs := range []bool{max(near.Replicas, 1) != max(c.Replicas, 1), near.Recompute != c.Recompute, near.Prefetch != c.Prefetch} {
		if n *= 2; differs {
			n++
		}
	}
	if near.Stage > c.Stage {
		return 8*n + 2*(near.Stage-c.Stage) - 1
	}
	return 8*n + 2*(c.Stage-near.Stage)
}

// applied reads a setting as the command line would.
func applied(t *testing.T, c zeroshard.Config, setting string) zeroshard.Config {
	t.Helper()
	words := strings.Fields(setting)
	for i := 0; i+1 < len(words); i += 2 {
		v, err := strconv.Atoi(words[i+1])
		if words[i+1] == "all" {
			v, err = 1, nil
		}
		field, ok := map[string]*int{"--stage": &c.Stage, "--ranks": &c.Ranks, "--recompute": &c.Recompute, "--prefetch": &c.Prefetch,
			"--replicas": &c.Replicas, "--window": &c.Window}[words[i]]
		if !ok || err != nil {
			t.Fatalf("setting %q: %s %s", setting, words[i], words[i+1])
		}
		*field = v
	}
	return c
}

type kind struct{ stage, ranks, replicas int }

// fitting lists by trial which stages and arrangements of ranks fit, whatever else must change for it.
func fitting(t testing.TB, c zeroshard.Config) map[kind]bool {
	fits := map[kind]bool{}
	for ranks := c.Ranks; ; ranks = min(2*ranks, c.GlobalBatch/c.MicroBatch) {
		for stage := range zero.Stages {
			for _, replicas := range []int{max(c.Replicas, 1), 1} {
				for _, prefetch := range []int{c.Prefetch, 0} {
					for _, recompute := range []int{c.Recompute, 1} {
						near := c
						near.Ranks, near.Stage, near.Replicas, near.Prefetch, near.Recompute, near.Window = ranks, stage, replicas, prefetch, recompute, 0
						pr, err := zeroshard.Plan(near)
						if sharded := ranks > replicas || stage == c.Stage; err == nil && sharded && pr.Cost().Peak() <= c.DeviceMemory {
							fits[kind{stage, ranks, replicas}] = true
						}
					}
				}
			}
		}
		if ranks == c.GlobalBatch/c.MicroBatch {
			return fits
		}
	}
}

// For limits from hopeless to ample, on several meshes: what is suggested fits, is what its flags say, is ordered by how much it
// changes, and nothing that fits is forgotten while there is room on the list.
func TestSuggestionsFit(t *testing.T) {
	for _, mesh := range []struct{ ranks, replicas, stage, recompute, window int }{
		{1, 0, 0, 0, 0}, {2, 0, 0, 0, 2}, {2, 0, 3, 0, 0}, {2, 0, 2, 0, 0}, {3, 0, 1, 2, 0}, {4, 2, 2, 0, 0}, {4, 4, 3, 0, 0}, {8, 0, 3, 1, 0},
	} {
		c := micro(t)
		c.Ranks, c.Replicas, c.Stage, c.Recompute, c.Window, c.Prefetch = mesh.ranks, mesh.replicas, mesh.stage, mesh.recompute, mesh.window, 2
		need := peak(t, c)
		for _, percent := range []int64{1, 40, 70, 97} {
			c.DeviceMemory = need * percent / 100
			t.Run(fmt.Sprintf("%+v of %d%%", mesh, percent), func(t *testing.T) {
				e := refusal(t, c)
				if e == nil {
					t.Fatal("fits")
				}
				met := map[kind]bool{}
				own := slices.DeleteFunc(slices.Clone(e.Nearest), func(n zeroshard.Candidate) bool { return n.Config.Offload.Optimizer != "" })
				for _, n := range e.Nearest[len(own):] { // what offload alone brings comes last
					if got := peak(t, n.Config); got > c.DeviceMemory || got != n.Cost.Peak() || !strings.Contains(n.Setting, "--offload-optimizer") {
						t.Errorf("%s needs %d, it says %d, the limit is %d", n.Setting, got, n.Cost.Peak(), c.DeviceMemory)
					}
				}
				e.Nearest = own
				for i, n := range e.Nearest {
					near := applied(t, c, n.Setting)
					if got := peak(t, near); got > c.DeviceMemory || got != n.Cost.Peak() {
						t.Errorf("%s needs %d, it says %d, the limit is %d", n.Setting, got, n.Cost.Peak(), c.DeviceMemory)
					}
					if refusal(t, n.Config) != nil || program(t, n.Config).SHA256() != program(t, near).SHA256() {
						t.Errorf("%s: its Config is another: %+v", n.Setting, n.Config)
					}
					if i > 0 && change(c, e.Nearest[i-1].Config) >= change(c, n.Config) {
						t.Errorf("%q comes after %q", n.Setting, e.Nearest[i-1].Setting)
					}
					met[kind{near.Stage, near.Ranks, max(near.Replicas, 1)}] = true
				}
				want := fitting(t, c)
				if len(met) != len(e.Nearest) || len(met) != min(len(want), 4) {
					t.Errorf("%d suggestions for %d stages and worlds; %d fit: %v", len(e.Nearest), len(met), len(want), want)
				}
				for k := range met {
					if !want[k] {
						t.Errorf("%+v does not fit", k)
					}
				}
			})
		}
	}
}

// What is suggested trains to the same bits.
func TestSuggestionsHaveTheSameResult(t *testing.T) {
	c := micro(t)
	c.Prefetch = 1
	big := local(t, c)
	steps(t, big, c, 1, 2)
	want := hash(t, big)
	for _, percent := range []int64{95, 75} {
		c.DeviceMemory = peak(t, c) * percent / 100
		e := refusal(t, c)
		if len(e.Nearest) == 0 {
			t.Fatalf("no suggestion for %d%%", percent)
		}
		for _, n := range e.Nearest {
			small := local(t, n.Config)
			steps(t, small, n.Config, 1, 2)
			if got := hash(t, small); got != want {
				t.Errorf("%s: state %s, want %s", n.Setting, got, want)
			}
		}
	}
}

// Where nothing with the same result fits, the text says what would have to change.
func TestNothingFits(t *testing.T) {
	c := micro(t)
	c.DeviceMemory = 1
	e := refusal(t, c)
	if len(e.Nearest) > 0 {
		t.Fatalf("%v fits into one byte", e.Nearest[0].Setting)
	}
	text := lines(e)
	if last := text[len(text)-1]; !strings.HasSuffix(last, "use a smaller model, sequence or micro-batch") {
		t.Errorf("the last line is %q", last)
	}
	if n := len(slices.DeleteFunc(text, func(s string) bool { return !strings.HasSuffix(s, "does not fit") })); n != len(zero.Stages) {
		t.Errorf("%d stages do not fit", n)
	}
}
