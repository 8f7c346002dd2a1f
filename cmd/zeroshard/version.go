package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/cpu"

	kernels "zeroshard/kernels/cpu"
)

func newVersion() *cobra.Command {
	verbose := false
	c := &cobra.Command{
		Use:   "version",
		Short: "Say what this binary is",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			printVersion(c.OutOrStdout(), info, verbose)
			return nil
		},
	}
	c.Flags().BoolVar(&verbose, "verbose", false, "also the CPU's features and the kernels that run on it")
	return c
}

func printVersion(w io.Writer, info *debug.BuildInfo, verbose bool) {
	version, settings := "(unknown)", map[string]string{}
	if info != nil {
		version = info.Main.Version
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	fmt.Fprintf(w, "zeroshard %s\n", version)
	if rev := settings["vcs.revision"]; rev != "" {
		state := "clean"
		if settings["vcs.modified"] == "true" {
			state = "with changes"
		}
		fmt.Fprintf(w, "commit    %s of %s (%s)\n", rev, settings["vcs.time"], state)
	}
	fmt.Fprintf(w, "go        %s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if !verbose {
		return
	}
	level := ""
	if v := settings["GOAMD64"]; v != "" {
		level = " GOAMD64=" + v
	}
	fmt.Fprintf(w, "build     cgo=%s%s\n", settings["CGO_ENABLED"], level)
	fmt.Fprintf(w, "cpu       %d in use of %d; %s\n", runtime.GOMAXPROCS(0), runtime.NumCPU(), strings.Join(cpuFeatures(), " "))
	fmt.Fprintf(w, "kernels   %s\n", kernels.New(nil).Path())
}

// cpuFeatures lists what matters for arithmetic.
func cpuFeatures() []string {
	var out []string
	for _, f := range [...]struct {
		name string
		has  bool
	}{
		{"avx2", cpu.X86.HasAVX2}, {"fma", cpu.X86.HasFMA}, {"avx512f", cpu.X86.HasAVX512F}, {"avx512bw", cpu.X86.HasAVX512BW},
		{"avx512dq", cpu.X86.HasAVX512DQ}, {"avx512vl", cpu.X86.HasAVX512VL}, {"avx512bf16", cpu.X86.HasAVX512BF16},
		{"asimd", cpu.ARM64.HasASIMD}, {"sve", cpu.ARM64.HasSVE},
	} {
		if f.has {
			out = append(out, f.name)
		}
	}
	if out == nil {
		out = append(out, "no vector features known")
	}
	return out
}
