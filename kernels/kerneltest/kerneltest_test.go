package kerneltest

import (
	"strings"
	"testing"

	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/ref"
)

// broken is the truth with one planted fault.
type broken struct {
	*ref.Kernels
	fault string
}

func (b broken) Add(s device.Stream, dst, x, y kernels.Buffer) {
	b.Kernels.Add(s, dst, x, y)
	if v := dst.Float32s(); b.fault == "tail" && len(v)%8 == 7 {
		v[len(v)-1] = 0
	}
}

func (b broken) GELU(s device.Stream, y, x kernels.Buffer) {
	b.Kernels.GELU(s, y, x)
	for i, v := range y.Float32s() {
		if b.fault == "nan" && v != v {
			y.Float32s()[i] = 0
		}
	}
}

func (b broken) MatMul(s device.Stream, m kernels.MatMul) {
	b.Kernels.MatMul(s, m)
	if b.fault == "input" && m.A.Len > 0 {
		m.A.Float32s()[0]++
	}
}

func (b broken) BiasGrad(s device.Stream, db, dy kernels.Buffer, rows, n int, add bool) {
	b.Kernels.BiasGrad(s, db, dy, rows, n, add && b.fault != "add")
}

func TestPlantedFaultsAreFound(t *testing.T) {
	for fault, prefix := range map[string]string{"tail": "Add/", "nan": "GELU/", "input": "MatMul/1x1x1", "add": "BiasGrad/", "": ""} {
		t.Run("fault="+fault, func(t *testing.T) {
			var found []string
			for _, c := range append(vectorTests(), netTests()...) {
				if strings.HasPrefix(c.name, prefix) && len(c.name) < 24 {
					found = append(found, c.faults([]backend{{"planted", broken{ref.New(), fault}, true}}, ref.New())...)
				}
			}
			if (len(found) > 0) != (fault != "") {
				t.Errorf("found %d faults: %v", len(found), found)
			}
		})
	}
}
