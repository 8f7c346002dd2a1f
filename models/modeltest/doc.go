// Package modeltest is the conformance suite for models: whoever writes units gets, with one line in a test, what the engine relies
// on and cannot check in a run.
//
//	func TestModel(t *testing.T) {
//		modeltest.Run(t, ref.New(), myModel, models.Shape{Batch: 2, Seq: 5}, vocab)
//	}
//
// [Leaf] runs a model on one leaf without an engine: all buffers are slices of the Go heap, filled with garbage and with guards
// around them, and every call is held to the contract of package models. It is slow, small and strict, and needs kernels that
// run at once (those of a CPU).
package modeltest
