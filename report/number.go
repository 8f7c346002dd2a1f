package report

import (
	"fmt"
	"math"
	"strconv"
)

// Number is a float64 in a line of metrics. JSON has no NaN and no infinities, and a diverging run is when one wants to see them: they are
// the strings "NaN", "Infinity" and "-Infinity". (A summary's numbers are null there: scripts compare those.)
type Number float64

// MarshalJSON writes the shortest decimal that reads back as the same bits.
func (n Number) MarshalJSON() ([]byte, error) {
	switch f := float64(n); {
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	case math.IsInf(f, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return strconv.AppendFloat(nil, f, 'g', -1, 64), nil
	}
}

// UnmarshalJSON reads what MarshalJSON writes, and null as NaN.
func (n *Number) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"NaN"`, "null":
		*n = Number(math.NaN())
	case `"Infinity"`:
		*n = Number(math.Inf(1))
	case `"-Infinity"`:
		*n = Number(math.Inf(-1))
	default:
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return fmt.Errorf("%w: %s is no number, \"NaN\", \"Infinity\" or \"-Infinity\"", ErrMetrics, text)
		}
		*n = Number(f)
	}
	return nil
}
