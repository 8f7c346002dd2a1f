package checkpoint_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"zeroshard/checkpoint"
	"zeroshard/checkpoint/crashfs"
)

// Row 53: a step that some ranks did not save, or that one saved twice, is refused at once, by name, and never committed; the
// steps before it stay, and the same step can be saved again.
func TestCommitRefusesWhatIsNotWhole(t *testing.T) {
	const world = 3
	for name, c := range map[string]struct {
		write func(v *checkpoint.Save, src []checkpoint.Source) ([]checkpoint.Entry, error)
		says  []string
	}{
		"rank 0 alone saves": {func(v *checkpoint.Save, src []checkpoint.Source) ([]checkpoint.Entry, error) {
			return ranks(v, src[:1])
		}, []string{"/a", "15 elements, the files hold 5"}},
		"a rank in the middle is absent": {func(v *checkpoint.Save, src []checkpoint.Source) ([]checkpoint.Entry, error) {
			all, err := ranks(v, src)
			return slices.Delete(all, 1, 2), err
		}, []string{"a part starts at element 10, the one before it ends at 5"}},
		"a rank is told of twice": {func(v *checkpoint.Save, src []checkpoint.Source) ([]checkpoint.Entry, error) {
			all, err := ranks(v, src)
			return append(all, all[1]), err
		}, []string{`"rank-00001.safetensors"`}},
		"two ranks save the same": {func(v *checkpoint.Save, src []checkpoint.Source) ([]checkpoint.Entry, error) {
			return ranks(v, []checkpoint.Source{src[0], src[1], src[2], src[2]})
		}, []string{"/a", "a part starts at element 10, the one before it ends at 15"}},
		"nobody saves": {func(*checkpoint.Save, []checkpoint.Source) ([]checkpoint.Entry, error) { return nil, nil }, []string{"the files hold 0"}},
		"an entry of a file that is not there": {func(v *checkpoint.Save, src []checkpoint.Source) ([]checkpoint.Entry, error) {
			all, err := ranks(v, src)
			all[2].Name = "rank-00007.safetensors"
			return all, err
		}, []string{"rank-00007.safetensors"}},
		"an entry with another checksum": {func(v *checkpoint.Save, src []checkpoint.Source) ([]checkpoint.Entry, error) {
			all, err := ranks(v, src)
			all[2].Sums = checkpoint.Sums{all[2].Sums[0] ^ 1}
			return all, err
		}, []string{"rank-00002.safetensors", "checksum"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &crashfs.FS{}
			s := saved(t, f, "c", 1, 2)
			v, err := s.Begin(small.manifest(2))
			if err != nil {
				t.Fatal(err)
			}
			entries, err := c.write(v, small.sources(2, world))
			if err != nil {
				t.Fatal(err)
			}
			err = v.Commit(entries)
			var save *checkpoint.SaveError
			if !errors.As(err, &save) || save.Step != 2 || save.Last != 1 {
				t.Fatalf("committed: %v", err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is missing in: %v", part, err)
				}
			}
			if steps, err := s.Verify(); err != nil || !slices.Equal(steps, []int{1}) {
				t.Errorf("steps %v, %v", steps, err)
			}
			saved(t, f, "c", 2, world)
			if steps, err := s.Verify(); err != nil || !slices.Equal(steps, []int{1, 2}) {
				t.Errorf("then saved: steps %v, %v", steps, err)
			}
		})
	}
}

// ranks writes the files of ranks 0, 1, …
func ranks(v *checkpoint.Save, sources []checkpoint.Source) (entries []checkpoint.Entry, err error) {
	for r, src := range sources {
		e, err := v.Rank(r, src)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// A manifest that could not be read again is not committed either, and nothing of the save stays.
func TestSaveRefusesWhatCannotBeRead(t *testing.T) {
	for name, change := range map[string]func(m *checkpoint.Manifest){
		"more updates than steps":   func(m *checkpoint.Manifest) { m.Updates = m.Step + 1 },
		"a parameter twice":         func(m *checkpoint.Manifest) { m.Params = append(slices.Clone(m.Params), m.Params[0]) },
		"a state that nobody saves": func(m *checkpoint.Manifest) { m.States = append(slices.Clone(m.States), "z") },
		"a parameter that nobody saves": func(m *checkpoint.Manifest) {
			m.Params = append(slices.Clone(m.Params), checkpoint.Param{Name: "z", Shape: []int{1}})
		},
		"a model that is no JSON": func(m *checkpoint.Manifest) { m.Model = []byte("{") },
	} {
		t.Run(name, func(t *testing.T) {
			f := &crashfs.FS{}
			s := checkpoint.NewStore(f, "c")
			m := small.manifest(2)
			change(&m)
			if err := s.Save(m, small.sources(2, 2)); !errors.Is(err, checkpoint.ErrSave) {
				t.Errorf("saved: %v", err)
			}
			saver := checkpoint.NewSaver(s, 0, func(int) { t.Error("told of a commit") })
			if err := errors.Join(saver.Save(m, small.sources(2, 2)), saver.Close()); !errors.Is(err, checkpoint.ErrSave) {
				t.Errorf("saved beside: %v", err)
			}
			steps, _ := s.Steps()
			if rest, err := s.Leftovers(); err != nil || len(steps)+len(rest) > 0 {
				t.Errorf("steps %v, left over %v, %v", steps, rest, err)
			}
		})
	}
}

// A failure after the rename does not say that the step is not saved: it is there, and is found.
func TestFailureAfterTheCommit(t *testing.T) {
	clean := &crashfs.FS{}
	saved(t, clean, "c", 1, 1)
	at := slices.IndexFunc(clean.Ops(), func(op string) bool { return strings.HasPrefix(op, "rename c/.step") }) + 2
	f := &crashfs.FS{At: at, Fault: crashfs.Fail, Err: errors.New("no more")}
	s := checkpoint.NewStore(f, "c")
	err := s.Save(small.manifest(1), small.sources(1, 1))
	var save *checkpoint.SaveError
	if !errors.As(err, &save) || save.Last != 1 || strings.Contains(err.Error(), "not saved") {
		t.Errorf("%v", err)
	}
	if steps, err := s.Verify(); err != nil || !slices.Equal(steps, []int{1}) {
		t.Errorf("steps %v, %v", steps, err)
	}
}
