package gpt

import "errors"

// Errors of this package. All texts start with "gpt: ".
var (
	// ErrConfig is a configuration that describes no model.
	ErrConfig = errors.New("gpt: bad configuration")
	// ErrPreset is a name that no preset has.
	ErrPreset = errors.New("gpt: unknown preset")
	// ErrShape is a leaf that the model cannot take: no tokens, or a sequence longer than its positions.
	ErrShape = errors.New("gpt: bad shape")
	// ErrToken is a token id that the vocabulary has not.
	ErrToken = errors.New("gpt: no such token")
	// ErrCall is a call that breaks the contract of package models.
	ErrCall = errors.New("gpt: bad call")
)
