package memory

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// units are the suffixes of sizes: first the binary ones, from large to small, as FormatBytes tries them.
var units = [...]struct {
	name  string
	bytes int64
}{
	{"EiB", 1 << 60}, {"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"B", 1}, {"EB", 1e18}, {"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3},
}

// binary is the number of binary units.
const binary = 6

// ParseBytes reads a size: a decimal number, at most one point in it, and a unit: B (or none), kB, MB, GB, TB, PB, EB (powers of 1000)
// or KiB … EiB (powers of 1024), in any case, after a space or none. A fraction of a unit is computed exactly and cut to whole
// bytes ("1.3GiB"); a fraction of a byte ("1.5B"), a sign, and more than an int64 holds are refused. Its error wraps ErrSize.
func ParseBytes(s string) (int64, error) {
	text := strings.TrimSpace(s)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, suffix := text[:end], strings.TrimSpace(text[end:])
	unit := int64(0)
	for _, u := range units {
		if strings.EqualFold(u.name, suffix) || (suffix == "" && u.name == "B") {
			unit = u.bytes
		}
	}
	if unit == 0 || !isDecimal(number) {
		return 0, fmt.Errorf("%w %q: write bytes as 123, 64MiB or 1.5GB (units kB to EB, KiB to EiB)", ErrSize, s)
	}
	value, _ := new(big.Rat).SetString(number)
	value.Mul(value, new(big.Rat).SetInt64(unit))
	if unit == 1 && !value.IsInt() {
		return 0, fmt.Errorf("%w %q: not a whole number of bytes", ErrSize, s)
	}
	bytes := new(big.Int).Quo(value.Num(), value.Denom())
	if !bytes.IsInt64() {
		return 0, fmt.Errorf("%w %q: more than %d bytes", ErrSize, s, int64(math.MaxInt64))
	}
	return bytes.Int64(), nil
}

// isDecimal reports whether s is digits with at most one point, of a length that arithmetic can bear.
func isDecimal(s string) bool {
	digits, points := 0, 0
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == '.':
			points++
		default:
			return false
		}
	}
	return digits > 0 && digits <= 64 && points <= 1
}

// FormatBytes writes n with a binary unit: exactly where it is a whole number of the unit ("64 MiB", which ParseBytes reads back),
// else with two decimals, cut off ("1.53 MiB"). Tables put the bytes beside it.
func FormatBytes(n int64) string {
	if n < 0 {
		if n == math.MinInt64 {
			return "-8 EiB"
		}
		return "-" + FormatBytes(-n)
	}
	for _, u := range units[:binary] {
		if n < u.bytes {
			continue
		}
		whole, rest := n/u.bytes, uint64(n%u.bytes)
		if rest == 0 {
			return fmt.Sprintf("%d %s", whole, u.name)
		}
		hi, lo := bits.Mul64(rest, 100)
		hundredths, _ := bits.Div64(hi, lo, uint64(u.bytes))
		return fmt.Sprintf("%d.%02d %s", whole, hundredths, u.name)
	}
	return fmt.Sprintf("%d B", n)
}
