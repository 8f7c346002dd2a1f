//go:build !linux

package checkpoint

import "os"

// Create makes a file.
func (OS) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func newReader(f *os.File, size int64) Reader { return &osReader{f, size} }
