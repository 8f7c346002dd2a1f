package device_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"zeroshard/device"
	"zeroshard/device/null"
)

func TestHost(t *testing.T) {
	for _, c := range []struct {
		name  string
		buf   device.Buffer
		dtype device.DType
		bytes int64
	}{
		{"float32", device.Host([]float32{1, 2}), device.F32, 8},
		{"float64", device.Host([]float64{1, 2}), device.F64, 16},
		{"int32", device.Host([]int32{1, 2, 3}), device.I32, 12},
		{"uint64", device.Host([]uint64{1}), device.U64, 8},
		{"empty", device.Host([]int32{}), 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.buf.DType != c.dtype || c.buf.Bytes() != c.bytes || int64(len(c.buf.Raw())) != c.bytes {
				t.Errorf("%v of %d bytes, want %v of %d", c.buf.DType, c.buf.Bytes(), c.dtype, c.bytes)
			}
		})
	}
}

func TestViews(t *testing.T) {
	if got := device.Host([]float64{1, math.Inf(1)}).Float64s(); !slices.Equal(got, []float64{1, math.Inf(1)}) {
		t.Errorf("float64 view %v", got)
	}
	if got := device.Host([]int32{-1, 7}).Slice(1, 2).Int32s(); !slices.Equal(got, []int32{7}) {
		t.Errorf("int32 view %v", got)
	}
	if got := device.Host([]uint64{1 << 63}).Uint64s(); !slices.Equal(got, []uint64{1 << 63}) {
		t.Errorf("uint64 view %v", got)
	}
	if got := (device.Buffer{}).Float32s(); got != nil {
		t.Errorf("view of the zero buffer: %v", got)
	}
	v := []float32{0, 0}
	device.Host(v).Float32s()[1] = 5
	if v[1] != 5 {
		t.Error("the view is a copy")
	}
}

func TestMisuse(t *testing.T) {
	b := device.Host([]float32{1, 2, 3})
	for _, c := range []struct {
		name, want string
		f          func()
	}{
		{"slice past the end", "[1:4) of a buffer of 3", func() { b.Slice(1, 4) }},
		{"negative slice", "[-1:2)", func() { b.Slice(-1, 2) }},
		{"reversed slice", "[2:1)", func() { b.Slice(2, 1) }},
		{"wrong dtype", "fp32 buffer read as int32", func() { b.Int32s() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), c.want) {
					t.Errorf("panic %v, want one with %q", v, c.want)
				}
			}()
			c.f()
		})
	}
}

// Row 67 of the field's reports: 32-bit products overflow at 7B parameters. Sizes here are past 2^31 elements and 2^40 bytes.
func TestSizesPast2To31(t *testing.T) {
	dev := null.New()
	defer dev.Close()
	const n = 3<<31 + 7
	for _, d := range []device.DType{device.F32, device.BF16, device.F16, device.F64, device.I32, device.U64} {
		t.Run(d.String(), func(t *testing.T) {
			mem, err := dev.Alloc(n * int64(d.Size()))
			if err != nil {
				t.Fatal(err)
			}
			b := device.Buffer{Mem: mem, Len: n, DType: d}
			if b.Bytes() != mem.Size() {
				t.Errorf("%d elements are %d bytes, want %d", b.Len, b.Bytes(), mem.Size())
			}
			s := b.Slice(1<<31, n).Slice(1<<31, 2<<31+7)
			if s.Off != int64(2<<31)*int64(d.Size()) || s.Len != 1<<31+7 || s.Off+s.Bytes() != mem.Size() {
				t.Errorf("slice at byte %d, %d elements, %d bytes", s.Off, s.Len, s.Bytes())
			}
			if s.Raw() != nil {
				t.Error("null memory has bytes")
			}
		})
	}
	huge := device.Buffer{Len: 1 << 45, DType: device.F64}
	if huge.Bytes() != 1<<48 || huge.Slice(1<<44, 1<<45).Off != 1<<47 {
		t.Errorf("2^45 fp64 are %d bytes", huge.Bytes())
	}
}

func TestCheckCopy(t *testing.T) {
	f, i := device.Host([]float32{1, 2}), device.Host([]int32{1, 2})
	for _, c := range []struct {
		name     string
		dst, src device.Buffer
		ok       bool
	}{
		{"equal", f, f, true},
		{"empty without dtypes", device.Buffer{}, i.Slice(0, 0), true},
		{"dtypes", f, i, false},
		{"lengths", f, f.Slice(0, 1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := device.CheckCopy(c.dst, c.src)
			if (err == nil) != c.ok || (err != nil && !errors.Is(err, device.ErrArgument)) {
				t.Errorf("CheckCopy: %v", err)
			}
		})
	}
}

func TestDTypeString(t *testing.T) {
	for d, want := range map[device.DType]string{0: "DType(0)", device.F32: "fp32", device.U64: "uint64", 99: "DType(99)"} {
		if d.String() != want {
			t.Errorf("DType(%d) is %q, want %q", uint8(d), d.String(), want)
		}
	}
}

func TestPanicError(t *testing.T) {
	cause := errors.New("test: cause")
	err := &device.PanicError{Label: "07 compute forward h.0", Value: cause}
	if want := `device: panic in "07 compute forward h.0": test: cause`; err.Error() != want || !errors.Is(err, cause) {
		t.Errorf("%q, want %q and the cause inside", err, want)
	}
	if plain := (&device.PanicError{Value: "text"}); plain.Unwrap() != nil {
		t.Errorf("a panic with a text wraps %v", plain.Unwrap())
	}
}

func ExampleBuffer_Slice() {
	flat := device.Host([]float32{1, 2, 3, 4, 5, 6})
	bias := flat.Slice(4, 6) // a view: no copy
	bias.Float32s()[0] = 50
	fmt.Println(flat.Float32s())
	// Output: [1 2 3 4 50 6]
}
