// Package report shows where a run's bytes and time go. A [Recorder] listens to one rank: the engine tells it of every op
// (zero.Watcher), the arena of every byte (memory.Observer). From op times and the plan, which knows each buffer's first and last
// op, everything else is derived: memory over time, what waited for what, how a step's time splits. The results are a
// self-contained page, JSON, a trace for Perfetto ([Report]) and a line a step in metrics.jsonl ([Step]); report/dash shows
// the same live.
//
// It never changes what a run computes, and holds no opinion on what is good: it counts.
//
//  1. Recording an op is a clock reading, a store and two atomic adds. It allocates nothing; what is derived, is derived between steps.
//  2. Memory is bounded: the times of the last few steps are kept, nothing else grows with a run.
//  3. The parts of a step's time are disjoint and add up to the whole.
//  4. The curve of used memory never passes the arenas: it is drawn from the lives whose places the plan proved apart.
//  5. Pages load nothing from elsewhere.
package report
