package memory_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"zeroshard/device"
	"zeroshard/device/cpu"
	"zeroshard/device/null"
	"zeroshard/internal/golden"
	"zeroshard/memory"
)

// recorder writes down what it is told, and refuses a name.
type recorder struct {
	id, refuse string
	log        *[]string
}

var errRefused = errors.New("test: refused")

func (r recorder) note(format string, args ...any) {
	*r.log = append(*r.log, r.id+" "+fmt.Sprintf(format, args...))
}

func (r recorder) Reserve(name string, bytes int64) error {
	r.note("reserve %s %d", name, bytes)
	if name == r.refuse {
		return errRefused
	}
	return nil
}
func (r recorder) Release(name string, bytes int64) { r.note("release %s %d", name, bytes) }
func (r recorder) Begin(s memory.Span)              { r.note("begin %s", s.Name) }
func (r recorder) End(s memory.Span)                { r.note("end %s", s.Name) }

func wantLog(t *testing.T, log *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*log, want) {
		t.Errorf("observers heard\n  %s\nwant\n  %s", strings.Join(*log, "\n  "), strings.Join(want, "\n  "))
	}
	*log = nil
}

func TestArenaTellsObserversInOrder(t *testing.T) {
	dev := cpu.New(cpu.Options{})
	defer dev.Close()
	log := new([]string)
	a := memory.NewArena(dev, recorder{"A", "", log}, recorder{"B", "large", log}, recorder{"C", "", log})

	mem, err := a.Reserve("resident", 100)
	if err != nil || mem.Size() != 100 {
		t.Fatalf("Reserve: %v", err)
	}
	wantLog(t, log, "A reserve resident 100", "B reserve resident 100", "C reserve resident 100")

	// C was not asked yet, so it is not told either; A takes it back.
	if _, err := a.Reserve("large", 1000); !errors.Is(err, errRefused) {
		t.Errorf("Reserve: %v, want the observer's error", err)
	}
	wantLog(t, log, "A reserve large 1000", "B reserve large 1000", "A release large 1000")

	if _, err := a.Reserve("absurd", 1<<60); !errors.Is(err, device.ErrMemory) || !strings.Contains(err.Error(), `"absurd"`) {
		t.Errorf("Reserve past the device: %v, want ErrMemory and the name", err)
	}
	wantLog(t, log, "A reserve absurd 1152921504606846976", "B reserve absurd 1152921504606846976", "C reserve absurd 1152921504606846976",
		"A release absurd 1152921504606846976", "B release absurd 1152921504606846976", "C release absurd 1152921504606846976")
	if a.Used() != 100 || dev.Used() != 100 {
		t.Errorf("arena has %d bytes, device %d, want 100", a.Used(), dev.Used())
	}

	span := memory.Span{Kind: memory.Gathered, Name: "h.0", Bytes: 10}
	a.Begin(span)
	a.End(span)
	wantLog(t, log, "A begin h.0", "B begin h.0", "C begin h.0", "A end h.0", "B end h.0", "C end h.0")

	if _, err := a.Reserve("transient", 7); err != nil {
		t.Fatal(err)
	}
	if got, want := a.Blocks(), []memory.Block{{Name: "resident", Bytes: 100}, {Name: "transient", Bytes: 7}}; !slices.Equal(got, want) {
		t.Errorf("ledger %v, want %v", got, want)
	}
	*log = nil
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	wantLog(t, log, "A release transient 7", "B release transient 7", "C release transient 7",
		"A release resident 100", "B release resident 100", "C release resident 100")
	if a.Used() != 0 || dev.Used() != 0 {
		t.Errorf("after Close arena has %d bytes, device %d", a.Used(), dev.Used())
	}
	if err := a.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := a.Reserve("late", 1); !errors.Is(err, memory.ErrClosed) {
		t.Errorf("Reserve after Close: %v, want ErrClosed", err)
	}
	wantLog(t, log)
}

func TestReserveRefusesNegative(t *testing.T) {
	a := memory.NewArena(null.New())
	if _, err := a.Reserve("x", -1); !errors.Is(err, memory.ErrSize) {
		t.Errorf("Reserve(-1): %v", err)
	}
}

func TestLimit(t *testing.T) {
	a := memory.NewArena(null.New(), memory.NewLimit(1000))
	for _, b := range []memory.Block{{Name: "a", Bytes: 300}, {Name: "b", Bytes: 700}} {
		if _, err := a.Reserve(b.Name, b.Bytes); err != nil {
			t.Fatalf("exactly the limit must fit: %v", err)
		}
	}
	_, err := a.Reserve("c", 1)
	var e *memory.LimitError
	if !errors.As(err, &e) || !errors.Is(err, memory.ErrLimit) {
		t.Fatalf("one byte more: %v, want a *LimitError", err)
	}
	if e.Shortfall() != 1 || e.Used() != 1000 || e.Limit != 1000 || e.Want != (memory.Block{Name: "c", Bytes: 1}) {
		t.Errorf("%+v, short by %d", e, e.Shortfall())
	}
	if want := []memory.Block{{Name: "b", Bytes: 700}, {Name: "a", Bytes: 300}}; !slices.Equal(e.Held, want) {
		t.Errorf("held %v, want the largest first", e.Held)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// What is refused further on, by another observer or the device, must not count.
func TestLimitForgetsWhatFailed(t *testing.T) {
	limit := memory.NewLimit(1 << 61)
	a := memory.NewArena(cpu.New(cpu.Options{}), limit)
	if _, err := a.Reserve("absurd", 1<<60); !errors.Is(err, device.ErrMemory) {
		t.Fatal(err)
	}
	if err := limit.Reserve("all", 1<<61); err != nil {
		t.Errorf("a reservation that failed still counts: %v", err)
	}
}

func TestLimitTable(t *testing.T) {
	a := memory.NewArena(null.New(), memory.NewLimit(64<<20))
	for _, b := range []memory.Block{{Name: "scratch", Bytes: 12345}, {Name: "resident", Bytes: 40 << 20}, {Name: "carry", Bytes: 12345}} {
		if _, err := a.Reserve(b.Name, b.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	_, err := a.Reserve("transient", 30<<20)
	golden.Check(t, "testdata/limit.txt", fmt.Sprintln(err))
}

func span(k memory.Kind, bytes int64) memory.Span {
	return memory.Span{Kind: k, Name: "x", Bytes: bytes}
}

func TestTracker(t *testing.T) {
	tr := memory.NewTracker()
	a := memory.NewArena(null.New(), tr)
	for _, n := range []int64{100, 50} {
		if _, err := a.Reserve("x", n); err != nil {
			t.Fatal(err)
		}
	}
	a.Begin(span(memory.Parameter, 10))
	a.Begin(span(memory.Activation, 30))
	a.Begin(span(memory.Gathered, 20)) // 60: the peak
	a.End(span(memory.Activation, 30))
	a.Begin(span(memory.Gradient, 30)) // 60 again: the first moment stays
	a.End(span(memory.Gathered, 20))
	a.Begin(span(memory.Gathered, 5))
	want := memory.Usage{
		Reserved: 150, PeakReserved: 150,
		Live:   memory.ByKind{memory.Parameter: 10, memory.Gradient: 30, memory.Gathered: 5},
		AtPeak: memory.ByKind{memory.Parameter: 10, memory.Activation: 30, memory.Gathered: 20},
		Max:    memory.ByKind{memory.Parameter: 10, memory.Activation: 30, memory.Gathered: 20, memory.Gradient: 30},
	}
	if got := tr.Snapshot(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	reserved, live := tr.Peak()
	if u := tr.Snapshot(); u.Reserved != 0 || reserved != 150 || live.Sum() != 60 {
		t.Errorf("after Close %d bytes are reserved; peak %d reserved, %d live", u.Reserved, reserved, live.Sum())
	}
}

// Row 57 of the field's reports: two gathers of one flat at a time must count as two, and come back to zero.
func TestTrackerReentrant(t *testing.T) {
	tr := memory.NewTracker()
	s := span(memory.Gathered, 8)
	tr.Begin(s)
	tr.Begin(s)
	tr.End(s)
	if got := tr.Snapshot().Live[memory.Gathered]; got != 8 {
		t.Errorf("%d bytes live after two begins and one end, want 8", got)
	}
	tr.End(s)
	if u := tr.Snapshot(); u.Live.Sum() != 0 || u.Max[memory.Gathered] != 16 {
		t.Errorf("%+v", u)
	}
}

func TestBeginAndEndAllocateNothing(t *testing.T) {
	a := memory.NewArena(null.New(), memory.NewTracker(), memory.NewLimit(1<<20), memory.NewTracker())
	s := span(memory.Workspace, 4096)
	if n := testing.AllocsPerRun(100, func() { a.Begin(s); a.End(s) }); n != 0 {
		t.Errorf("%v allocations a span, want 0", n)
	}
}

func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for k := range memory.Kinds {
		if s := k.String(); s == "" || seen[s] || strings.Contains(s, "Kind") {
			t.Errorf("kind %d is called %q", k, s)
		} else {
			seen[s] = true
		}
	}
	if got := memory.Kinds.String(); got != "Kind(10)" {
		t.Errorf("past the kinds: %q", got)
	}
}

func ExampleTracker() {
	tracker := memory.NewTracker()
	arena := memory.NewArena(null.New(), memory.NewLimit(1<<20), tracker)
	if _, err := arena.Reserve("resident", 768<<10); err != nil {
		fmt.Println(err)
	}
	arena.Begin(memory.Span{Kind: memory.Parameter, Name: "root shard", Bytes: 512 << 10})
	if _, err := arena.Reserve("transient", 512<<10); err != nil {
		fmt.Println(err)
	}
	u := tracker.Snapshot()
	fmt.Println(memory.FormatBytes(u.PeakReserved), "reserved,", memory.FormatBytes(u.Live[memory.Parameter]), "of parameters")
	// Output:
	// memory: limit reached: "transient" needs 512 KiB, 256 KiB of 1 MiB are free: raise the limit by 256 KiB or reserve less
	//   wanted: transient   524288 bytes  512 KiB
	//   held: resident      786432 bytes  768 KiB
	//   limit              1048576 bytes  1 MiB
	//   short               262144 bytes  256 KiB
	// 768 KiB reserved, 512 KiB of parameters
}
