package checkpoint_test

import (
	"fmt"
	"log"

	"zeroshard/checkpoint"
	"zeroshard/checkpoint/crashfs"
)

// half is a source of elements [from, from+2) of a parameter "w" of four.
type half struct{ from int }

func (h half) Pieces() []checkpoint.Piece {
	return []checkpoint.Piece{{Param: "w", State: checkpoint.Weights, From: h.from, Len: 2}}
}

func (h half) Read(p checkpoint.Piece, lo int, dst []float32) error {
	for i := range dst {
		dst[i] = float32(p.From + lo + i)
	}
	return nil
}

// Two ranks save a step; whoever wants elements of it reads them by name, wherever they lie.
func Example() {
	store := checkpoint.NewStore(&crashfs.FS{}, "run/checkpoints") // on the disk: checkpoint.OS{}
	err := store.Save(checkpoint.Manifest{
		Position: checkpoint.Position{Step: 5, Updates: 5},
		Params:   []checkpoint.Param{{Name: "w", Shape: []int{2, 2}}},
	}, []checkpoint.Source{half{0}, half{2}})
	if err != nil {
		log.Fatal(err)
	}
	step, err := store.Newest()
	if err != nil {
		log.Fatal(err)
	}
	saved, err := store.Open(step)
	if err != nil {
		log.Fatal(err)
	}
	defer saved.Close()
	dst := make([]float32, 3)
	if err := saved.Read("w", checkpoint.Weights, 1, dst); err != nil {
		log.Fatal(err)
	}
	fmt.Println("step", step, "has", dst)
	fmt.Println(store.Save(*saved.Manifest, []checkpoint.Source{half{0}}))
	saved.Manifest.Step = 6
	fmt.Println(store.Save(*saved.Manifest, []checkpoint.Source{half{0}}))
	// Output:
	// step 5 has [1 2 3]
	// checkpoint: the step exists: step 5 in run/checkpoints
	// checkpoint: step 6 is not saved, the newest saved step is 5: checkpoint: corrupt: run/checkpoints/.step-00000006.tmp/manifest.json: weights/w: shape [2 2] has 4 elements, the files hold 2
}
