package kerneltest

import "zeroshard/kernels"

// next lists calls that continue texts: each shape is (batch, rows, room, heads, dim), and every sequence of a batch stands elsewhere in its text.
func (l *list) next() {
	for _, s := range [][5]int{{0, 2, 3, 1, 4}, {1, 1, 1, 1, 1}, {3, 1, 9, 2, 12}, {2, 5, 11, 3, 8}, {4, 7, 140, 2, 16}, {1, 1, 300, 2, 64}, {2, 64, 300, 1, 33},
		{1, 140, 290, 1, 20}, {1, 3, 5, 1, 260}} {
		l.continued(s)
	}
}

// continued is of one such shape.
func (l *list) continued(s [5]int) {
	b, seq, room, heads, dim := s[0], s[1], s[2], s[3], s[4]
	l.add(func(m *mem) func(Kernels) {
		n, d := b*seq, heads*dim
		a := kernels.AttentionNext{Out: m.f32(n * d), QKV: m.f32(n * 3 * d), Cache: m.f32(2 * b * room * d), Spans: m.spans(b, seq, room),
			Batch: b, Seq: seq, Room: room, Heads: heads, Dim: dim}
		return func(k Kernels) { k.AttentionNext(nil, a); k.AttentionNext(nil, a) }
	}, "AttentionNext/%v", s)
	for _, pos := range []bool{false, true} {
		l.add(func(m *mem) func(Kernels) {
			const vocab = 11
			e := kernels.EmbedNext{Out: m.f32(b * seq * dim), Table: m.f32(vocab * dim), Pos: m.opt(pos, room*dim), Tokens: m.ints(b*seq, 0, vocab),
				Spans: m.spans(b, seq, room), Batch: b, Seq: seq, Dim: dim}
			return func(k Kernels) { k.EmbedNext(nil, e) }
		}, "EmbedNext/%v/pos=%t", s, pos)
	}
}

// spans places rows of b sequences: the last ends with the room, the one before has no rows.
func (m *mem) spans(b, seq, room int) kernels.Buffer {
	buf := m.ints(2*b, 0, seq+1)
	x := buf.Int32s()
	for i := range b {
		n, at := min(int(x[2*i+1]), room), 7*int(x[2*i])
		switch i {
		case b - 1:
			n, at = min(seq, room), room
		case b - 2:
			n = 0
		}
		x[2*i], x[2*i+1] = int32(min(at, room-n)), int32(n)
	}
	return buf
}
