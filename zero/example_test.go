package zero_test

import (
	"fmt"

	"zeroshard/models"
	"zeroshard/shard"
	"zeroshard/zero"
)

// A step of a two-layer model at ZeRO-3 on two ranks, one micro-batch each. Read it top to bottom: what is gathered when, what waits
// for what, when each gradient leaves.
func ExampleCompile() {
	m := newPaper(2, 24)
	layout, err := shard.NewLayout(m.Flats(), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	mesh, err := shard.NewMesh(1, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := zero.Compile(layout, m, zero.Stages[3], mesh, zero.Options{
		Leaves: 2, Shape: models.Shape{Batch: 1, Seq: 4}, States: []string{"m", "v"}, Prefetch: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 12 {
		fmt.Println(plan.Line(i))
	}
	c := plan.Cost()
	fmt.Println("model state", c.ModelState, "peak", c.Peak(), "sends", plan.Wire(0).Sum())
	// Output:
	// 00 compute clear          scalars
	// 01 copy    feed           mb0
	// 02 comm    gather         root                             after 00
	// 03 comm    gather         h.0
	// 04 compute forward        embed mb0                        after 01, 02
	// 05 host    reshard        root
	// 06 comm    gather         h.1                              after 04
	// 07 compute forward        h.0 mb0 save=all                 after 03
	// 08 host    reshard        h.0
	// 09 comm    gather         root                             after 07
	// 10 compute forward        h.1 mb0 save=all                 after 06
	// 11 host    reshard        h.1
	// model state 20480 peak 40448 sends 15656
}
