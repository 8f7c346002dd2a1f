// Package claim holds files and folders for a process, so that the next one can tell what a killed process left from what a living one
// writes.
//
// It stores no process id: those are used again, and other machines may see the same disk.
//
//  1. What is taken is free again when it is closed, or when the process ends, however it ends.
//  2. Taking does not wait.
//  3. A folder that Beside gives belongs to the caller alone, and Beside removes those whose owners are gone and no others. Where
//     there are no locks it removes none.
package claim
