package bench_test

import (
	"context"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"testing"
	"time"

	"zeroshard/bench"
	"zeroshard/collectives"
	"zeroshard/collectives/inproc"
	"zeroshard/device"
	dcpu "zeroshard/device/cpu"
	"zeroshard/kernels"
	kcpu "zeroshard/kernels/cpu"
	"zeroshard/models/gpt"
)

func backend() bench.Backend {
	return bench.Backend{
		Device:  func() device.Device { return dcpu.New(dcpu.Options{}) },
		Pool:    func(threads int) bench.Pool { return dcpu.NewPool(threads) },
		Kernels: func(p kernels.Pool) kernels.Backend { return kcpu.New(p) },
		Groups: func(ranks int) ([]collectives.Group, error) {
			return inproc.New(ranks, func(int) collectives.Folder { return kcpu.New(nil) })
		},
	}
}

// collect runs a benchmark for as short as it can be.
func collect(t *testing.T, filter string, run func(bench.Options, bench.Emit) error) (rows []bench.Row) {
	t.Helper()
	o := bench.Options{Threads: 2, Filter: regexp.MustCompile(filter), Time: time.Nanosecond}
	if err := run(o, func(r bench.Row) { rows = append(rows, r) }); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if !(r.Value > 0 && r.Limit > 0) || math.IsInf(r.Value/r.Limit, 0) || r.OfLimit != r.Value/r.Limit || r.Unit == "" || r.Threads != 2 {
			t.Errorf("%+v", r)
		}
	}
	return rows
}

func labels(rows []bench.Row) (out []string) {
	for _, r := range rows {
		out = append(out, r.Name+" "+r.Shape)
	}
	return out
}

func TestKernels(t *testing.T) {
	rows := collect(t, `^(fma peak|sgemm (NN|TN) .*x768x|layernorm|attention T 256)`, func(o bench.Options, e bench.Emit) error { return bench.Kernels(backend(), o, e) })
	got := labels(rows)
	for _, want := range []string{"sgemm NN 256x768x768", "sgemm NN 256x768x3072", "sgemm TN 3072x768x1024", "sgemm geomean 8 shapes", "layernorm 1024x768",
		"layernorm backward 1024x768", "attention T 256, 12 heads of 64"} {
		if !slices.Contains(got, want) {
			t.Errorf("no row %q in %q", want, got)
		}
	}
	if n := len(rows); n != 1+8+1+2+1 {
		t.Errorf("%d rows: %q", n, got)
	}
}

func TestCollectives(t *testing.T) {
	rows := collect(t, `^(all-gather|reduce-scatter) 1 MiB`, func(o bench.Options, e bench.Emit) error {
		return bench.Collectives(context.Background(), backend(), o, e)
	})
	if got, want := labels(rows), []string{"all-gather 1 MiB, 2 ranks", "reduce-scatter 1 MiB, 2 ranks"}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}

func TestStep(t *testing.T) {
	if testing.Short() {
		t.Skip("trains some steps of tiny")
	}
	rows := collect(t, `^tiny stage [03] .*2 ranks`, func(o bench.Options, e bench.Emit) error {
		return bench.Step(context.Background(), backend(), o, e)
	})
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
		if r.Name == "tiny stage 3 memory" && r.OfLimit != 1 {
			t.Errorf("used %v bytes of %v planned", r.Value, r.Limit)
		}
	}
	want := []string{"tiny stage 0", "tiny stage 0 allocations", "tiny stage 0 memory", "tiny stage 3", "tiny stage 3 allocations", "tiny stage 3 memory",
		"tiny stage 3 by stage 0"}
	if !slices.Equal(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
}

// GPT-2 with its vocabulary rounded up: 124 475 904 parameters, of which 786 432 are positions.
func TestFlopsPerToken(t *testing.T) {
	cfg, err := gpt.Preset("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Vocab = 50304
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bench.FlopsPerToken(m, 1024), float64(6*(124475904-786432)+12*12*768*1024); got != want {
		t.Errorf("%v operations a token, want %v", got, want)
	}
}

func TestRowJSON(t *testing.T) {
	raw, err := json.Marshal(bench.Row{Name: "a", Shape: "b", Threads: 1, Value: 2, Unit: "GB/s", Limit: 4, OfLimit: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(raw), `{"name":"a","shape":"b","threads":1,"value":2,"unit":"GB/s","limit":4,"of_limit":0.5}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
