package ref

import (
	"zeroshard/device"
	"zeroshard/kernels"
)

// Embed: rows of the table, plus positions.
func (*Kernels) Embed(_ device.Stream, e kernels.Embed) {
	out, table, pos, tokens := e.Out.Float32s(), e.Table.Float32s(), e.Pos.Float32s(), e.Tokens.Int32s()
	d := e.Dim
	for i := range e.Batch * e.Seq {
		row := int(tokens[i]) * d
		for j := range d {
			v := table[row+j]
			if len(pos) > 0 {
				v += pos[i%e.Seq*d+j]
			}
			out[i*d+j] = v
		}
	}
}

// EmbedBackward: chains over tokens, ascending, from what the gradients hold.
func (*Kernels) EmbedBackward(_ device.Stream, e kernels.Embed) {
	dout, table, pos, tokens := e.Out.Float32s(), e.Table.Float32s(), e.Pos.Float32s(), e.Tokens.Int32s()
	d := e.Dim
	for i := range e.Batch * e.Seq {
		row := int(tokens[i]) * d
		for j := range d {
			table[row+j] += dout[i*d+j]
			if len(pos) > 0 {
				pos[i%e.Seq*d+j] += dout[i*d+j]
			}
		}
	}
}

// PickRows copies one row of each sequence.
func (*Kernels) PickRows(_ device.Stream, dst, x, targets kernels.Buffer, seq, d int) {
	out, in, want := dst.Float32s(), x.Float32s(), targets.Int32s()
	if seq == 0 {
		return
	}
	for b := range len(want) / seq {
		t := seq - 1
		for t > 0 && want[b*seq+t] < 0 {
			t--
		}
		if want[b*seq+t] < 0 {
			t = seq - 1
		}
		copy(out[b*d:(b+1)*d], in[(b*seq+t)*d:])
	}
}
