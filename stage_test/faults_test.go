package stagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"zeroshard"
	"zeroshard/device"
	"zeroshard/device/devicetest"
	"zeroshard/zero"
)

var errInjected = errors.New("injected")

// faultKinds are the ways in which a device fails an op.
var faultKinds = map[string]func() error{
	"error": func() error { return errInjected },
	"panic": func() error { panic(errInjected) },
}

// pass is one of the three things that an engine can be asked for.
type pass struct {
	name string
	plan func(*zero.Program) *zero.Plan
	step int
	run  func(w *crew, rank int) error
}

const faultStep = 7

var passes = []pass{
	{"train", func(p *zero.Program) *zero.Plan { return p.Train }, faultStep, func(w *crew, r int) error {
		_, err := w.engines[r].Step(context.Background(), w.micro(r, faultStep), hyper(faultStep))
		return err
	}},
	{"eval", func(p *zero.Program) *zero.Plan { return p.Eval }, 0, func(w *crew, r int) error {
		var micro []zero.Batch
		for _, leaf := range w.engines[r].Program().Eval.Leaves(r) {
			micro = append(micro, batch(w.configs[r], 0, max(leaf, 0)))
		}
		_, err := w.engines[r].Eval(context.Background(), micro)
		return err
	}},
	{"logits", func(p *zero.Program) *zero.Plan { return p.Logits }, 0, func(w *crew, r int) error {
		_, err := w.engines[r].Decode(context.Background(), []zero.Text{{Tokens: []int32{1, 2, 3}}})
		return err
	}},
	{"next", func(p *zero.Program) *zero.Plan { return p.Next }, 0, func(w *crew, r int) error {
		_, err := w.engines[r].Decode(context.Background(), []zero.Text{{Tokens: []int32{1}}})
		return err
	}},
}

// every is the distance between the ops of a plan that a test tries: all of them, but a sample of a long plan in a short run.
func every(p *zero.Plan) int {
	if testing.Short() && len(p.Ops) > 20 {
		return 7
	}
	return 1
}

// An error and a panic of the device at every op, on one rank: all ranks return, each names the rank, the step and the line, and
// nothing is left.
func TestFaultAtEveryOp(t *testing.T) {
	for _, c := range []struct {
		pass, leaves, faulty int
		cell
	}{
		{0, 4, 1, cell{Stage: 3, Ranks: 2, Prefetch: 1}},
		{0, 5, 2, cell{Stage: 3, Ranks: 3, Recompute: 1}},
		{0, 4, 0, cell{Stage: 0, Ranks: 2}},
		{0, 7, 1, cell{Stage: 0, Ranks: 3, Window: 1}},
		{0, 4, 0, cell{Stage: 1, Ranks: 2}},
		{0, 4, 3, cell{Stage: 3, Ranks: 4, Replicas: 2}},
		{1, 4, 1, cell{Stage: 3, Ranks: 2}},
		{2, 4, 1, cell{Stage: 3, Ranks: 2}},
		{3, 4, 0, cell{Stage: 3, Ranks: 2, Prefetch: 1}},
	} {
		p := passes[c.pass]
		j := c.config(job(t, "micro", c.leaves, 1, 4, 0))
		program, err := zeroshard.Plan(j)
		if err != nil {
			t.Fatal(err)
		}
		plan := p.plan(program)
		for kind, fault := range faultKinds {
			t.Run(fmt.Sprintf("%s, stage %d, %d ranks, %s on rank %d", p.name, c.Stage, c.Ranks, kind, c.faulty), func(t *testing.T) {
				tried := 0
				for i := range plan.Ops {
					if plan.Ops[i].Lane == zero.Host || i%every(plan) != 0 {
						continue
					}
					tried++
					if !t.Run(plan.Line(i), func(t *testing.T) { faultAt(t, j, c.faulty, injection{p, plan, i, fault}) }) {
						return
					}
				}
				if tried < 2 {
					t.Errorf("only %d ops were tried", tried)
				}
			})
		}
	}
}

type injection struct {
	pass
	of    *zero.Plan
	op    int
	fault func() error
}

func faultAt(t *testing.T, j zeroshard.Config, faulty int, in injection) {
	leaks(t)
	label := in.of.Line(in.op)
	var armed atomic.Bool
	w := mustCrew(t, j, seams{device: func(r int, d device.Device) device.Device {
		return devicetest.Wrap(d, func(l string) error {
			if r == faulty && l == label && armed.Load() {
				return in.fault()
			}
			return nil
		})
	}})
	armed.Store(true)
	var errs []error
	within(t, func() { errs = each(j.Ranks, func(r int) error { return in.run(w, r) }) })
	armed.Store(false)

	var op *zero.OpError
	own := errs[faulty]
	if !errors.As(own, &op) || op.Rank != faulty || op.Step != in.step || op.Line != in.op || op.Op != label || !errors.Is(own, errInjected) {
		t.Fatalf("rank %d returned %v", faulty, own)
	}
	says := fmt.Sprintf("rank %d, step %d, plan line %s", faulty, in.step, label)
	for r, err := range errs {
		if err == nil && r != faulty && !stops(in.of, in.op) {
			continue // nothing that the peer needs came after the fault
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("rank %d returned %v\nwant it to say %q", r, err, says)
		}
	}
	within(t, func() {
		again := each(j.Ranks, func(r int) error { return in.run(w, r) })
		for r, err := range again {
			if err == nil || (errs[r] != nil && err.Error() != errs[r].Error()) {
				t.Errorf("rank %d returned %v, and then %v", r, errs[r], err)
			}
		}
	})
}

// stops says that a rank whose op fails leaves out a collective, in which its peers wait.
func stops(p *zero.Plan, op int) bool { return len(missed(p, op)) > 0 }

// missed lists the collectives that a rank leaves out when op fails: those that wait for it.
func missed(p *zero.Plan, op int) (out []int) {
	dead := make([]bool, len(p.Ops))
	var lane [zero.Host + 1]bool
	for i := op; i < len(p.Ops); i++ {
		o := &p.Ops[i]
		dead[i] = i == op || lane[o.Lane]
		for _, d := range o.After {
			dead[i] = dead[i] || dead[d]
		}
		if dead[i] && o.Lane != zero.Host {
			lane[o.Lane] = true
		}
		if dead[i] && o.Lane == zero.Comm {
			out = append(out, i)
		}
	}
	return out
}
