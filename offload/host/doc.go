// Package host is the tier in host memory, outside the device's arena.
//
//  1. All slices lie in one mapping outside the Go heap, which begins at a page: a device may pin it as a whole.
//  2. Each slice begins at a multiple of 512 bytes, so that slices of whole grains lie without gaps.
//  3. Put and Get copy on the caller's goroutine and allocate nothing.
package host
