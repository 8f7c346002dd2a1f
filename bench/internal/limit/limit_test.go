package limit

import (
	"bytes"
	"fmt"
	"testing"
)

var lengths = []int{0, 1, 31, 32, 33, 100, piece / 4, piece/4 + 37, 3*piece/4 + 5}

func TestAdd(t *testing.T) {
	for _, n := range lengths {
		dst, src := make([]float32, n+1), make([]float32, n+1)
		for i := range dst {
			dst[i], src[i] = float32(i), 0.5
		}
		Add(dst[:n], src[:n])
		for i, v := range dst {
			want := float32(i)
			if i < n {
				want += 0.5
			}
			if v != want {
				t.Fatalf("%d elements: element %d is %v, want %v", n, i, v, want)
			}
		}
	}
}

func TestRead(t *testing.T) {
	for _, n := range lengths {
		src := make([]float32, n+1)
		var want float32
		for i := range src[:n] {
			src[i] = float32(i % 4) // sums are exact, in any order
			want += src[i]
		}
		src[n] = 1 << 20
		if got := Read(src[:n]); got != want {
			t.Errorf("%d elements sum to %v, want %v", n, got, want)
		}
	}
}

func TestCopiers(t *testing.T) {
	for _, c := range Copiers() {
		for _, n := range lengths {
			for _, shift := range []int{0, 4} { // one of them is not aligned
				t.Run(fmt.Sprintf("%s/%d+%d", c.Name, n, shift), func(t *testing.T) {
					dst, src := make([]byte, n+shift+1), make([]byte, n)
					for i := range src {
						src[i] = byte(i%251) + 1
					}
					c.Copy(dst[shift:shift+n], src)
					if !bytes.Equal(dst[shift:shift+n], src) {
						t.Error("not a copy")
					}
					if dst[shift+n] != 0 || shift > 0 && dst[shift-1] != 0 {
						t.Error("wrote outside")
					}
				})
			}
		}
	}
}

// The portable loop returns its chains' sum, which tells how many multiply-adds it did: each adds 1/4.
func TestFMACounts(t *testing.T) {
	const turns = 5
	if got, want := portableFMA(turns), float32(turns*Flops/2)/4; got != want {
		t.Errorf("%d turns sum to %v, want %v", turns, got, want)
	}
	FMA(0)
	FMA(1<<16 + 1)
}
