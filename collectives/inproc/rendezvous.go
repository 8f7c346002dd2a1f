package inproc

import (
	"context"
	"runtime"
	"sync/atomic"

	"zeroshard/collectives"
)

// rendezvous is where the ranks of a group meet: a counter of arrivals, and a phase which the last one to arrive moves on.
//
// A rank may give up instead of arriving: it breaks the rendezvous. Then nobody can arrive at a meeting any more, and those who
// wait there leave with the fault. It must never happen that some ranks of a meeting go on and others leave, since those who go
// on read the others' memory. Therefore phase, fault and count are one word: the last arrival and the break exclude each other.
//
// Waiting is first a short look at the word, then a few turns of the scheduler, then parking on a channel of one's own. Ranks of
// one process share its cores with each other's compute streams, so a rank that spins longer slows down the peer it waits for.
//
// Parking and moving on cannot miss each other: the waiter says that it parks and then looks at the phase once more, the last
// one moves the phase and then looks for waiters. A wake-up left in the channel from an earlier phase costs one more look.
type rendezvous struct {
	word   atomic.Uint64 // phase<<32 | brokenBit | arrivals
	seats  []seat
	broken chan struct{} // closed with the bit
	fault  atomic.Pointer[collectives.AbortError]
}

const brokenBit = 1 << 31

func phaseOf(word uint64) uint32 { return uint32(word >> 32) }

// seat is one rank's place to park, on a cache line of its own.
type seat struct {
	parked atomic.Bool
	wake   chan struct{}
	_      [112]byte
}

const (
	looks = 100 // at the phase before the scheduler is asked
	turns = 4   // of the scheduler before parking
)

func newRendezvous(size int) *rendezvous {
	m := &rendezvous{seats: make([]seat, size), broken: make(chan struct{})}
	for i := range m.seats {
		m.seats[i].wake = make(chan struct{}, 1)
	}
	return m
}

// abort breaks the rendezvous. The first fault stays.
func (m *rendezvous) abort(rank int, cause error) {
	first := m.fault.CompareAndSwap(nil, &collectives.AbortError{Rank: rank, Cause: cause})
	m.word.Or(brokenBit)
	if first {
		close(m.broken)
	}
}

// meet returns nil when all ranks are here, or the fault: the same for all ranks. A rank whose ctx ends breaks the rendezvous.
func (m *rendezvous) meet(ctx context.Context, rank int) error {
	if ctx.Err() != nil {
		m.abort(rank, context.Cause(ctx))
	}
	phase, last := m.arrive(brokenBit)
	if last || m.look(phase) {
		return nil
	}
	for {
		word := m.sit(rank)
		if phaseOf(word) != phase {
			return nil
		}
		if word&brokenBit != 0 {
			return m.fault.Load()
		}
		select {
		case <-m.seats[rank].wake:
		case <-m.broken:
		case <-ctx.Done():
			m.abort(rank, context.Cause(ctx))
		}
	}
}

// part waits for all ranks that met before, whatever became of the group: they all come.
func (m *rendezvous) part(rank int) {
	phase, last := m.arrive(0)
	if last || m.look(phase) {
		return
	}
	for phaseOf(m.sit(rank)) == phase {
		<-m.seats[rank].wake
	}
}

// arrive counts the caller, unless a bit of refuse is set in the word. The last one moves the phase, wakes who is parked, and
// is told so.
func (m *rendezvous) arrive(refuse uint64) (phase uint32, last bool) {
	for {
		word := m.word.Load()
		if word&refuse != 0 {
			return phaseOf(word), false
		}
		next := word + 1
		last = int(next&(brokenBit-1)) == len(m.seats)
		if last {
			next = uint64(phaseOf(word)+1)<<32 | word&brokenBit
		}
		if m.word.CompareAndSwap(word, next) {
			if last {
				m.wake()
			}
			return phaseOf(word), last
		}
	}
}

func (m *rendezvous) wake() {
	for i := range m.seats {
		s := &m.seats[i]
		if s.parked.Load() && s.parked.CompareAndSwap(true, false) {
			select {
			case s.wake <- struct{}{}:
			default:
			}
		}
	}
}

// look waits awake for a moment, and reports whether the phase has moved.
func (m *rendezvous) look(phase uint32) bool {
	for range looks {
		if phaseOf(m.word.Load()) != phase {
			return true
		}
	}
	for range turns {
		runtime.Gosched()
		if phaseOf(m.word.Load()) != phase {
			return true
		}
	}
	return false
}

// sit says that rank is about to park, and returns the word as it is after that.
func (m *rendezvous) sit(rank int) uint64 {
	m.seats[rank].parked.Store(true)
	return m.word.Load()
}
