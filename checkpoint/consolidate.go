package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"unsafe"

	"zeroshard/checkpoint/safetensors"
)

// Consolidate writes whole tensors into one safetensors file at path, which must not exist: the weights by their parameters' names,
// and with all also the optimizer's state as "state/parameter". It streams: memory is a few blocks whatever the model's size.
func (s *Saved) Consolidate(fs FS, path string, all bool) (err error) {
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
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(fmt.Errorf("checkpoint: %s: %w", path, err), fs.RemoveAll(path))
		}
	}()
	out := bufio.NewWriterSize(f, blockBytes)
	w, err := safetensors.NewWriter(out, tensors, map[string]string{"format": "pt"})
	if err != nil {
		return err
	}
	buf := make([]float32, scanElements)
	for _, p := range pieces {
		if err := s.stream(w, p, buf); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), out.Flush(), f.Sync())
}

func (s *Saved) stream(w *safetensors.Writer, p Piece, buf []float32) error {
	for lo := 0; lo < p.Len; lo += len(buf) {
		part := buf[:min(len(buf), p.Len-lo)]
		raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(part))), 4*len(part))
		if err := fill(raw, func(dst []float32) error { return s.Read(p.Param, p.State, lo, dst) }); err != nil {
			return err
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
	return nil
}
