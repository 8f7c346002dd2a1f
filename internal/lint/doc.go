// Package lint holds the rules that the tree of this project keeps, as code: import floors, sizes, and what must not be written. They
// run as a Go test over the parsed source, so no tool needs installing to know whether the tree is fit.
//
//  1. Files are read and parsed here, never by a program that is run: go test sees which files a test read, and so does not take
//     an old result for a new tree.
//  2. Each rule says why, and has a test with source that breaks it.
//  3. What a rule must let pass stands in allow.go with a reason; an entry that nothing needs any more is a fault itself.
//  4. Rules are alarms: where one would make the code worse, raise the limit in the same commit and say why.
package lint
