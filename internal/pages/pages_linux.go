package pages

import "golang.org/x/sys/unix"

// advise asks for huge pages. Memory that has none is as good: an error says nothing.
func advise(mem []byte) { _ = unix.Madvise(mem, unix.MADV_HUGEPAGE) }
