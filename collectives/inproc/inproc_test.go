package inproc_test

import (
	"testing"

	"zeroshard/collectives"
	"zeroshard/collectives/grouptest"
	"zeroshard/collectives/inproc"
)

func open(t testing.TB, size int) []collectives.Group {
	t.Helper()
	groups, err := inproc.New(size, func(int) collectives.Folder { return grouptest.Plain{} })
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

func TestGroup(t *testing.T) { grouptest.Run(t, open) }
