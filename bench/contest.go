package bench

import (
	"slices"
	"time"
)

// work is something that can be done again and again.
type work func() error

// least is the shortest time that one turn of a contender is measured over: the clock and the start of threads vanish in it.
const least = 2 * time.Millisecond

const minRounds = 3

// contest runs the contenders in turn, each as often as makes a turn of at least least, until budget is spent, and returns the median
// seconds of one run of each. The first turns, which find that number and touch all memory, do not count.
func contest(budget time.Duration, contenders ...work) ([]float64, error) {
	if budget == 0 {
		budget = DefaultTime
	}
	times := make([]int, len(contenders))
	for i, c := range contenders {
		n, err := calibrate(c)
		if err != nil {
			return nil, err
		}
		times[i] = n
	}
	seconds := make([][]float64, len(contenders))
	for start, round := time.Now(), 0; round < minRounds || time.Since(start) < budget; round++ {
		for k := range contenders {
			i := (k + round) % len(contenders) // nobody always follows the same one
			t, err := turn(contenders[i], times[i])
			if err != nil {
				return nil, err
			}
			seconds[i] = append(seconds[i], t.Seconds()/float64(times[i]))
		}
	}
	out := make([]float64, len(contenders))
	for i, s := range seconds {
		out[i] = median(s)
	}
	return out, nil
}

// calibrate returns how many runs fill a turn. The first run touches memory, so it tells little unless it is long.
func calibrate(c work) (int, error) {
	if t, err := turn(c, 1); err != nil || t > 100*least {
		return 1, err
	}
	for n := 1; ; n *= 2 {
		t, err := turn(c, n)
		if err != nil || t >= least {
			return n, err
		}
	}
}

func turn(c work, times int) (time.Duration, error) {
	start := time.Now()
	for range times {
		if err := c(); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// median of an odd number of values is the middle one, else the mean of the two in the middle.
func median(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
