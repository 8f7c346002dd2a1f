package crashfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"zeroshard/checkpoint"
)

// Fault is what happens at one operation.
type Fault int

// The faults.
const (
	None  Fault = iota
	Stop        // the machine or process ends before the operation; it and all later ones fail with ErrStopped
	Fail        // the operation fails with FS.Err, and has done nothing
	Short       // of a write: half of it is done; of others: Fail
)

// ErrStopped is the error of all operations after Stop.
var ErrStopped = errors.New("crashfs: stopped")

// Loss is what a stop takes away of that which was not safe.
type Loss int

// The losses.
const (
	Nothing  Loss = iota // kill -9: the system lives on
	All                  // names and bytes
	Contents             // names are kept, bytes are not: files are as long as what was flushed
	Torn                 // names are kept, and half of the bytes that were not flushed, with garbage at the end
	losses
)

// Losses lists them.
func Losses() []Loss {
	var all []Loss
	for l := range losses {
		all = append(all, l)
	}
	return all
}

func (l Loss) String() string { return [...]string{"nothing", "all", "contents", "torn"}[l] }

// FS is the file system. The zero value is empty and never fails.
type FS struct {
	At    int // operation, counted from 1, at which Fault happens; 0: never
	Fault Fault
	Err   error // of Fail and Short

	mu      sync.Mutex
	root    dir
	ops     []string
	stopped bool
}

var _ checkpoint.FS = (*FS)(nil)

// dir is a folder: its names as they are, and those that are safe.
type dir struct{ now, safe map[string]node }

type node any // *dir or *file

type file struct{ now, safe []byte }

func newDir() *dir { return &dir{map[string]node{}, map[string]node{}} }

// Ops lists the operations so far.
func (f *FS) Ops() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ops)
}

// step counts an operation and returns the error that it must fail with; short says that half a write is to be done first.
func (f *FS) step(format string, args ...any) (short bool, err error) {
	if f.stopped {
		return false, ErrStopped
	}
	f.ops = append(f.ops, fmt.Sprintf(format, args...))
	if len(f.ops) != f.At {
		return false, nil
	}
	switch f.Fault {
	case Stop:
		f.stopped = true
		return false, ErrStopped
	case Fail:
		return false, f.Err
	case Short:
		return true, f.Err
	}
	return false, nil
}

// Restart is what a new process finds.
func (f *FS) Restart(l Loss) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &FS{root: *survive(&f.root, l)}
}

func survive(d *dir, l Loss) *dir {
	names := d.now
	if l == All {
		names = d.safe
	}
	out := newDir()
	for name, n := range names {
		switch n := n.(type) {
		case *dir:
			out.now[name] = survive(n, l)
		case *file:
			out.now[name] = &file{now: n.survive(l)}
		}
	}
	for name, n := range out.now {
		if x, ok := n.(*file); ok {
			x.safe = x.now
		}
		out.safe[name] = n
	}
	return out
}

func (x *file) survive(l Loss) []byte {
	switch {
	case l == Nothing:
		return slices.Clone(x.now)
	case l == Torn && len(x.now) > len(x.safe):
		kept := slices.Clone(x.now[:len(x.safe)+(len(x.now)-len(x.safe))/2])
		return append(kept, "garbage"...)
	}
	return slices.Clone(x.safe)
}

// find walks to a path.
func (f *FS) find(at string) (node, error) {
	var n node = &f.root
	for name := range strings.SplitSeq(strings.Trim(path.Clean(at), "/"), "/") {
		d, ok := n.(*dir)
		if ok && (name == "." || name == "") { // the root
			continue
		}
		if !ok || d.now[name] == nil {
			return nil, &fs.PathError{Op: "find", Path: at, Err: fs.ErrNotExist}
		}
		n = d.now[name]
	}
	return n, nil
}

func (f *FS) folder(at string) (*dir, error) {
	n, err := f.find(at)
	if err != nil {
		return nil, err
	}
	d, ok := n.(*dir)
	if !ok {
		return nil, &fs.PathError{Op: "find", Path: at, Err: errors.New("not a folder")}
	}
	if d.now == nil {
		d.now, d.safe = map[string]node{}, map[string]node{}
	}
	return d, nil
}

// MkdirAll makes folders; each is two operations, of which the second makes its name safe.
func (f *FS) MkdirAll(at string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mkdirAll(path.Clean(at))
}

func (f *FS) mkdirAll(at string) error {
	if _, err := f.folder(at); err == nil {
		return nil
	}
	if err := f.mkdirAll(path.Dir(at)); err != nil {
		return err
	}
	up, err := f.folder(path.Dir(at))
	if err != nil {
		return err
	}
	if _, err := f.step("mkdir %s", at); err != nil {
		return err
	}
	up.now[path.Base(at)] = newDir()
	return f.syncDir(path.Dir(at))
}

// Create makes a file.
func (f *FS) Create(at string) (checkpoint.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.folder(path.Dir(at))
	if err != nil {
		return nil, err
	}
	if d.now[path.Base(at)] != nil {
		return nil, &fs.PathError{Op: "create", Path: at, Err: fs.ErrExist}
	}
	if _, err := f.step("create %s", at); err != nil {
		return nil, err
	}
	x := &file{}
	d.now[path.Base(at)] = x
	return &writer{f, x, at}, nil
}

type writer struct {
	fs *FS
	*file
	at string
}

func (w *writer) Write(p []byte) (int, error) {
	w.fs.mu.Lock()
	defer w.fs.mu.Unlock()
	short, err := w.fs.step("write %s", w.at)
	if short {
		w.now = append(w.now, p[:len(p)/2]...)
		return len(p) / 2, err
	}
	if err != nil {
		return 0, err
	}
	w.now = append(w.now, p...)
	return len(p), nil
}

func (w *writer) Sync() error {
	w.fs.mu.Lock()
	defer w.fs.mu.Unlock()
	if _, err := w.fs.step("sync %s", w.at); err != nil {
		return err
	}
	w.safe = slices.Clone(w.now)
	return nil
}

func (w *writer) Close() error {
	w.fs.mu.Lock()
	defer w.fs.mu.Unlock()
	_, err := w.fs.step("close %s", w.at)
	return err
}

// Open opens a file. Reading is no operation, and fails only after Stop.
func (f *FS) Open(at string) (checkpoint.Reader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil, ErrStopped
	}
	n, err := f.find(at)
	if err != nil {
		return nil, err
	}
	x, ok := n.(*file)
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: at, Err: errors.New("a folder")}
	}
	return reader{strings.NewReader(string(x.now))}, nil
}

type reader struct{ *strings.Reader }

func (reader) Close() error { return nil }

// Rename renames a file or a folder.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(from)
	if err != nil {
		return err
	}
	src, err := f.folder(path.Dir(from))
	if err != nil {
		return err
	}
	dst, err := f.folder(path.Dir(to))
	if err != nil {
		return err
	}
	if _, ok := dst.now[path.Base(to)].(*dir); ok {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	if _, err := f.step("rename %s %s", from, to); err != nil {
		return err
	}
	delete(src.now, path.Base(from))
	dst.now[path.Base(to)] = n
	return nil
}

// RemoveAll removes: what is not there is no operation.
func (f *FS) RemoveAll(at string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.find(at); errors.Is(err, fs.ErrNotExist) && !f.stopped {
		return nil
	}
	if _, err := f.step("remove %s", at); err != nil {
		return err
	}
	d, err := f.folder(path.Dir(at))
	if err != nil {
		return err
	}
	delete(d.now, path.Base(at))
	return nil
}

// SyncDir makes the names in a folder safe.
func (f *FS) SyncDir(at string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncDir(at)
}

func (f *FS) syncDir(at string) error {
	d, err := f.folder(at)
	if err != nil {
		return err
	}
	if _, err := f.step("syncdir %s", at); err != nil {
		return err
	}
	d.safe = maps.Clone(d.now)
	return nil
}

// List lists a folder.
func (f *FS) List(at string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil, ErrStopped
	}
	d, err := f.folder(at)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, n := range d.now {
		if _, ok := n.(*dir); ok {
			name += "/"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Flip flips one bit of a file.
func (f *FS) Flip(at string, bit int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(at)
	if err != nil {
		return err
	}
	x, ok := n.(*file)
	if !ok || bit/8 >= len(x.now) {
		return fmt.Errorf("crashfs: %s has no bit %d", at, bit)
	}
	x.now = slices.Clone(x.now)
	x.now[bit/8] ^= 1 << (bit % 8)
	return nil
}
