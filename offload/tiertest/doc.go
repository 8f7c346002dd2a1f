// Package tiertest is the conformance suite of offload.Tier. A backend's test is one line: tiertest.Run. Wrap injects faults into any tier.
package tiertest
