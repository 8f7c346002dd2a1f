//go:build !amd64

package cpu

func paths() []*path { return []*path{portable()} }
