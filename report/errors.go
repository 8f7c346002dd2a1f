package report

import "errors"

// Errors of this package. All texts start with "report: ".
var (
	ErrMetrics = errors.New("report: bad metrics")
	ErrRun     = errors.New("report: no run here")
)
