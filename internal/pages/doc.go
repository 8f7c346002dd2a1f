// Package pages maps memory from the operating system. It gives out whole mappings and nothing smaller.
//
//  1. Memory is zeroed, begins at a page (at least 4096 bytes), and lives outside the Go heap: the collector neither scans, moves nor
//     counts it, so a device may pin it and direct I/O may use it.
//  2. Unmap gives it back to the operating system at once.
package pages
