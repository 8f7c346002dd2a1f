// Package memory gives out a device's memory, counts it by kind, and refuses what passes a limit. It knows nothing of plans: who
// needs which bytes when is decided above, in zero.
//
//  1. Every device byte of a rank passes an [Arena].
//  2. An Arena and its observers see the same calls in the same order on every run of a plan, so what they count is as
//     deterministic as the plan.
//  3. Reserving is rare and may allocate. Begin and End are part of a step and do not.
//
// What watches memory is an [Observer]: a [Limit] refuses, a [Tracker] counts. The engine contains no tracking code.
package memory
