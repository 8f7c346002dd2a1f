// Package golden compares text with a file of the repository: a test's expected outcome that one can read, diff and review. Run the
// tests with -update to rewrite the files.
package golden
