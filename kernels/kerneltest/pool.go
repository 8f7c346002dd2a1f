package kerneltest

import "sync"

// pool is a kernels.Pool that starts a goroutine for each part, last part first.
type pool int

func (p pool) Threads() int { return int(p) }

func (p pool) Run(parts int, t interface{ Part(int) }) {
	var wg sync.WaitGroup
	for i := parts - 1; i >= 0; i-- {
		wg.Add(1)
		go func() {
			defer wg.Done()
			t.Part(i)
		}()
	}
	wg.Wait()
}

// serial is a kernels.Pool that allocates nothing: parts in turn, last first.
type serial int

func (p serial) Threads() int { return int(p) }

func (p serial) Run(parts int, t interface{ Part(int) }) {
	for i := parts - 1; i >= 0; i-- {
		t.Part(i)
	}
}
