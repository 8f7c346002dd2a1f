package modeltest

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"zeroshard/kernels/ref"
	"zeroshard/models"
)

var toyShape = models.Shape{Batch: 3, Seq: 4}

func TestToy(t *testing.T) {
	Run(t, ref.New(), &toy{width: 5, vocab: 7}, toyShape, 7)
}

// Every fault is seen by the tests that are there for it.
func TestSuiteSeesFaults(t *testing.T) {
	for fault, want := range map[string][]string{
		"":                           nil,
		"two parameters of one name": {"structure"},
		"unread flat":                {"structure"},
		"backward reads more":        {"structure"},
		"saves more than it uses":    {"sizes"},
		"writes past Saved":          {"deterministic", "sizes"},
		"changes its input":          {"deterministic"},
		"recomputes something else":  {"recompute"},
		"leaves Out unwritten":       {"deterministic"},
		"adds to garbage":            {"deterministic"},
		"wrong gradient":             {"gradients"},
		"ignores Add":                {"add"},
		"ignores the scale":          {"scale"},
		"counts ignored targets":     {"targets"},
		"fails where frozen":         {"frozen"},
		"other logits":               {"logits"},
		"initial values by slice":    {"initial"},
		"initial values without key": {"initial"},
	} {
		t.Run(fault, func(t *testing.T) {
			x := suite{func() *Leaf { return NewLeaf(ref.New(), &toy{width: 5, vocab: 7, fault: fault}, toyShape, 7) }}
			var failed []string
			for _, c := range x.cases() {
				if messages := record(c.test); len(messages) > 0 {
					failed = append(failed, c.name)
				}
			}
			if fault == "" && len(failed) > 0 {
				t.Errorf("a sound model fails %v", failed)
			}
			for _, name := range want {
				if !slices.Contains(failed, name) {
					t.Errorf("%s passes; %v fail", name, failed)
				}
			}
		})
	}
}

// recorder is a testing.TB that notes failures.
type recorder struct {
	testing.TB
	messages []string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Skip(...any)                       { runtime.Goexit() }
func (r *recorder) Error(args ...any)                 { r.messages = append(r.messages, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

func record(test func(testing.TB)) []string {
	r, done := &recorder{}, make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r.messages
}

func ExampleLeaf() {
	l := NewLeaf(ref.New(), &toy{width: 5, vocab: 7}, models.Shape{Batch: 1, Seq: 6}, 7)
	first, last := 0.0, 0.0
	for step := range 200 { // gradient descent, by hand
		r, err := l.Train()
		if err != nil {
			fmt.Println(err)
			return
		}
		if last = r.Loss / float64(r.Valid); step == 0 {
			first = last
		}
		for name, g := range r.Grads {
			for i := range g {
				l.Params[name][i] -= 0.05 * g[i]
			}
		}
	}
	fmt.Printf("loss %.1f, then under a half: %v\n", first, last < first/2)
	// Output:
	// loss 2.0, then under a half: true
}
