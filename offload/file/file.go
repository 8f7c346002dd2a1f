package file

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sync/semaphore"

	"zeroshard/device"
	"zeroshard/internal/pages"
	"zeroshard/offload"
)

const name = "file"

// Tier keeps one rank's slices on disk. It implements offload.Tier.
type Tier struct {
	opts Options
	open opener

	mu     sync.RWMutex // held for reading by calls that move bytes
	closed bool
	held   // by Reserve

	permits   *semaphore.Weighted
	transfers sync.Pool // of *transfer
}

// held is what Reserve took; the zero value holds nothing.
type held struct {
	table   *offload.Table
	slices  []slice // by extent
	files   []*dataFile
	folder  *folder
	stale   []string
	memory  []byte // of staging
	staging chan []byte
}

// New returns a tier that holds nothing. Its options are judged by Reserve.
func New(o Options) *Tier {
	t := &Tier{opts: o.withDefaults(), open: openDisk}
	t.transfers.New = func() any { return new(transfer) }
	return t
}

// Name is "file".
func (t *Tier) Name() string { return name }

// Reserve removes folders of runs that were killed, makes one for this rank, and takes room on the disk and memory for staging. Errors
// wrap offload.ErrArgument, offload.ErrClosed, offload.ErrSpace (a *offload.SpaceError: the disk is full), or a *fs.PathError with what
// the system says of the folder.
func (t *Tier) Reserve(ctx context.Context, extents []offload.Extent) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return t.wrap("reserve", offload.ErrClosed)
	case t.table != nil:
		return t.wrap("second reserve", offload.ErrArgument)
	}
	if err := t.opts.check(); err != nil {
		return err
	}
	t.permits = semaphore.NewWeighted(int64(t.opts.Concurrency))
	var h held
	err := h.take(ctx, t, extents)
	if err != nil {
		return errors.Join(err, h.release())
	}
	t.held = h
	return nil
}

func (t *Tier) wrap(what string, err error) error {
	return fmt.Errorf("offload: file tier: rank %d: %s: %w", t.opts.Rank, what, err)
}

// take fills h. What it took before an error is in h.
func (h *held) take(ctx context.Context, t *Tier, extents []offload.Extent) (err error) {
	if h.table, err = offload.NewTable(name, t.opts.Rank, extents); err != nil {
		return err
	}
	dir, err := filepath.Abs(t.opts.Dir)
	if err != nil {
		return t.wrap("folder "+t.opts.Dir, err)
	}
	h.stale = sweep(dir)
	if h.folder, err = newFolder(dir, t.opts.Rank); err != nil {
		return t.wrap("name an existing folder that can be written", err)
	}
	if h.memory, err = pages.Map(t.opts.Staging()); err != nil {
		return &offload.SpaceError{Tier: name, Rank: t.opts.Rank, Bytes: t.opts.Staging(), Free: -1, Err: err}
	}
	h.staging = make(chan []byte, t.opts.Concurrency)
	for i := range int64(t.opts.Concurrency) {
		h.staging <- h.memory[i*t.opts.BlockBytes:][:t.opts.BlockBytes]
	}
	return h.makeFiles(ctx, t, extents)
}

// makeFiles lays the slices of each state one behind the other in a file of its own, in the order of extents.
func (h *held) makeFiles(ctx context.Context, t *Tier, extents []offload.Extent) error {
	byState, lengths := map[string]int{}, []int64{}
	h.slices = make([]slice, len(extents))
	for i, e := range extents {
		f, ok := byState[e.Key.State]
		if !ok {
			f = len(h.files)
			byState[e.Key.State] = f
			h.files = append(h.files, &dataFile{path: filepath.Join(h.folder.path, fileName(f, e.Key.State))})
			lengths = append(lengths, 0)
		}
		blocks := (e.Bytes + t.opts.BlockBytes - 1) / t.opts.BlockBytes
		h.slices[i] = slice{key: e.Key, file: h.files[f], at: lengths[f], bytes: e.Bytes, blocks: make([]block, blocks)}
		lengths[f] += roundUp(e.Bytes)
	}
	total, taken := int64(0), int64(0)
	for _, n := range lengths {
		total += n
	}
	for i, f := range h.files {
		if err := ctx.Err(); err != nil {
			return t.wrap("reserve", err)
		}
		err := f.create(t, lengths[i])
		var space *offload.SpaceError
		if errors.As(err, &space) {
			space.Total, space.Taken = total, taken
		}
		if err != nil {
			return err
		}
		taken += lengths[i]
	}
	return nil
}

// fileName is a name that says the state, whatever characters that has. The number keeps names apart that a file system may not.
func fileName(i int, state string) string {
	return fmt.Sprintf("%02d-%.100s%s", i, url.PathEscape(state), dataSuffix)
}

func (f *dataFile) create(t *Tier, bytes int64) (err error) {
	if f.disk, err = t.open(f.path, t.opts.Direct); err == nil {
		err = f.Reserve(bytes)
	}
	switch {
	case err == nil:
		return nil
	case outOfSpace(err):
		return &offload.SpaceError{Tier: name, Rank: t.opts.Rank, Path: f.path, Bytes: bytes, Free: freeBytes(filepath.Dir(f.path)), Err: err}
	case t.opts.Direct == Always && errors.Is(err, syscall.EINVAL):
		return t.wrap("the file system does not take direct I/O, which is demanded", err)
	}
	return t.wrap(fmt.Sprintf("room for %d bytes", bytes), err)
}

// release gives back what h holds.
func (h *held) release() error {
	var errs []error
	for _, f := range h.files {
		if f.disk != nil {
			errs = append(errs, f.Close())
		}
	}
	if h.folder != nil {
		_, err := h.folder.remove()
		errs = append(errs, err)
	}
	errs = append(errs, pages.Unmap(h.memory))
	*h = held{}
	return errors.Join(errs...)
}

// Put copies src to disk. See offload.Tier for its contract. An error is a *offload.KeyError, a *offload.CallError that names the file,
// or wraps ErrArgument or ErrClosed.
func (t *Tier) Put(ctx context.Context, _ device.Stream, k offload.Key, off int64, src device.Buffer) error {
	return t.move(ctx, k, off, src, true)
}

// Get copies from disk to dst, and compares checksums: as Put, and what is not as it was put wraps offload.ErrCorrupt or ErrTorn.
func (t *Tier) Get(ctx context.Context, _ device.Stream, k offload.Key, off int64, dst device.Buffer) error {
	return t.move(ctx, k, off, dst, false)
}

func (t *Tier) move(ctx context.Context, k offload.Key, off int64, b device.Buffer, put bool) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return t.wrap(verb(put)+" of "+k.String(), offload.ErrClosed)
	}
	if t.table == nil {
		return t.wrap(verb(put)+" of "+k.String()+": nothing is reserved yet", offload.ErrArgument)
	}
	i, err := t.table.Find(k, off, b.Bytes())
	if err != nil {
		return err
	}
	raw, err := t.table.Raw(k, b)
	if err != nil || len(raw) == 0 {
		return err
	}
	x := t.transfers.Get().(*transfer)
	x.tier, x.ctx, x.s, x.put, x.off, x.data = t, ctx, &t.slices[i], put, off, raw
	err = x.run()
	x.ctx, x.s, x.data, x.err = nil, nil, nil, nil
	t.transfers.Put(x)
	return err
}

// Used is the sum of the extents. The files take up to 4095 bytes more for each.
func (t *Tier) Used() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.table == nil {
		return 0
	}
	return t.table.Bytes()
}

// Staging is the bytes of host memory held.
func (t *Tier) Staging() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return int64(len(t.memory))
}

// Direct reports whether I/O goes around the page cache. It is known after Reserve.
func (t *Tier) Direct() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, f := range t.files {
		if f.Alignment() == 0 {
			return false
		}
	}
	return len(t.files) > 0
}

// Path is the folder of the files, "" before Reserve and after Close.
func (t *Tier) Path() string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.folder == nil {
		return ""
	}
	return t.folder.path
}

// Recovered is the folders that Reserve removed, left behind by runs that were killed.
func (t *Tier) Recovered() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.stale
}

// Close removes the files.
func (t *Tier) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if err := t.held.release(); err != nil {
		return t.wrap("close", err)
	}
	return nil
}
