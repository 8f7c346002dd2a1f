// Package pages maps memory from the operating system. It gives out whole mappings and nothing smaller.
//
//  1. Memory is zeroed, begins at a page (at least 4096 bytes), and lives outside the Go heap: the collector neither scans, moves nor
//     counts it, so a device may pin it and direct I/O may use it.
//  2. A mapping of 2 MiB or more asks for huge pages where the system gives them on request (Linux): the first touch of its memory takes a
//     fifth of the time. Where it has none, nothing changes.
//  3. Unmap gives it back to the operating system at once.
package pages
