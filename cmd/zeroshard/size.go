package main

import (
	"fmt"
	"strings"

	"zeroshard/memory"
)

// size is a number of bytes as a flag: an integer, or a number with a unit. 0 is no limit.
type size int64

func (s *size) Set(text string) error {
	n, err := memory.ParseBytes(text)
	if err != nil {
		return fmt.Errorf("want bytes as an integer or with a unit, such as 67108864 or 64MiB")
	}
	*s = size(n)
	return nil
}

// String reads back as the same number.
func (s *size) String() string {
	if *s == 0 {
		return "unlimited"
	}
	text := memory.FormatBytes(int64(*s))
	if strings.Contains(text, ".") {
		return fmt.Sprint(int64(*s))
	}
	return strings.ReplaceAll(text, " ", "")
}

func (s *size) Type() string { return "BYTES" }
