package zeroshard

import (
	"testing"

	"gorgonia.org/tensor"
)

// FuzzByRows slices and transposes a tensor at random: byRows must read it as its index says.
func FuzzByRows(f *testing.F) {
	f.Add([]byte{3, 4, 5, 0, 1, 2})
	f.Add([]byte{6, 6, 6, 1, 0, 4, 1, 2})
	f.Add([]byte{7, 5, 2, 4, 3, 0, 5, 6, 2, 1, 0})
	f.Fuzz(func(t *testing.T, moves []byte) {
		next := func() int {
			if len(moves) == 0 {
				return 0
			}
			b := moves[0]
			moves = moves[1:]
			return int(b)
		}
		shape := []int{1 + next()%7, 1 + next()%7, 1 + next()%7}[:1+next()%3]
		v := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(tensor.Range(tensor.Float32, 0, tensor.Shape(shape).TotalSize())))
		for len(moves) > 0 && v.Dims() > 0 {
			if next()%3 == 0 {
				axes := [...][]int{{1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}}[next()%5]
				if v.Dims() == 2 {
					axes = []int{1, 0}
				}
				if v.Dims() == 1 || v.T(axes...) != nil {
					return
				}
				continue
			}
			cut := make([]tensor.Slice, v.Dims())
			for d, n := range v.Shape() {
				lo := next() % n
				if hi := lo + 1 + next()%(n-lo); hi-lo < n {
					cut[d] = tensor.S(lo, hi)
				}
			}
			s, err := v.Slice(cut...)
			if err != nil {
				return
			}
			v = s.(*tensor.Dense)
		}
		if v.IsScalar() {
			return
		}
		got, index := byRows(v), make([]int, v.Dims())
		for i := range got {
			want, err := v.At(index...)
			if err != nil {
				return // At counts dims that slices dropped
			}
			if got[i] != want {
				t.Fatalf("shape %v strides %v: element %v is %v, want %v", v.Shape(), v.Strides(), index, got[i], want)
			}
			for d := len(index) - 1; d >= 0; d-- {
				if index[d]++; index[d] < v.Shape()[d] {
					break
				}
				index[d] = 0
			}
		}
	})
}
