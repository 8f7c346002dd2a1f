package memory_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"zeroshard/memory"
)

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64 // -1: refused
	}{
		{"0", 0}, {"123", 123}, {"123B", 123}, {"64MiB", 64 << 20}, {"64 MiB", 64 << 20}, {" 64mib ", 64 << 20},
		{"1.5GB", 1_500_000_000}, {"1.5GiB", 3 << 29}, {"1kB", 1000}, {"1KiB", 1024}, {"2TB", 2e12}, {"3PiB", 3 << 50},
		{".5KiB", 512}, {"5.KiB", 5120}, {"1.3GiB", 1395864371}, {"0.1KiB", 102}, {"7EiB", 7 << 60},
		{"9223372036854775807", math.MaxInt64}, {"7.999999999999999999EiB", 1<<63 - 2},
		{"9223372036854775808", -1}, {"8EiB", -1}, {"10EB", -1}, {strings.Repeat("9", 1000), -1},
		{"", -1}, {" ", -1}, {"MiB", -1}, {".", -1}, {"1.5", -1}, {"1.5B", -1}, {"1.2.3MB", -1}, {"-1", -1}, {"+1", -1},
		{"1e9", -1}, {"0x10", -1}, {"1_000", -1}, {"64 M", -1}, {"64MiBs", -1}, {"1/2GB", -1}, {"NaN", -1}, {"١٢", -1},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, err := memory.ParseBytes(c.text)
			if c.want < 0 {
				if !errors.Is(err, memory.ErrSize) || !strings.HasPrefix(err.Error(), "memory: ") {
					t.Errorf("got %d, %v; want ErrSize", got, err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %d, %v; want %d", got, err, c.want)
			}
		})
	}
	if _, err := memory.ParseBytes("64 megs"); err == nil || !strings.Contains(err.Error(), `"64 megs"`) || !strings.Contains(err.Error(), "64MiB") {
		t.Errorf("%v: want the text and the accepted forms", err)
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1 KiB", 1025: "1.00 KiB", 1536: "1.50 KiB", 1<<20 - 1: "1023.99 KiB",
		64 << 20: "64 MiB", 5 << 30: "5 GiB", 3<<40 + 1<<39: "3.50 TiB", math.MaxInt64: "7.99 EiB", -2048: "-2 KiB", math.MinInt64: "-8 EiB",
	} {
		if got := memory.FormatBytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// What FormatBytes writes can be read, is never more than n, and is less by at most a hundredth of its unit.
func FuzzBytes(f *testing.F) {
	for _, n := range []int64{0, 1, 1000, 1024, 1 << 40, math.MaxInt64, 999_999_999} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		if n < 0 {
			n = ^n
		}
		text := memory.FormatBytes(n)
		got, err := memory.ParseBytes(text)
		if err != nil {
			t.Fatalf("%d is written %q: %v", n, text, err)
		}
		if got > n || n-got > n/100+1 {
			t.Errorf("%d is written %q, which is %d", n, text, got)
		}
		if !strings.Contains(text, ".") && got != n {
			t.Errorf("%d is written %q, without a point, but is not exactly that", n, text)
		}
	})
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"64MiB", "1.5GB", "123", "1e5", "9.9.9", "-3kB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := memory.ParseBytes(s)
		if err == nil && n < 0 || err != nil && !errors.Is(err, memory.ErrSize) {
			t.Errorf("%q: %d, %v", s, n, err)
		}
	})
}
