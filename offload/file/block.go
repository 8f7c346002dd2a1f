package file

import (
	"fmt"
	"hash/crc32"

	"zeroshard/offload"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// slice is one key's place on disk: bytes from at on in file, cut into blocks from its own beginning. at is a multiple of sector, and so
// is the room behind the last byte.
//
// It has no lock: calls for one key come in order, and the parts of one call take different blocks.
type slice struct {
	key    offload.Key
	file   *dataFile
	at     int64
	bytes  int64
	blocks []block
}

// block is what memory knows of a block on disk.
type block struct {
	state state
	sum   uint32 // CRC-32C of its bytes, where written
}

type state uint8

const (
	zeroed  state = iota // never written: reads as zeros, without I/O
	written              // its sum is known
	torn                 // a write failed: what is on disk is anything
)

// dataFile is the file of one state.
type dataFile struct {
	disk
	path string
}

// span is a part of a block: bytes [from, to) of the n that the block has, which begin at off in the slice.
type span struct {
	index    int
	off      int64
	n        int
	from, to int
}

func (p span) whole() bool { return p.from == 0 && p.to == p.n }

// get copies part p of a block to dst. It reads the whole block, to check it: into dst itself if dst is all of it.
func (t *Tier) get(s *slice, p span, dst []byte) error {
	switch b := s.blocks[p.index]; b.state {
	case zeroed:
		clear(dst)
		return nil
	case torn:
		return t.fault(false, s, p, offload.ErrTorn)
	}
	if p.whole() && movable(s.file, dst) {
		return t.read(s, p, dst)
	}
	buf := <-t.staging
	defer func() { t.staging <- buf }()
	if err := t.read(s, p, buf[:roundUp(p.n)]); err != nil {
		return err
	}
	copy(dst, buf[p.from:p.to])
	return nil
}

// put copies src to part p of a block. It writes the whole block, whose other bytes it reads first: from src itself if src is all of it.
func (t *Tier) put(s *slice, p span, src []byte) error {
	b := &s.blocks[p.index]
	if p.whole() && movable(s.file, src) {
		return t.write(s, p, src)
	}
	buf := <-t.staging
	defer func() { t.staging <- buf }()
	disk := buf[:roundUp(p.n)]
	switch {
	case p.whole():
	case b.state == written:
		if err := t.read(s, p, disk); err != nil {
			return err
		}
	case b.state == torn:
		return t.fault(true, s, p, offload.ErrTorn)
	default:
		clear(disk)
	}
	copy(disk[p.from:], src)
	clear(disk[p.n:])
	return t.write(s, p, disk)
}

// read fills buf, the block's bytes and perhaps the rest of their last sector, and compares the sum.
func (t *Tier) read(s *slice, p span, buf []byte) error {
	if err := readAll(s.file, buf, s.at+p.off); err != nil {
		return t.fault(false, s, p, err)
	}
	if err := s.file.Forget(s.at+p.off, int64(len(buf)), false); err != nil {
		return t.fault(false, s, p, err)
	}
	if got, want := crc32.Checksum(buf[:p.n], castagnoli), s.blocks[p.index].sum; got != want {
		return t.fault(false, s, p, fmt.Errorf("%w: checksum %08x, written with %08x: the disk or its memory changed them; run again, on another disk", offload.ErrCorrupt, got, want))
	}
	return nil
}

// write writes buf, as in read, and keeps the sum. The block is torn until all of it is written.
func (t *Tier) write(s *slice, p span, buf []byte) error {
	b := &s.blocks[p.index]
	sum := crc32.Checksum(buf[:p.n], castagnoli)
	b.state = torn
	if err := writeAll(s.file, buf, s.at+p.off); err != nil {
		return t.fault(true, s, p, err)
	}
	if err := s.file.Forget(s.at+p.off, int64(len(buf)), true); err != nil {
		return t.fault(true, s, p, err)
	}
	*b = block{written, sum}
	return nil
}

func (t *Tier) fault(put bool, s *slice, p span, err error) error {
	return &offload.CallError{
		Tier: name, Rank: t.opts.Rank, Verb: verb(put), Key: s.key,
		Path: s.file.path, Off: s.at + p.off, Bytes: int64(p.n), Err: err,
	}
}

func verb(put bool) string {
	if put {
		return "put"
	}
	return "get"
}

// roundUp is n in whole sectors.
func roundUp[T int | int64](n T) T { return (n + sector - 1) &^ (sector - 1) }
