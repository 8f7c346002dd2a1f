// Package stagetest holds the claims of the project as tests, named after them: same bits, true memory, exact traffic, faults. It
// imports everything and is imported by nothing.
package stagetest
