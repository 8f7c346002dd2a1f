package bench

import (
	"regexp"
	"runtime"
	"time"

	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/kernels"
)

// Row is one figure. Names and meaning of its fields do not change: scripts read them.
type Row struct {
	Name    string  `json:"name"`
	Shape   string  `json:"shape"`
	Threads int     `json:"threads"` // all threads that compute, of all ranks
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Limit   float64 `json:"limit"`    // in the same unit, measured in the same minute
	OfLimit float64 `json:"of_limit"` // Value/Limit
}

func (r Row) held() Row {
	r.OfLimit = r.Value / r.Limit
	return r
}

// Pool is threads that end with Close.
type Pool interface {
	kernels.Pool
	Close()
}

// Backend makes what is measured.
type Backend struct {
	Device  func() device.Device
	Pool    func(threads int) Pool
	Kernels func(kernels.Pool) kernels.Backend
	Groups  func(ranks int) ([]collectives.Group, error)
}

// Options says what to measure and for how long. The zero value measures everything briefly.
type Options struct {
	Threads int            // 0: one, and all cores
	Filter  *regexp.Regexp // of a row's name and shape with a space between; nil: all
	Time    time.Duration  // of a contest; 0: DefaultTime. No contest has fewer than 3 rounds.
}

// DefaultTime gives steady medians on a quiet machine.
const DefaultTime = 300 * time.Millisecond

// Emit is given each row as soon as it is measured.
type Emit func(Row)

func (o Options) wants(name, shape string) bool {
	return o.Filter == nil || o.Filter.MatchString(name+" "+shape)
}

// threads lists the numbers of threads to measure with.
func (o Options) threads() []int {
	switch n := runtime.GOMAXPROCS(0); {
	case o.Threads > 0:
		return []int{o.Threads}
	case n > 1:
		return []int{1, n}
	}
	return []int{1}
}
