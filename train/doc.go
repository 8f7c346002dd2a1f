// Package train runs the steps of a training run: data, schedule, engine, report. It knows no backend, no stage and no
// command line: it is given a World and turns steps into a Result, lines on a terminal, a summary and a sample of text.
//
//  1. The loop reads top to bottom in loop.go; everything else here serves it.
//  2. Nothing here changes a result: the bits come from World, the tokens from Data, the rate from Settings.
//  3. A step that was begun is finished before the run leaves on request.
//  4. Files appear whole or not at all.
package train
