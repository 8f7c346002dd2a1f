// Package disk makes the names in a folder last: of files that were made, renamed or removed there. The contents of a file are the file's own
// to flush.
package disk
