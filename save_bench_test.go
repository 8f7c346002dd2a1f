package zeroshard_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"zeroshard"
	"zeroshard/checkpoint"
	"zeroshard/internal/pages"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/zero"
)

// gpt2Cluster trains the 124M model on two ranks, with short sequences: its state is what matters here, 1.49 GB in files.
func gpt2Cluster(b *testing.B, seq int) *zeroshard.Cluster {
	b.Helper()
	cfg, err := gpt.Preset("gpt2")
	if err != nil {
		b.Fatal(err)
	}
	m, err := gpt.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	c, err := zeroshard.Local(context.Background(), zeroshard.Config{Model: m, Ranks: 2, Stage: 3, GlobalBatch: 2, MicroBatch: 1, Seq: seq, Prefetch: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

func manifest(c *zeroshard.Cluster, step int) checkpoint.Manifest {
	m := c.Manifest(checkpoint.Position{Step: step, Updates: step})
	m.Model, m.Settings = []byte("{}"), []byte("{}")
	return m
}

const directChunk = 4 << 20

// direct does plain direct I/O with two files at the same time, and returns how long it took.
func direct(b *testing.B, paths []string, do func(path string, buf []byte) error) time.Duration {
	b.Helper()
	mem, err := pages.Map(int64(len(paths)) * directChunk)
	if err != nil {
		b.Fatal(err)
	}
	defer pages.Unmap(mem)
	for i := range mem {
		mem[i] = byte(i * 7)
	}
	began := time.Now()
	var g errgroup.Group
	for i, path := range paths {
		g.Go(func() error { return do(path, mem[i*directChunk:][:directChunk:directChunk]) })
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// writeDirect writes so many bytes to a new file.
func writeDirect(bytes int64) func(path string, buf []byte) error {
	return func(path string, buf []byte) error {
		f, err := checkpoint.OS{}.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		for at := int64(0); at < bytes; at += directChunk {
			if _, err := f.Write(buf); err != nil {
				return err
			}
		}
		return f.Sync()
	}
}

// readDirect reads a file from start to end.
func readDirect(path string, buf []byte) error {
	f, err := openDirect(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for at := int64(0); ; at += directChunk {
		if n, err := f.ReadAt(buf, at); err == io.EOF || err == nil && n < len(buf) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// BenchmarkSave saves the 124M model's state and restores it, and compares both with plain direct I/O in the same run: of as many bytes into two other
// files, and from the step's own files. The page cache is emptied of the files before they are read, and each of the two comes first in turn, since
// the disk may have a cache too.
func BenchmarkSave(b *testing.B) {
	c := gpt2Cluster(b, 32)
	dir := b.TempDir()
	var saving, loading, writing, reading time.Duration
	bytes := int64(0)
	for i := range b.N {
		s := checkpoint.NewStore(checkpoint.OS{}, filepath.Join(dir, fmt.Sprint(i)))
		save := func() {
			began := time.Now()
			if err := s.Save(manifest(c, 1), c.Sources()); err != nil {
				b.Fatal(err)
			}
			saving += time.Since(began)
		}
		write := func() {
			paths := []string{filepath.Join(dir, "direct-0"), filepath.Join(dir, "direct-1")}
			writing += direct(b, paths, writeDirect(savedBytes/2))
			for _, p := range paths {
				os.Remove(p)
			}
		}
		inTurn(i, save, write)
		m, err := checkpoint.ReadManifest(checkpoint.OS{}, s.StepDir(1))
		if err != nil {
			b.Fatal(err)
		}
		var files []string
		bytes = 0
		for _, f := range m.Files {
			bytes += f.Bytes
			files = append(files, filepath.Join(s.StepDir(1), f.Name))
			forget(b, files[len(files)-1])
		}
		inTurn(i, func() {
			began := time.Now()
			step, err := s.Open(1)
			if err == nil {
				err = c.Restore(context.Background(), step)
			}
			if err != nil {
				b.Fatal(err)
			}
			loading += time.Since(began)
			step.Close()
		}, func() { reading += direct(b, files, readDirect) })
		os.RemoveAll(s.Dir())
	}
	rate := func(d time.Duration) float64 { return float64(bytes) * float64(b.N) / d.Seconds() / 1e6 }
	b.ReportMetric(rate(saving), "save-MB/s")
	b.ReportMetric(rate(loading), "load-MB/s")
	b.ReportMetric(float64(writing)/float64(saving)*float64(bytes)/savedBytes, "save/direct")
	b.ReportMetric(float64(reading)/float64(loading), "load/direct")
}

// savedBytes is about what the 124M model's state has.
const savedBytes = 1_493_000_000

func inTurn(round int, a, b func()) {
	if round%2 == 1 {
		a, b = b, a
	}
	a()
	b()
}

// BenchmarkSaveWhileTraining trains the 124M model for 20 steps without a save and 20 with one, in turn: how much longer the second take.
func BenchmarkSaveWhileTraining(b *testing.B) {
	const seq, steps = 64, 20
	c := gpt2Cluster(b, seq)
	batch := zero.Batch{Tokens: make([]int32, seq), Targets: make([]int32, seq)}
	for i := range batch.Tokens {
		batch.Tokens[i], batch.Targets[i] = int32(i*37%50257), int32(i*53%50257)
	}
	leaf := func(int) (zero.Batch, error) { return batch, nil }
	store := checkpoint.NewStore(checkpoint.OS{}, b.TempDir())
	saver := checkpoint.NewSaver(store, 1, nil)
	defer saver.Close()
	step := 0
	run := func(save bool) time.Duration {
		began := time.Now()
		for i := range steps {
			step++
			if _, err := c.Step(context.Background(), leaf, optim.Hyper{Step: step, LR: 1e-4}); err != nil {
				b.Fatal(err)
			}
			if save && i == 0 {
				if err := saver.Save(manifest(c, step), c.Sources()); err != nil {
					b.Fatal(err)
				}
			}
		}
		return time.Since(began)
	}
	run(true) // the snapshot's memory
	var with, without time.Duration
	for range b.N {
		without += run(false)
		with += run(true)
		if err := saver.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*(float64(with)/float64(without)-1), "%longer")
	b.ReportMetric(without.Seconds()/float64(b.N*steps)*1e3, "ms/step")
}
