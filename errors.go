package zeroshard

import "errors"

// ErrValue is a tensor that cannot be a parameter's value, or the other way round. Other errors of this package are *FitError, and those
// of the packages below: zero.ErrOptions, zero.ErrStrategy, zero.ErrParameter, zero.ErrBatch, zero.ErrClosed, *zero.OpError,
// memory.ErrLimit, optim.ErrOptimizer.
var ErrValue = errors.New("zeroshard: value")
