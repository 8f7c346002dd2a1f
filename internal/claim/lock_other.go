//go:build !unix || solaris || illumos || aix

package claim

import (
	"errors"
	"os"
)

// Take does nothing: this package knows no lock here that ends with its process. The error is errors.ErrUnsupported.
func Take(*os.File) error { return errors.ErrUnsupported }
