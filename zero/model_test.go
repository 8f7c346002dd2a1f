package zero_test

import (
	"testing"

	"zeroshard/models"
	"zeroshard/shard"
	"zeroshard/zero"
)

// paper is a model with the shape of a GPT and no arithmetic: a tied root that embed and loss read, and layers of their own.
type paper struct {
	layers, width int
	specs         []shard.FlatSpec
	units         []models.Unit
}

type paperUnit struct {
	name              string
	forward, backward []string
	sizes             models.Sizes
}

func (u *paperUnit) Name() string                        { return u.name }
func (u *paperUnit) Reads() (forward, backward []string) { return u.forward, u.backward }
func (u *paperUnit) Sizes(s models.Shape, _ models.Mode) (z models.Sizes) {
	z = u.sizes
	z.Out, z.Saved, z.Cache = z.Out*s.Rows(), z.Saved*s.Rows(), z.Cache*s.Batch*s.Room
	return z
}
func (u *paperUnit) Forward(*models.Call) error  { return nil }
func (u *paperUnit) Backward(*models.Call) error { return nil }

func newPaper(layers, width int) *paper {
	p := &paper{layers: layers, width: width}
	p.specs = []shard.FlatSpec{{Name: "root", Params: []shard.Param{{Name: "wte", Shape: []int{31, width}}, {Name: "ln_f", Shape: []int{width}, NoDecay: true}}}}
	p.units = []models.Unit{&paperUnit{name: "embed", forward: []string{"root"}, sizes: models.Sizes{Out: width, Flops: 1}}}
	for i := range layers {
		name := "h." + string(rune('0'+i))
		p.specs = append(p.specs, shard.FlatSpec{Name: name, Params: []shard.Param{
			{Name: name + ".w", Shape: []int{width, width}}, {Name: name + ".b", Shape: []int{width}, NoDecay: true}}})
		p.units = append(p.units, &paperUnit{name: name, forward: []string{name}, backward: []string{name},
			sizes: models.Sizes{Out: width, Saved: 3 * width, Cache: 2 * width, Work: 64, BackWork: 128, Flops: 100}})
	}
	p.units = append(p.units, &paperUnit{name: "loss", forward: []string{"root"}, backward: []string{"root"}, sizes: models.Sizes{Out: 31, Work: 256, Flops: 10}})
	return p
}

func (p *paper) Flats() []shard.FlatSpec { return p.specs }
func (p *paper) Units() []models.Unit    { return p.units }

// compile compiles a paper model, with a stage by number.
func compile(t *testing.T, m models.Model, stage, replicas, shards int, o zero.Options) *zero.Plan {
	t.Helper()
	s, err := zero.Stage(stage)
	if err != nil {
		t.Fatal(err)
	}
	return compileRow(t, m, s, replicas, shards, o)
}

func compileRow(t *testing.T, m models.Model, s zero.Strategy, replicas, shards int, o zero.Options) *zero.Plan {
	t.Helper()
	l, err := shard.NewLayout(m.Flats(), 0)
	if err != nil {
		t.Fatal(err)
	}
	mesh, err := shard.NewMesh(replicas, shards)
	if err != nil {
		t.Fatal(err)
	}
	p, err := zero.Compile(l, m, s, mesh, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
