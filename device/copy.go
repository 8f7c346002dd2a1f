package device

import "fmt"

// CheckCopy is what every backend demands of Copy: equal dtypes and lengths. Its error wraps ErrArgument.
func CheckCopy(dst, src Buffer) error {
	if dst.Len != src.Len || (dst.Len > 0 && dst.DType != src.DType) {
		return fmt.Errorf("device: copy of %d %v to %d %v: dtypes and lengths must be equal: %w", src.Len, src.DType, dst.Len, dst.DType, ErrArgument)
	}
	return nil
}
