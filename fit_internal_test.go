package zeroshard

import (
	"fmt"
	"testing"
)

func TestNearestFirst(t *testing.T) {
	for at, want := range []string{"[0 1 2 3]", "[1 2 0 3]", "[2 3 1 0]", "[3 2 1 0]"} {
		if got := fmt.Sprint(nearestFirst(at, 4)); got != want {
			t.Errorf("from %d: %s, want %s", at, got, want)
		}
	}
}

func TestDoubled(t *testing.T) {
	for _, c := range []struct {
		n, most int
		want    string
	}{{1, 8, "[1 2 4 8]"}, {3, 8, "[3 6 8]"}, {8, 8, "[8]"}, {5, 6, "[5 6]"}, {9, 8, "[9]"}} {
		if got := fmt.Sprint(doubled(c.n, c.most)); got != c.want {
			t.Errorf("from %d to %d: %s, want %s", c.n, c.most, got, c.want)
		}
	}
}
