// Package devicetest is the conformance suite of device.Device, and a wrapper that injects faults into one. A backend's test is one
// line: devicetest.Run.
package devicetest
