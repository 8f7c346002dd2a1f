package dash

import "sync"

// event is one server-sent event.
type event struct {
	seq  int // counts from 1
	name string
	data []byte
	keep bool // history is not thinned of it
}

// log is the history of a run: readers ask for what came after a sequence number, and wait for more. Writers never wait for readers.
type log struct {
	mu     sync.Mutex
	events []event
	next   int
	more   chan struct{} // closed and replaced when something comes
	ended  bool
}

func newLog() *log { return &log{next: 1, more: make(chan struct{})} }

// maxEvents bounds a history. When it is full, every second event of its older half goes: the further back, the coarser. The first
// event (what run it is) stays, and so do those to keep, as long as they are few.
const maxEvents = 4096

func (l *log) add(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	e.seq = l.next
	l.next++
	if len(l.events) >= maxEvents {
		l.thin()
	}
	l.events = append(l.events, e)
	l.wake()
}

func (l *log) thin() {
	kept, spared := l.events[:0:0], 0
	for i, e := range l.events {
		if e.keep && i%2 == 1 && i < maxEvents/2 && spared < maxEvents/8 {
			spared++
			kept = append(kept, e)
		} else if i >= maxEvents/2 || i%2 == 0 {
			kept = append(kept, e)
		}
	}
	l.events = kept
}

// end adds a last event.
func (l *log) end(e event) {
	l.add(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		l.wake()
	}
}

func (l *log) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

// after returns the events behind seq, a channel that closes when there are more, and whether there will be none.
func (l *log) after(seq int) (events []event, more <-chan struct{}, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := len(l.events)
	for i > 0 && l.events[i-1].seq > seq {
		i--
	}
	return append(events, l.events[i:]...), l.more, l.ended
}
