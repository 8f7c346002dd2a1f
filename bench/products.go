package bench

import (
	"fmt"
	"math"
	"strings"

	"zeroshard/kernels"
)

// The products of GPT-2: M rows of tokens, and (K,N) of the projections qkv, attention, fc, out, and onto the vocabulary.
var (
	tokenRows   = [...]int{256, 1024}
	projections = [...][2]int{{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}}
	vocabulary  = [2]int{768, 50304}
)

const (
	vocabularyName = "sgemm vocabulary"
	productName    = "sgemm"
)

// products lists NN (forward), NT (gradient of the input) and TN (of the weights) of every shape. Each has M, N and K of the product that
// runs: the three of one layer have the same number of operations.
func products() (out []measurement) {
	for _, op := range [...]string{"NN", "NT", "TN"} {
		for _, m := range tokenRows {
			for _, p := range projections {
				out = append(out, product(productName, op, m, p))
			}
		}
	}
	for _, op := range [...]string{"NN", "NT", "TN"} {
		for _, m := range tokenRows {
			out = append(out, product(vocabularyName, op, m, vocabulary))
		}
	}
	return out
}

func product(name, op string, rows int, p [2]int) measurement {
	k, n := p[0], p[1]
	mm := kernels.MatMul{M: rows, N: n, K: k}
	switch op {
	case "NT": // dX (rows,k) = dY (rows,n) · W (k,n)ᵀ
		mm = kernels.MatMul{M: rows, N: k, K: n, TransB: true}
	case "TN": // dW (k,n) = X (rows,k)ᵀ · dY (rows,n)
		mm = kernels.MatMul{M: k, N: n, K: rows, TransA: true}
	}
	return measurement{
		name: name + " " + op, shape: fmt.Sprintf("%dx%dx%d", mm.M, mm.N, mm.K),
		amount: 2 * float64(mm.M) * float64(mm.N) * float64(mm.K),
		prepare: func(a *arena, b kernels.Backend) (work, error) {
			buf, err := a.floats(mm.M*mm.N, mm.M*mm.K, mm.K*mm.N)
			if err != nil {
				return nil, err
			}
			mm.C, mm.A, mm.B = buf[0], buf[1], buf[2]
			return func() error { b.MatMul(nil, mm); return nil }, nil
		},
	}
}

// geomean is the geometric mean of the products without the vocabulary's, if there are several.
func geomean(rows []Row) (mean Row, ok bool) {
	var value, limit float64
	n := 0
	for _, r := range rows {
		if strings.HasPrefix(r.Name, vocabularyName) {
			continue
		}
		mean = r
		value += math.Log(r.Value)
		limit += math.Log(r.Limit)
		n++
	}
	if n < 2 {
		return Row{}, false
	}
	mean.Name, mean.Shape = "sgemm geomean", fmt.Sprintf("%d shapes", n)
	mean.Value, mean.Limit = math.Exp(value/float64(n)), math.Exp(limit/float64(n))
	return mean.held(), true
}
