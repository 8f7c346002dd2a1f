// Package invariants checks what must hold if the code has no bug: with the build tag "invariants" a broken Check panics, without it
// the checks vanish from the program.
//
//  1. It is the only package of the project that panics on purpose.
//  2. A check never guards against bad input: that is an error, in every build.
package invariants
