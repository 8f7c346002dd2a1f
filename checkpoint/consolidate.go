package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"zeroshard/checkpoint/safetensors"
	"zeroshard/internal/claim"
)

// Consolidate writes whole tensors into one safetensors file at path, which must not exist: the weights by their parameters' names,
// and with all also the optimizer's state as "state/parameter". It streams: memory is a few blocks whatever the model's size. The file
// appears under its name when all of it is on the disk: it is made in a folder .NAME.tmp-N beside, of which the next that makes NAME removes what a
// killed process left.
func (s *Saved) Consolidate(f FS, to string, all bool) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("checkpoint: %s: %w", to, err)
		}
	}()
	to = path.Clean(to)
	if err := vacant(f, to); err != nil {
		return err
	}
	dir, release, err := beside(f, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.RemoveAll(dir), release()) }()
	made := path.Join(dir, path.Base(to))
	if err := s.consolidate(f, made, all); err != nil {
		return err
	}
	if err := vacant(f, to); err != nil { // it takes long
		return err
	}
	if err := f.Rename(made, to); err != nil {
		return err
	}
	return f.SyncDir(path.Dir(to))
}

// vacant refuses a name that is there.
func vacant(f FS, to string) error {
	names, err := f.List(path.Dir(to))
	if err != nil {
		return err
	}
	if base := path.Base(to); slices.Contains(names, base) || slices.Contains(names, base+"/") {
		return &fs.PathError{Op: "create", Path: to, Err: fs.ErrExist}
	}
	return nil
}

// beside makes a folder beside a name, for one writer alone where the file system is one of several processes.
func beside(f FS, to string) (dir string, release func() error, err error) {
	if _, ok := f.(OS); ok {
		c, err := claim.Beside(to)
		if err != nil {
			return "", nil, err
		}
		return c.Path, c.Close, nil
	}
	dir = path.Join(path.Dir(to), "."+path.Base(to)+unfinished)
	if err := f.RemoveAll(dir); err != nil {
		return "", nil, err
	}
	return dir, func() error { return nil }, f.MkdirAll(dir)
}

// consolidate makes the file at its first place.
func (s *Saved) consolidate(fs FS, path string, all bool) (err error) {
	var tensors []safetensors.Tensor
	var pieces []Piece
	for _, state := range append([]string{Weights}, s.Manifest.States...) {
		if state != Weights && !all {
			break
		}
		for _, p := range s.Manifest.Params {
			if p.Frozen && state != Weights {
				continue
			}
			t := safetensors.Tensor{Name: p.Name, DType: safetensors.F32}
			piece := Piece{Param: p.Name, State: state, Len: p.Len()}
			if state != Weights {
				t.Name = piece.key()
			}
			for _, d := range p.Shape {
				t.Shape = append(t.Shape, int64(d))
			}
			tensors, pieces = append(tensors, t), append(pieces, piece)
		}
	}
	f, err := fs.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, chunkBytes)
	w, err := safetensors.NewWriter(out, tensors, map[string]string{"format": "pt"})
	if err != nil {
		return err
	}
	buf := make([]byte, 4*scanElements)
	for _, p := range pieces {
		if err := s.stream(w, p, buf); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), out.Flush(), f.Sync())
}

// stream writes a piece through buf.
func (s *Saved) stream(w *safetensors.Writer, p Piece, buf []byte) error {
	for lo := 0; lo < p.Len; lo += len(buf) / 4 {
		part := buf[:4*min(len(buf)/4, p.Len-lo)]
		if err := fill(part, func(dst []float32) error { return s.Read(p.Param, p.State, lo, dst) }); err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
