// Package grouptest is the conformance suite of collectives.Group. A backend's test is one line: grouptest.Run.
package grouptest
