package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"zeroshard/checkpoint/safetensors"
)

// Saved is a committed step, open for reading. Read may be called by several goroutines at a time.
type Saved struct {
	Manifest *Manifest
	dir      string
	blocks   *blocks
	index    map[string][]part // by tensor name, ascending and without a hole
}

// part is a piece as it lies in a file.
type part struct {
	from, len int
	file      int
	off       int64 // byte
	run       int64 // byte at which the run of parts of one state ends that this part is in: a rank reads it from start to end
}

// Open opens a committed step. It reads the manifest and the headers of all files, and proves that they hold every element once.
func (s *Store) Open(step int) (*Saved, error) {
	if err := s.Has(step); err != nil {
		return nil, err
	}
	return OpenStep(s.fs, s.StepDir(step))
}

// OpenStep opens the folder of a step.
func OpenStep(fs FS, dir string) (*Saved, error) {
	m, err := ReadManifest(fs, dir)
	if err != nil {
		return nil, err
	}
	s := &Saved{Manifest: m, dir: dir, index: map[string][]part{}}
	if s.blocks, err = openBlocks(fs, dir, m.Files); err != nil {
		return nil, err
	}
	for i := range s.blocks.files {
		if err := s.scan(i); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.complete(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.findRuns()
	return s, nil
}

// maxManifest bounds what is read into memory on a stranger's word.
const maxManifest = 1 << 30

// ReadManifest reads the manifest of a step's folder, and nothing else.
func ReadManifest(fs FS, dir string) (*Manifest, error) {
	at := path.Join(dir, ManifestFile)
	f, err := fs.Open(at)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	if f.Size() > maxManifest {
		return nil, corrupt(at, "%d bytes are no manifest", f.Size())
	}
	text := make([]byte, f.Size())
	if n, err := f.ReadAt(text, 0); n < len(text) {
		return nil, fmt.Errorf("checkpoint: %s: %w", at, errors.Join(err, io.ErrUnexpectedEOF))
	}
	m, err := decode(at, text)
	if err != nil {
		return nil, err
	}
	if step, ok := stepOf(path.Base(dir)); ok && step != m.Step {
		return nil, corrupt(at, "it is of step %d, its folder of step %d", m.Step, step)
	}
	return m, nil
}

// Dir is the step's folder.
func (s *Saved) Dir() string { return s.dir }

// scan adds the tensors of a file to the index.
func (s *Saved) scan(i int) error {
	f := s.blocks.files[i]
	st, err := safetensors.NewReader(s.blocks.file(i, 0), f.Bytes, f.path)
	var bad *CorruptError
	if errors.As(err, &bad) {
		return bad
	}
	if err != nil {
		return err
	}
	h := st.Header
	for _, t := range h.Tensors {
		p := part{from: 0, len: int(t.Len()), file: i, off: h.Data + t.Lo}
		if text, ok := h.Metadata[startKey(t.Name)]; ok {
			if p.from, err = strconv.Atoi(text); err != nil || p.from < 0 {
				return &CorruptError{File: f.path, Tensor: t.Name, Offset: -1, Reason: fmt.Sprintf("starts at element %q", text)}
			}
		}
		if t.DType != safetensors.F32 {
			return &CorruptError{File: f.path, Tensor: t.Name, Offset: -1, Reason: fmt.Sprintf("holds %s, not F32", t.DType)}
		}
		s.index[t.Name] = append(s.index[t.Name], p)
	}
	return nil
}

// complete proves that the files hold each element of each state of the manifest's parameters once, and nothing else.
func (s *Saved) complete() error {
	at := path.Join(s.dir, ManifestFile)
	tensors := 0
	for _, p := range s.Manifest.Params {
		for _, state := range s.Manifest.StatesOf(p) {
			key := Piece{Param: p.Name, State: state}.key()
			parts := s.index[key]
			slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.from, b.from) })
			end := 0
			for _, part := range parts {
				if part.from != end {
					return &CorruptError{File: s.blocks.files[part.file].path, Tensor: key, Offset: -1,
						Reason: fmt.Sprintf("a part starts at element %d, the one before it ends at %d", part.from, end)}
				}
				end += part.len
			}
			if end != p.Len() {
				return &CorruptError{File: at, Tensor: key, Offset: -1, Reason: fmt.Sprintf("shape %v has %d elements, the files hold %d", p.Shape, p.Len(), end)}
			}
			if len(parts) > 0 {
				tensors++
			}
		}
	}
	if tensors != len(s.index) {
		return corrupt(at, "the files hold %d tensors, the manifest knows %d of them", len(s.index), tensors)
	}
	return nil
}

// findRuns sets where each part's run ends.
func (s *Saved) findRuns() {
	type place struct {
		*part
		state string
	}
	files := make([][]place, len(s.blocks.files))
	for key, parts := range s.index {
		state, _, _ := strings.Cut(key, "/")
		for i := range parts {
			files[parts[i].file] = append(files[parts[i].file], place{&parts[i], state})
		}
	}
	for _, all := range files {
		slices.SortFunc(all, func(a, b place) int { return cmp.Compare(a.off, b.off) })
		for i, p := range slices.Backward(all) {
			if p.run = p.off + 4*int64(p.len); i+1 < len(all) && all[i+1].state == p.state {
				p.run = all[i+1].run
			}
		}
	}
}

// Param finds a parameter by name.
func (s *Saved) Param(name string) (Param, bool) {
	i := slices.IndexFunc(s.Manifest.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return s.Manifest.Params[i], true
}

// Read fills dst with elements [lo, lo+len(dst)) of a state of a parameter, from whatever files they are in. ErrMismatch: there is no
// such state or element; *CorruptError: the bytes are not those that were saved.
func (s *Saved) Read(param, state string, lo int, dst []float32) error {
	key := Piece{Param: param, State: state}.key()
	parts := s.index[key]
	for k := s.find(parts, lo); len(dst) > 0; k++ {
		if k < 0 || k >= len(parts) {
			return fmt.Errorf("%w: %s has no elements [%d, %d) of %s", ErrMismatch, s.dir, lo, lo+len(dst), key)
		}
		p := parts[k]
		n := min(len(dst), p.from+p.len-lo)
		if n <= 0 { // a part without elements
			continue
		}
		if err := s.readPart(p, lo-p.from, dst[:n]); err != nil {
			var bad *CorruptError
			if errors.As(err, &bad) && bad.Tensor == "" {
				bad = &CorruptError{File: bad.File, Tensor: key, Offset: bad.Offset, Reason: bad.Reason}
				return bad
			}
			return err
		}
		lo, dst = lo+n, dst[n:]
	}
	return nil
}

// find is the part that holds element lo, -1 for none.
func (s *Saved) find(parts []part, lo int) int {
	k, found := slices.BinarySearchFunc(parts, lo, func(p part, lo int) int { return cmp.Compare(p.from, lo) })
	if !found {
		k--
	}
	return k
}

func (s *Saved) readPart(p part, lo int, dst []float32) error {
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), 4*len(dst))
	if _, err := s.blocks.file(p.file, p.run).ReadAt(raw, p.off+4*int64(lo)); err != nil {
		return err
	}
	turn(raw)
	return nil
}

// Close closes the files.
func (s *Saved) Close() error { return s.blocks.close() }

// Fits proves that the step is of a model with these parameters, and of an optimizer with these states. All faults are named at once;
// they wrap ErrMismatch.
func (m *Manifest) Fits(params []Param, states []string) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrMismatch}, args...)...))
	}
	saved := map[string]Param{}
	for _, p := range m.Params {
		saved[p.Name] = p
	}
	for _, p := range params {
		was, ok := saved[p.Name]
		delete(saved, p.Name)
		switch {
		case !ok:
			bad("parameter %q is not in the checkpoint", p.Name)
		case !slices.Equal(was.Shape, p.Shape):
			bad("parameter %q has shape %v in the checkpoint, %v in the model", p.Name, was.Shape, p.Shape)
		case was.Frozen && !p.Frozen && len(states) > 0:
			bad("parameter %q was frozen when it was saved and has no optimizer state", p.Name)
		}
	}
	for name := range saved {
		bad("parameter %q of the checkpoint is not in the model", name)
	}
	if !slices.Equal(m.States, states) {
		bad("the checkpoint has optimizer state [%s], the optimizer wants [%s]", strings.Join(m.States, " "), strings.Join(states, " "))
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}
