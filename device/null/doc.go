// Package null is a device that does nothing and counts: memory without bytes, streams that skip their tasks. Plans of models
// far larger than the machine are built and checked on it.
//
//  1. Its memory is no device.HostMem: views of it are nil.
//  2. Used and Peak count exactly as those of device/cpu do.
package null
