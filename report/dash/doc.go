// Package dash shows a run in a browser, while it goes or afterwards: loss, rates, memory and step time by rank, and where each rank
// stands in its plan. A [Server] is told of steps as they end and sends them on as server-sent events.
//
// It only shows: nothing that a browser sends changes a run.
//
//  1. On a loopback address it serves whoever is on this machine, and only under a name of this machine; on any other, only who
//     knows the token in the address.
//  2. A browser that comes late, or comes back, gets the history first.
//  3. A slow or stuck browser never holds up the run: it is told what there is when it can take it.
//  4. History is bounded: old steps are thinned out.
package dash
