package data

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// SHA256 identifies what is trained on and held out: the hash over the tokens of both parts as little-endian uint32, each part after its
// number of tokens as uint64. How they are spread over files, and how wide they are there, does not matter. It reads all tokens once, unless ctx ends.
func (s *Set) SHA256(ctx context.Context) (string, error) {
	h := sha256.New()
	ids := make([]int32, block/4)
	raw := make([]byte, block)
	for _, t := range []Tokens{s.Train, s.Val} {
		binary.LittleEndian.PutUint64(raw, uint64(t.Len()))
		h.Write(raw[:8])
		for at := 0; at < t.Len(); at += len(ids) {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			part := ids[:min(len(ids), t.Len()-at)]
			if err := t.Read(at, part); err != nil {
				return "", err
			}
			for i, id := range part {
				binary.LittleEndian.PutUint32(raw[4*i:], uint32(id))
			}
			h.Write(raw[:4*len(part)])
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
