package memory_test

import (
	"testing"

	"zeroshard/internal/invariants"
	"zeroshard/memory"
)

// A balance below zero is a bug of the caller: it panics in builds with -tags invariants and is visible in others.
func TestNegativeBalance(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(*memory.Tracker, *memory.Limit)
	}{
		{"end without begin", func(tr *memory.Tracker, _ *memory.Limit) { tr.End(span(memory.Gathered, 8)) }},
		{"end of another kind", func(tr *memory.Tracker, _ *memory.Limit) {
			tr.Begin(span(memory.Gathered, 8))
			tr.End(span(memory.Gradient, 8))
		}},
		{"release without reserve", func(tr *memory.Tracker, _ *memory.Limit) { tr.Release("x", 8) }},
		{"release of what a limit never saw", func(_ *memory.Tracker, l *memory.Limit) { l.Release("x", 8) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if v := recover(); (v != nil) != invariants.Enabled {
					t.Errorf("panic %v with invariants %t", v, invariants.Enabled)
				}
			}()
			c.f(memory.NewTracker(), memory.NewLimit(100))
		})
	}
}
