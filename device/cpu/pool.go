package cpu

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Task is work in parts, as kernels.Task: an alias, so that a Pool is a kernels.Pool without an import.
type Task = interface{ Part(i int) }

// spins is how often an idle helper looks for work before it parks: a few microseconds, about the gap between two kernels of
// a stream. Longer would take the core from the other streams of this rank and from other ranks.
const spins = 1000

// Pool runs the parts of a task on several threads: the caller and threads−1 goroutines.
//
// Run puts one ticket for each helper it could use into a channel, works through the parts itself, and then takes the
// tickets back that nobody has picked up. So it waits only for helpers that really hold a part, and a machine busy with
// something else costs nothing but the parallelism. Parts are claimed one by one from an atomic counter, which evens out
// uneven parts.
//
// One Run owns the helpers at a time; a second one, from another stream or from inside a part, runs on its own goroutine
// alone. The result is the same, since threads never change it.
type Pool struct {
	threads int
	tickets chan struct{}
	quit    chan struct{}
	ended   sync.WaitGroup
	close   sync.Once

	mu      sync.Mutex // held by the Run that owns the helpers
	task    Task
	parts   int
	next    atomic.Int64
	helping sync.WaitGroup // one for each ticket that is out
	fault   atomic.Pointer[PartError]
}

// PartError is what Run panics with when a part panicked.
type PartError struct {
	Value any
	Stack []byte // of the part
}

func (e *PartError) Error() string {
	return fmt.Sprintf("device: panic in a part of a task: %v\n%s", e.Value, e.Stack)
}

// Unwrap returns the panic's value where that is an error.
func (e *PartError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// NewPool starts a pool of threads threads (at least 1), the caller of Run counted.
func NewPool(threads int) *Pool {
	threads = max(threads, 1)
	p := &Pool{threads: threads, tickets: make(chan struct{}, threads-1), quit: make(chan struct{})}
	p.ended.Add(threads - 1)
	for range threads - 1 {
		go p.helper()
	}
	return p
}

// Threads is the number given to NewPool.
func (p *Pool) Threads() int { return p.threads }

// Run calls t.Part(0) … t.Part(parts-1), each once, and returns when all are done. It allocates nothing. If a part panics, parts
// not yet begun may be left out, and Run panics: with a *PartError where helpers took part, else with the value itself.
func (p *Pool) Run(parts int, t Task) {
	helpers := min(parts, p.threads) - 1
	if helpers <= 0 || !p.mu.TryLock() {
		for i := range parts {
			t.Part(i)
		}
		return
	}
	defer p.mu.Unlock()
	p.task, p.parts = t, parts
	p.next.Store(0)
	p.fault.Store(nil)
	p.helping.Add(helpers)
	for range helpers {
		p.tickets <- struct{}{}
	}
	p.work()
	p.takeBack()
	p.helping.Wait()
	p.task = nil
	if e := p.fault.Load(); e != nil {
		panic(e)
	}
}

// takeBack revokes the tickets that no helper holds.
func (p *Pool) takeBack() {
	for {
		select {
		case <-p.tickets:
			p.helping.Done()
		default:
			return
		}
	}
}

// work claims parts until none is left. A panic ends this thread's share.
func (p *Pool) work() {
	defer func() {
		if v := recover(); v != nil {
			p.fault.CompareAndSwap(nil, &PartError{Value: v, Stack: debug.Stack()})
		}
	}()
	for {
		i := int(p.next.Add(1)) - 1
		if i >= p.parts {
			return
		}
		p.task.Part(i)
	}
}

func (p *Pool) helper() {
	defer p.ended.Done()
	for p.ticket() {
		p.work()
		p.helping.Done()
	}
}

// ticket waits for work, first awake, then parked. It reports false when the pool was closed.
func (p *Pool) ticket() bool {
	for range spins {
		select {
		case <-p.tickets:
			return true
		default:
		}
	}
	select {
	case <-p.tickets:
		return true
	case <-p.quit:
		return false
	}
}

// Close ends the helpers and waits for them. No Run may be going on or follow. A second Close does nothing.
func (p *Pool) Close() {
	p.close.Do(func() { close(p.quit) })
	p.ended.Wait()
}
