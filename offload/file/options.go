package file

import (
	"fmt"

	"zeroshard/offload"
)

// Direct says whether I/O goes around the page cache.
type Direct int

const (
	Auto   Direct = iota // where the file system takes it
	Always               // or Reserve fails
	Never
)

// Options of New.
type Options struct {
	// Dir is an existing folder on the disk to use. Several ranks and runs may share it.
	Dir string
	// Rank is whose slices these are.
	Rank int
	// BlockBytes is how much one read or write moves, a multiple of 4096. 0 means 1 MiB.
	BlockBytes int64
	// Concurrency is how many reads and writes are in flight at most, together. 0 means 8.
	Concurrency int
	// Direct is whether I/O goes around the page cache. The zero value asks the file system.
	Direct Direct
}

// sector is what direct I/O is aligned to in a file: enough for every disk.
const sector = 4096

const maxBlock = 1 << 30

func (o Options) withDefaults() Options {
	if o.BlockBytes == 0 {
		o.BlockBytes = 1 << 20
	}
	if o.Concurrency == 0 {
		o.Concurrency = 8
	}
	return o
}

// Staging is the bytes of host memory that a tier of these options takes.
func (o Options) Staging() int64 {
	o = o.withDefaults()
	return o.BlockBytes * int64(o.Concurrency)
}

// check returns what is wrong with o, which has its defaults.
func (o Options) check() error {
	var fault string
	switch {
	case o.Dir == "":
		fault = "no folder is given"
	case o.Rank < 0:
		fault = "the rank is negative"
	case o.BlockBytes < sector || o.BlockBytes%sector != 0 || o.BlockBytes > maxBlock:
		fault = fmt.Sprintf("blocks of %d bytes are not a multiple of %d up to %d", o.BlockBytes, sector, maxBlock)
	case o.Concurrency < 1 || o.Concurrency > 1<<10:
		fault = fmt.Sprintf("a concurrency of %d is not in 1 to %d", o.Concurrency, 1<<10)
	case o.Direct < Auto || o.Direct > Never:
		fault = fmt.Sprintf("Direct is %d", int(o.Direct))
	default:
		return nil
	}
	return fmt.Errorf("offload: file tier: rank %d: %s: %w", o.Rank, fault, offload.ErrArgument)
}
