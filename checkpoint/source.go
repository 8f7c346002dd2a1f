package checkpoint

import (
	"encoding/binary"
	"unsafe"
)

// Source is what one rank saves.
type Source interface {
	// Pieces lists it. All ranks' pieces together are every element of every state, each once.
	Pieces() []Piece
	// Read copies elements [lo, lo+len(dst)) of a piece, counted from the piece's first, to dst.
	Read(p Piece, lo int, dst []float32) error
}

// Piece is elements [From, From+Len) of one state of a parameter.
type Piece struct {
	Param, State string
	From, Len    int
	Streamed     bool // may be larger than memory: a snapshot leaves it out, it is written at once
}

// key is the name of the piece's tensor.
func (p Piece) key() string { return p.State + "/" + p.Param }

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// fill lets read write fp32 values into p, which begins at a multiple of four bytes in memory, and leaves them little-endian.
func fill(p []byte, read func(dst []float32) error) error {
	if err := read(unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(p))), len(p)/4)); err != nil {
		return err
	}
	turn(p)
	return nil
}

// turn makes this machine's fp32 values little-endian ones, and the other way round.
func turn(p []byte) {
	if !littleEndian {
		for i := 0; i < len(p); i += 4 {
			binary.LittleEndian.PutUint32(p[i:], binary.NativeEndian.Uint32(p[i:]))
		}
	}
}
