package main

import (
	"fmt"

	"zeroshard/models/gpt"
)

// scanElements is how many elements of a parameter are read at a time.
const scanElements = 1 << 19

// notFinite says, for the end of an error, which parameter of the source is the first, in the model's order, to hold NaN or an infinity. Where all
// are finite the numbers grew beyond fp32 on their way through the model.
func (s *source) notFinite() string {
	m, err := gpt.New(s.config)
	if err != nil {
		return ""
	}
	buf := make([]float32, scanElements)
	for _, f := range m.Flats() {
		for _, p := range f.Params {
			for lo := 0; lo < p.Len(); lo += len(buf) {
				v := buf[:min(len(buf), p.Len()-lo)]
				if err := s.read(p.Name, lo, v); err != nil {
					return "" // the weights were read once, so this is not what ended the command
				}
				for i, x := range v {
					if x-x != 0 {
						return fmt.Sprintf(": %s of %s is %v at element %d", p.Name, s.dir, x, lo+i)
					}
				}
			}
		}
	}
	return fmt.Sprintf(": all parameters of %s are, so it comes from the computation", s.dir)
}
