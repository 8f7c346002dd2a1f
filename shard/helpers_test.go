package shard_test

import (
	"fmt"
	"strings"

	"zeroshard/shard"
)

// segs prints a flat's segments: "w[0:129] v[256:384]".
func segs(f shard.Flat) string {
	var out []string
	for _, s := range f.Segs {
		out = append(out, fmt.Sprintf("%s[%d:%d]", s.Param.Name, s.Range.Lo, s.Range.Hi))
	}
	return strings.Join(out, " ")
}
