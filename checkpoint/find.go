package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Folder is the folder of a run in which its steps are.
const Folder = "checkpoints"

// TokenizerFolder is the folder beside Folder in which a run keeps the files of its tokenizer, where that is not built in.
const TokenizerFolder = "tokenizer"

// Find says what dir is: the folder of a run or of its steps (step is -1), or that of a step. The error wraps ErrNone where it is
// nothing of the kind.
func Find(f FS, dir string) (s *Store, step int, err error) {
	dir = path.Clean(dir)
	names, err := f.List(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("checkpoint: %w", err)
	}
	n, ok := stepOf(path.Base(dir))
	switch {
	case slices.Contains(names, ManifestFile):
		if !ok {
			return nil, 0, fmt.Errorf("%w: %s holds a manifest, but a step's folder is called step-00000005: rename it back", ErrNone, dir)
		}
		return NewStore(f, path.Dir(dir)), n, nil
	case ok:
		return nil, 0, fmt.Errorf("%w: %s holds no %s: it was never committed", ErrNone, dir, ManifestFile)
	case slices.Contains(names, Folder+"/"):
		return NewStore(f, path.Join(dir, Folder)), -1, nil
	case path.Base(dir) == Folder || slices.ContainsFunc(names, func(n string) bool { _, ok := stepOf(strings.TrimSuffix(n, "/")); return ok }):
		return NewStore(f, dir), -1, nil
	}
	return nil, 0, fmt.Errorf("%w: %s is neither a run's folder with %s/ in it nor a step's", ErrNone, dir, Folder)
}

// IsNone reports that err only says that there is nothing yet: no folder, or no committed step.
func IsNone(err error) bool { return errors.Is(err, ErrNone) || errors.Is(err, fs.ErrNotExist) }
