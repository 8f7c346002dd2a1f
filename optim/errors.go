package optim

import "errors"

// ErrOptimizer is the cause of all errors here: a setting, or a call, that cannot be. All texts start with "optim: ".
var ErrOptimizer = errors.New("optim: setting")
