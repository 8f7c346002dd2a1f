package tokenizer_test

import (
	"fmt"

	"zeroshard/data/tokenizer"
)

func Example() {
	t, err := tokenizer.Named("gpt2")
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := t.Encode(nil, "Light, I'd say: ☀")
	fmt.Println(ids)
	s := tokenizer.NewStream(t)
	for _, id := range ids {
		piece, err := s.Add(id)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q ", piece)
	}
	fmt.Printf("%q\n", s.End())
	// Output:
	// [15047 11 314 1549 910 25 34719 222]
	// "Light" "," " I" "'d" " say" ":" " " "☀" ""
}
