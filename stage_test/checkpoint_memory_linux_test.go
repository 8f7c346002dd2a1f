package stagetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"zeroshard"
	"zeroshard/checkpoint"
	"zeroshard/memory"
	"zeroshard/optim"
	"zeroshard/zero"
)

// What loading, consolidating and comparing may hold beside the state itself: checked blocks, buffers, and the garbage of both.
const readingMemory = 96 << 20

// peakOver is how much more than before was resident at the most while f ran, beside what others keep.
func peakOver(t *testing.T, f func()) int64 {
	t.Helper()
	debug.FreeOSMemory()
	before := residentBytes(t)
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak begins anew
		t.Skipf("the peak of resident memory is not known here: %v", err)
	}
	f()
	return peakBytes(t) - before
}

// heavy is a model of 10 million parameters: its state is 120 MB. It has nothing to compute.
func heavy() zeroshard.Config {
	rows := 10_007
	if testing.Short() {
		rows = 3_001
	}
	return oddJob(&odd{vocab: rows, dim: 1000}, 4, optim.DefaultAdamW())
}

// tally counts the bytes that are read.
type tally struct {
	checkpoint.FS
	bytes atomic.Int64
}

func (f *tally) Open(path string) (checkpoint.Reader, error) {
	r, err := f.FS.Open(path)
	return &tallied{r, f}, err
}

type tallied struct {
	checkpoint.Reader
	of *tally
}

func (r *tallied) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.Reader.ReadAt(p, off)
	r.of.bytes.Add(int64(n))
	return n, err
}

// 31: every rank loaded all optimizer state: out of memory. 34: a sharded save allocated the full state on every rank. 35: consolidation did too. Here the
// process, which is all ranks together, never holds more beside its arenas than buffers (and, while it saves, one copy of what it saves);
// all ranks together read a step's bytes once, but for the ends of blocks, and a few blocks that are fetched ahead past the end of a rank's share.
func TestPain31And34And35BoundedMemory(t *testing.T) {
	if raced {
		t.Skip("the race detector keeps several bytes for each byte of ours")
	}
	ctx := context.Background()
	j := heavy()
	dir := t.TempDir()
	fs := &tally{FS: checkpoint.OS{}}
	store := checkpoint.NewStore(fs, filepath.Join(dir, "checkpoints"))
	from := cell{Stage: 3, Ranks: 4}.config(j)
	cl, err := zeroshard.Local(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	saver := checkpoint.NewSaver(store, 0, nil)
	_, copied := zeroshard.SaveBytes(cl.Program())
	grown := peakOver(t, func() {
		if err := errors.Join(saver.Save(cl.Manifest(checkpoint.Position{Step: 1, Updates: 1}), cl.Sources()), saver.Wait()); err != nil {
			t.Fatal(err)
		}
	})
	if planned := int64(from.Ranks) * copied; grown > planned+outsideProcess {
		t.Errorf("a save held %s, planned is %s", memory.FormatBytes(grown), memory.FormatBytes(planned))
	} else {
		t.Logf("a save held %s of %s that were planned", memory.FormatBytes(grown), memory.FormatBytes(planned))
	}
	if err := errors.Join(saver.Close(), cl.Close()); err != nil {
		t.Fatal(err)
	}

	saved, err := store.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	size := int64(0)
	for _, f := range saved.Manifest.Files {
		size += f.Bytes
	}
	for _, c := range []cell{{Stage: 3, Ranks: 3}, {Stage: 3, Ranks: 1}} {
		cl, err := zeroshard.Local(ctx, c.config(j))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first reaches what no step has touched yet
			fs.bytes.Store(0)
			grown = peakOver(t, func() {
				if err := cl.Restore(ctx, saved); err != nil {
					t.Fatal(err)
				}
			})
		}
		read := fs.bytes.Load()
		if c.Ranks == 1 && read > size+size/10 {
			t.Errorf("one rank read %d bytes of a step of %d", read, size)
		}
		if ends := int64(c.Ranks) * 3 * 8 << 20; read > size+ends {
			t.Errorf("%v: %d bytes were read of a step of %d", c, read, size)
		}
		if grown > readingMemory {
			t.Errorf("%v: loading %s held %s", c, memory.FormatBytes(size), memory.FormatBytes(grown))
		} else {
			t.Logf("%v: loading %s held %s and read %s", c, memory.FormatBytes(size), memory.FormatBytes(grown), memory.FormatBytes(read))
		}
		if err := cl.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range map[string]func() error{
		"consolidate": func() error { return saved.Consolidate(checkpoint.OS{}, filepath.Join(dir, "all"), true) },
		"verify":      saved.Verify,
		"diff": func() error {
			return checkpoint.Diff(saved, saved, func(d checkpoint.Difference) bool { t.Errorf("%v", d); return false })
		},
	} {
		grown := peakOver(t, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		})
		if grown > readingMemory {
			t.Errorf("%s of %s held %s", name, memory.FormatBytes(size), memory.FormatBytes(grown))
		} else {
			t.Logf("%s held %s", name, memory.FormatBytes(grown))
		}
	}
}

// 31 again, by rank and to the byte: a rank asks for the elements that rest on it, each once, and for no others.
func TestPain31ARankAsksForItsShare(t *testing.T) {
	for _, c := range []cell{{Stage: 3, Ranks: 4}, {Stage: 1, Ranks: 3}, {Stage: 3, Ranks: 4, Replicas: 2}, {Stage: 2, Ranks: 3, Optim: zero.HostTier}} {
		w := mustCrew(t, c.config(job(t, "micro", 8, 1, 8, 0)), seams{})
		for r, e := range w.engines {
			var asked, rests int64
			for _, spec := range w.configs[r].Model.Flats() {
				for _, p := range spec.Params {
					for state := zero.Master; state < len(w.configs[r].Optimizer.States()); state++ {
						if err := e.Write(p.Name, state, func(lo int, dst []float32) error {
							asked += int64(4 * len(dst))
							return nil
						}); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			cost := e.Program().Cost()
			rests = cost.ByKind()["parameter"] + cost.ByKind()["optimizer"] + cost.Host.Holds // with holes, and, on the host, gradients
			if asked > rests || asked == 0 {
				t.Errorf("%v, rank %d: asked for %d bytes, %d rest there", c, r, asked, rests)
			}
		}
	}
}

// 33: memory climbed with each save until there was none left. Here 20 saves leave the process as the first did, and a run folder holds as many as
// are to be kept.
func TestPain33MemoryIsFlatOverSaves(t *testing.T) {
	if raced {
		t.Skip("the race detector keeps several bytes for each byte of ours")
	}
	ctx := context.Background()
	j := cell{Stage: 3, Ranks: 3}.config(oddJob(&odd{vocab: 1009, dim: 500}, 4, optim.DefaultAdamW()))
	cl, err := zeroshard.Local(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	store := checkpoint.NewStore(checkpoint.OS{}, filepath.Join(t.TempDir(), "checkpoints"))
	saver := checkpoint.NewSaver(store, 2, nil)
	var settled int64
	goroutines := 0
	for step := 1; step <= 20; step++ {
		if err := saver.Save(cl.Manifest(checkpoint.Position{Step: step, Updates: step}), cl.Sources()); err != nil {
			t.Fatal(err)
		}
		if step == 3 {
			if err := saver.Wait(); err != nil {
				t.Fatal(err)
			}
			debug.FreeOSMemory()
			settled, goroutines = residentBytes(t), runtime.NumGoroutine()
		}
	}
	if err := saver.Wait(); err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	if grown := residentBytes(t) - settled; grown > 4<<20 {
		t.Errorf("17 saves left %s", memory.FormatBytes(grown))
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d after the third save", n, goroutines)
	}
	steps, err := store.Verify()
	if err != nil || fmt.Sprint(steps) != "[19 20]" {
		t.Errorf("steps %v, %v", steps, err)
	}
	debug.FreeOSMemory()
	before := residentBytes(t)
	if err := saver.Close(); err != nil {
		t.Error(err)
	}
	debug.FreeOSMemory()
	if freed := before - residentBytes(t); freed < 5<<20 {
		t.Errorf("Close gave back %s, the copies had 6 MB", memory.FormatBytes(freed))
	}
}
