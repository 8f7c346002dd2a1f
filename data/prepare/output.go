package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"zeroshard/data"
	"zeroshard/data/tokenizer"
	"zeroshard/internal/claim"
	"zeroshard/internal/disk"
)

// output is the files of a folder while they are made: all under other names, until commit.
type output struct {
	o     *Options
	made  bool     // the folder was
	held  *os.File // the folder: one run at a time writes into it
	files map[string][]byte
	temps []string
	parts [parts]*partFile // the second is nil where there is no validation
	eot   *int32           // the id that ends documents, nil if none is written
}

// newOutput makes the folder and opens the files, and refuses to overwrite.
func newOutput(o *Options) (out *output, err error) {
	out = &output{o: o, files: map[string][]byte{}}
	if !tokenizer.BuiltIn(o.Tokenizer) {
		if out.files, err = tokenizer.Files(o.Tokenizer); err != nil {
			return nil, err
		}
	}
	if err := out.refuse(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(o.Out); errors.Is(err, fs.ErrNotExist) {
		out.made = true
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if err := out.hold(); err != nil {
		return nil, err
	}
	for i, name := range []string{"train.bin", "val.bin"} {
		if i == valPart && newSplit(o.Val).millionths == 0 {
			continue
		}
		f, err := out.create(name)
		if err != nil {
			out.discard(err)
			return nil, err
		}
		out.parts[i] = newPartFile(f, name, width(o.Tokenizer))
	}
	return out, nil
}

// leftover is the name that create gives a file.
var leftover = regexp.MustCompile(`^\.[0-9]+-(train\.bin|val\.bin|stdin|meta\.json|vocab\.json|merges\.txt|tokenizer\.json|tokenizer_config\.json|special_tokens_map\.json|added_tokens\.json)$`)

// hold takes the folder for this run, and removes what killed ones left in it. Where there are no locks nobody knows whether others live.
func (out *output) hold() (err error) {
	if out.held, err = os.Open(out.o.Out); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	err = claim.Take(out.held)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case errors.Is(err, claim.ErrTaken):
		err = fmt.Errorf("%w: %s: another process prepares in it", ErrExists, out.o.Out)
	case err != nil:
		err = fmt.Errorf("prepare: %w", err)
	}
	if err != nil {
		return errors.Join(err, out.held.Close())
	}
	entries, err := os.ReadDir(out.o.Out)
	for _, e := range entries {
		if e.Type().IsRegular() && leftover.MatchString(e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(out.o.Out, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("prepare: remove what a killed run left: %w", errors.Join(err, out.held.Close()))
	}
	return nil
}

// refuse looks for files that would be overwritten.
func (out *output) refuse() error {
	if out.o.Force {
		return nil
	}
	for _, name := range append([]string{"train.bin", "val.bin", data.MetaFile}, slices.Sorted(maps.Keys(out.files))...) {
		path := filepath.Join(out.o.Out, name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
		if want, ok := out.files[name]; ok { // the tokenizer's folder itself, or a run again
			if had, err := os.ReadFile(path); err == nil && string(had) == string(want) {
				continue
			}
		}
		return fmt.Errorf("%w: %s: take another folder, or overwrite it (--force)", ErrExists, path)
	}
	return nil
}

// create makes a file that gets its name at commit.
func (out *output) create(name string) (*os.File, error) {
	f, err := os.CreateTemp(out.o.Out, ".*-"+name)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	out.temps = append(out.temps, f.Name())
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return nil, fmt.Errorf("prepare: %w", err)
	}
	return f, nil
}

// spool puts the standard input into a file: to cut a text by place, its length must be known.
func (out *output) spool(r io.Reader, in *input) error {
	f, err := out.create("stdin")
	if err != nil {
		return err
	}
	if in.size, err = io.Copy(f, r); err == nil {
		err = f.Close()
	} else {
		f.Close()
	}
	if err != nil {
		return fmt.Errorf("prepare: standard input: %w", err)
	}
	in.spooled = f.Name()
	return nil
}

// discard removes what has no name yet, and after an error the folder, if it was made and is empty.
func (out *output) discard(err error) {
	for _, p := range out.parts {
		if p != nil {
			p.Close()
		}
	}
	for _, path := range out.temps {
		os.Remove(path)
	}
	if err != nil && out.made {
		os.Remove(out.o.Out)
	}
	out.held.Close()
}

// commit gives all files their names, train.bin last: where it is, all are.
func (out *output) commit(ctx context.Context) (*data.Meta, error) {
	meta, err := out.finish(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	from := map[string]string{"train.bin": out.parts[trainPart].Name()}
	if p := out.parts[valPart]; p != nil {
		from[p.name] = p.Name()
	}
	small := maps.Clone(out.files)
	small[data.MetaFile] = append(raw, '\n')
	for name, raw := range small {
		if from[name], err = out.writeSmall(name, raw); err != nil {
			return nil, err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := out.rename(from); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	return meta, nil
}

func (out *output) rename(from map[string]string) error {
	for _, name := range []string{"train.bin", "val.bin", data.MetaFile} { // of --force
		if err := os.Remove(filepath.Join(out.o.Out, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(from)), func(name string) bool { return name == "train.bin" })
	for _, name := range append(names, "train.bin") {
		if err := os.Rename(from[name], filepath.Join(out.o.Out, name)); err != nil {
			return err
		}
	}
	return disk.SyncDir(out.o.Out)
}

func (out *output) writeSmall(name string, raw []byte) (temp string, err error) {
	f, err := out.create(name)
	if err != nil {
		return "", err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("prepare: %w", err)
	}
	return f.Name(), nil
}

// finish completes the token files and says what they are.
func (out *output) finish(ctx context.Context) (*data.Meta, error) {
	t := out.o.Tokenizer
	m := &data.Meta{Format: data.MetaFormat, Tokenizer: t.Name(), Vocab: t.Vocab(), EndOfText: out.eot, Type: fmt.Sprintf("uint%d", 8*width(t))}
	if len(out.files) > 0 {
		m.TokenizerSHA256 = tokenizer.SHA256(out.files)
	}
	for i, p := range out.parts {
		if p == nil {
			continue
		}
		part, err := p.finish(ctx, t.Vocab())
		if err != nil {
			return nil, err
		}
		if m.Documents += part.Documents; i == trainPart {
			m.Train = *part
		} else {
			m.Val = part
		}
	}
	return m, nil
}
