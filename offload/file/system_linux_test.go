package file_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"zeroshard/offload"
	"zeroshard/offload/file"
)

// mounted is a folder with a file system of its own in memory, of 1 MiB.
func mounted(t *testing.T, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, "size=1m"); err != nil {
		t.Skipf("mounting needs a privilege: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFullDisk(t *testing.T) {
	dir := mounted(t, 0)
	x := file.New(file.Options{Dir: dir, Rank: 6})
	defer x.Close()
	extents := []offload.Extent{{Key: offload.Key{Flat: "h.0", State: "m"}, Bytes: 1 << 19}, {Key: offload.Key{Flat: "h.0", State: "v"}, Bytes: 1 << 20}}
	err := x.Reserve(context.Background(), extents)
	var space *offload.SpaceError
	if !errors.Is(err, offload.ErrSpace) || !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &space) {
		t.Fatalf("%v, want a SpaceError", err)
	}
	if space.Rank != 6 || space.Bytes != 1<<20 || space.Free < 0 || space.Free > 1<<20 || filepath.Dir(filepath.Dir(space.Path)) != dir {
		t.Errorf("%+v", space)
	}
	for _, want := range []string{"offload: no room", dir, "rank 6", "1048576 bytes", "free"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if err := x.Reserve(context.Background(), extents[:1]); err != nil {
		t.Errorf("what fits: %v", err)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() == 0 { // who may write anywhere
		dir = mounted(t, unix.MS_RDONLY)
	} else if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	x := file.New(file.Options{Dir: dir, Rank: 4})
	defer x.Close()
	err := x.Reserve(context.Background(), []offload.Extent{{Key: key, Bytes: 8}})
	var pathErr *fs.PathError
	if !errors.As(err, &pathErr) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "rank 4") {
		t.Errorf("%v, want a PathError that names %s", err, dir)
	}
}

const victimDir = "ZEROSHARD_TEST_VICTIM"

// TestVictim is no test: TestKill runs it in a process of its own and kills that.
func TestVictim(t *testing.T) {
	dir := os.Getenv(victimDir)
	if dir == "" {
		t.Skip("runs only as a victim")
	}
	x := file.New(file.Options{Dir: dir})
	if err := reserve(x, 1<<22); err != nil {
		t.Fatal(err)
	}
	src := pattern(1<<22, 1)
	for i := 0; ; i++ {
		if err := put(x, 0, src); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			_, _ = os.Stdout.WriteString("\nputting into " + x.Path() + "\n")
		}
	}
}

// victim starts a process that puts without end, and returns its folder once it does.
func victim(t *testing.T, dir string) (kill func(), path string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestVictim$", "-test.v")
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, path, ok := strings.Cut(lines.Text(), "putting into "); ok {
			return kill, path
		}
	}
	kill()
	t.Fatal("the victim ended by itself")
	return nil, ""
}

func TestKill(t *testing.T) {
	dir := emptied(t)
	killA, a := victim(t, dir)
	killB, b := victim(t, dir)
	defer killB()
	killA()
	if _, err := os.Stat(filepath.Join(a, "00-m.tier")); err != nil {
		t.Fatalf("the victim left nothing: %v", err)
	}
	x := reserved(t, file.Options{Dir: dir}, 4096)
	if got := x.Recovered(); len(got) != 1 || got[0] != a {
		t.Errorf("removed %v, want %s", got, a)
	}
	wantBytes(t, x, 0, make([]byte, 4096)) // nothing of the victim's
	if _, err := os.Stat(filepath.Join(b, "00-m.tier")); err != nil {
		t.Errorf("a run that lives lost its file: %v", err)
	}
	killB()
	y := reserved(t, file.Options{Dir: dir}, 4096)
	if got := y.Recovered(); len(got) != 1 || got[0] != b {
		t.Errorf("removed %v, want %s", got, b)
	}
}

// Nothing is twice in memory: not as pages of the process, and not in the page cache.
func TestMemory(t *testing.T) {
	const size, piece = 48 << 20, 1 << 20
	for name, direct := range map[string]file.Direct{"direct": file.Auto, "page cache": file.Never} {
		t.Run(name, func(t *testing.T) {
			o := file.Options{Direct: direct, BlockBytes: 1 << 18, Concurrency: 4}
			x := reserved(t, o, size)
			src, dst := pattern(piece, 1), make([]byte, piece)
			before := resident(t)
			for off := int64(0); off < size; off += piece {
				mustPut(t, x, off, src)
			}
			mustPut(t, x, 2, src) // through staging
			for off := int64(0); off < size; off += piece {
				if err := get(x, off, dst); err != nil {
					t.Fatal(err)
				}
			}
			if grown := resident(t) - before; grown > o.Staging()+8<<20 {
				t.Errorf("resident memory grew by %d bytes for %d on disk", grown, size)
			}
			cached, total := pageCache(t, dataPath(t, x))
			t.Logf("direct: %t, %d of %d pages are cached", x.Direct(), cached, total)
			if cached > total/8 {
				t.Errorf("%d of %d pages are in the page cache", cached, total)
			}
		})
	}
}

// resident is the process's resident bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	pages, err := strconv.ParseInt(string(bytes.Fields(raw)[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// pageCache counts a file's pages in the page cache.
func pageCache(t *testing.T, path string) (cached, total int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped)
	in := make([]byte, (len(mapped)+os.Getpagesize()-1)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&in[0])))
	if errno != 0 {
		t.Fatal(errno)
	}
	for _, b := range in {
		cached += int(b & 1)
	}
	return cached, len(in)
}
