// Package tools pins the programs that check this repository, in a module of their own, so that the library does not depend
// on them. "go tool -modfile=tools/go.mod staticcheck" runs the pinned version.
package tools
