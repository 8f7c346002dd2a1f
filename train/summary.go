package train

import (
	"encoding/json"
	"errors"
	"fmt"

	"math"
	"os"
	"path/filepath"
	"syscall"

	"zeroshard/zero"
)

// Summary is what scripts read of a run. Names and meaning of its fields do not change.
type Summary struct {
	Stage       int          `json:"stage"`
	Ranks       int          `json:"ranks"`
	Steps       int          `json:"steps"`                  // done, with those before a resume
	ResumedFrom int          `json:"resumed_from,omitempty"` // the step from which this run went on
	Losses      []Number     `json:"losses"`                 // mean training loss of each step of this run, nats per token
	ValLoss     Number       `json:"val_loss"`               // the last validation loss
	StateSHA256 string       `json:"state_sha256"`
	TokensPerS  Number       `json:"tokens_per_s"`        // over all ranks, validation not counted
	Wire        zero.Traffic `json:"wire_bytes_per_step"` // of the rank that sends most, by verb
	PlanSHA256  string       `json:"plan_sha256"`
	Memory      []Memory     `json:"memory"` // one entry a rank
}

// Memory is one rank's device memory in bytes. ByKind is what was live, by kind, when
// most was, and the hole: bytes that no buffer used then.
type Memory struct {
	Rank        int              `json:"rank"`
	PlannedPeak int64            `json:"planned_peak"`
	UsedPeak    int64            `json:"used_peak"`
	ByKind      map[string]int64 `json:"by_kind"`
}

// Number is a float64 whose JSON is null where JSON has no number for it: NaN and the infinities.
type Number float64

// MarshalJSON writes the shortest decimal that reads back as the same bits.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// Numbers converts a list.
func Numbers(v []float64) []Number {
	out := make([]Number, len(v))
	for i, f := range v {
		out[i] = Number(f)
	}
	return out
}

// WriteJSON writes v to path, whole or not at all: a reader never sees a part of it.
func WriteJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("train: %s: %w", path, err)
	}
	return writeFile(path, append(data, '\n'))
}

// writeFile writes beside path and renames. What is no regular file (/dev/stdout) is written as it is.
func writeFile(path string, data []byte) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, data, 0o644)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return unwritable(path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("train: cannot write %s: %w", path, err)
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Writable reports, without writing anything that stays, whether path can be made: so that a run of hours does not end in
// "permission denied".
func Writable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return &os.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
		}
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".writable.*")
	if err != nil {
		return unwritable(path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// unwritable speaks of path where the system speaks of a file beside it, under a name that nobody chose.
func unwritable(path string, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = &os.PathError{Op: "write", Path: path, Err: at.Err}
	}
	return fmt.Errorf("train: %w", err)
}
