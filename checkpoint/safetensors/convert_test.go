package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"zeroshard/checkpoint/safetensors"
)

// half is the value of a number with 1 sign bit, exp bits of exponent, and man of mantissa, from the definition of IEEE 754.
func half(h uint16, exp, man int) float64 {
	sign := 1 - 2*float64(h>>15)
	e, m := int(h>>man)&(1<<exp-1), float64(h&(1<<man-1))
	bias := 1<<(exp-1) - 1
	switch {
	case e == 1<<exp-1 && m != 0:
		return math.NaN()
	case e == 1<<exp-1:
		return sign * math.Inf(1)
	case e == 0:
		return sign * math.Ldexp(m, 1-bias-man)
	}
	return sign * math.Ldexp(1+math.Ldexp(m, -man), e-bias)
}

var halves = []struct {
	dtype    safetensors.DType
	exp, man int
}{{safetensors.F16, 5, 10}, {safetensors.BF16, 8, 7}}

// widened reads all elements of one tensor.
func widened(d safetensors.DType, data []byte) ([]float32, error) {
	n := len(data) / d.Size()
	head, err := safetensors.Marshal([]safetensors.Tensor{{Name: "x", DType: d, Shape: []int64{int64(n)}}}, nil)
	if err != nil {
		return nil, err
	}
	raw := append(head, data...)
	f, err := safetensors.NewReader(bytes.NewReader(raw), int64(len(raw)), "x")
	if err != nil {
		return nil, err
	}
	v := make([]float32, n)
	return v, f.Float32s(f.Tensors[0], 0, v)
}

// All 2¹⁶ numbers of both types, there and back.
func TestHalvesWiden(t *testing.T) {
	for _, c := range halves {
		var data []byte
		for h := range 1 << 16 {
			data = binary.LittleEndian.AppendUint16(data, uint16(h))
		}
		v, err := widened(c.dtype, data)
		if err != nil {
			t.Fatal(err)
		}
		for h, x := range v {
			want := half(uint16(h), c.exp, c.man)
			if float64(x) != want && (x == x || want == want) || math.Signbit(float64(x)) != (h>>15 == 1) {
				t.Fatalf("%s %#04x is %v, want %v", c.dtype, h, x, want)
			}
		}
		back, err := safetensors.AppendFloat32s(nil, c.dtype, v)
		if err != nil {
			t.Fatal(err)
		}
		for h, x := range v {
			if got := binary.LittleEndian.Uint16(back[2*h:]); int(got) != h && x == x {
				t.Fatalf("%s %#04x comes back as %#04x", c.dtype, h, got)
			}
		}
	}
}

// Between two neighbours: the middle goes to the even one, what is beside it to the nearer one.
func TestHalvesNarrow(t *testing.T) {
	for _, c := range halves {
		inf := 1<<15 - 1<<c.man
		for h := range inf {
			lo, hi := half(uint16(h), c.exp, c.man), half(uint16(h+1), c.exp, c.man)
			if h+1 == inf { // the next number if there were one
				hi = lo + lo - half(uint16(h-1), c.exp, c.man)
			}
			mid := float32((lo + hi) / 2)
			if math.IsInf(float64(mid), 0) || float64(mid) != (lo+hi)/2 {
				continue // between denormals of BF16 float32 may lie no middle
			}
			even := h + h&1
			for _, p := range []struct {
				x    float32
				want int
			}{{math.Nextafter32(mid, 0), h}, {mid, even}, {math.Nextafter32(mid, float32(math.Inf(1))), h + 1}} {
				if float64(p.x) <= lo || float64(p.x) >= hi {
					continue
				}
				for sign, x := range []float32{p.x, -p.x} {
					b, err := safetensors.AppendFloat32s(nil, c.dtype, []float32{x})
					if p.want == inf {
						if !errors.Is(err, safetensors.ErrConvert) {
							t.Fatalf("%v as %s: %v", x, c.dtype, err)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					if got := binary.LittleEndian.Uint16(b); int(got) != sign<<15|p.want {
						t.Fatalf("%v (%#08x) as %s is %#04x, want %#04x", x, math.Float32bits(x), c.dtype, got, sign<<15|p.want)
					}
				}
			}
		}
	}
}

func TestFloat64IsExactOrRefused(t *testing.T) {
	bytes64 := func(v ...float64) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		return b
	}
	v, err := widened(safetensors.F64, bytes64(1.5, -0x1p-149, math.Inf(-1), math.NaN()))
	if err != nil || v[0] != 1.5 || v[1] != -0x1p-149 || v[2] != float32(math.Inf(-1)) || v[3] == v[3] {
		t.Errorf("%v, %v", v, err)
	}
	for _, x := range []float64{0.1, 1 + 0x1p-24, 1e39, 0x1p-150} {
		if v, err := widened(safetensors.F64, bytes64(0, x)); !errors.Is(err, safetensors.ErrConvert) {
			t.Errorf("%v became %v (%v)", x, v, err)
		}
	}
}

func TestNarrowRefuses(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		d  safetensors.DType
		x  float32
		ok bool
	}{
		{safetensors.F16, 65504, true}, {safetensors.F16, 65520, false}, {safetensors.F16, 1e10, false}, {safetensors.F16, inf, true}, {safetensors.F16, -inf, true},
		{safetensors.BF16, math.MaxFloat32, false}, {safetensors.BF16, inf, true},
		{safetensors.F64, 1, false}, {safetensors.I8, 1, false}, {"", 1, false},
	} {
		if _, err := safetensors.AppendFloat32s(nil, c.d, []float32{c.x}); (err == nil) != c.ok || err != nil && !errors.Is(err, safetensors.ErrConvert) {
			t.Errorf("%v as %q: %v", c.x, c.d, err)
		}
	}
	nan := math.Float32frombits(0x7f800001) // a NaN whose upper mantissa is 0 must not become infinity
	for _, c := range halves {
		b, err := safetensors.AppendFloat32s(nil, c.dtype, []float32{nan})
		if err != nil || half(binary.LittleEndian.Uint16(b), c.exp, c.man) == half(binary.LittleEndian.Uint16(b), c.exp, c.man) {
			t.Errorf("NaN as %s: % x, %v", c.dtype, b, err)
		}
	}
}
