package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"zeroshard/data"
	"zeroshard/data/prepare"
	"zeroshard/data/tokenizer"
	"zeroshard/memory"
	"zeroshard/train"
)

// preparation is the flags of prepare.
type preparation struct {
	prepare.Options
	tokenizer string
	format    string
	quiet     bool
}

func newPrepare() *cobra.Command {
	p := &preparation{}
	c := &cobra.Command{
		Use:   "prepare FILES|DIR|- -o DIR",
		Short: "Turn texts into token files to train on",
		Long: "prepare writes train.bin and val.bin, which train --data DIR reads, of texts: files, all files of folders, or the standard input (-).\n" +
			"A text file is a document, and so is a line of a .jsonl file. One text alone is cut by place, the end is for validation; of several\n" +
			"documents each is followed by the end-of-text id, and some go to validation whole: the last one at least.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("nothing to prepare: name texts, folders, or - for the standard input")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return p.main(c, args) },
	}
	f := c.Flags()
	f.SortFlags = false
	c.SetHelpFunc(flagHelp)
	f.StringVarP(&p.Out, "out", "o", "", "folder (`DIR`) for the files; also -o DIR")
	f.StringVar(&p.tokenizer, "tokenizer", "gpt2", "what makes ids of text: `bytes|gpt2|DIR` with vocab.json and merges.txt."+changed)
	f.Float64Var(&p.Val, "val", 0.1, "the part (`FRACTION`) for validation; 0: none."+changed)
	f.StringVar(&p.format, "format", "auto", "of the inputs: `auto|text|jsonl`; auto goes by the name, and takes the standard input as text."+changed)
	f.StringVar(&p.TextField, "text-field", "text", "the `FIELD` of a JSONL line that holds the text."+changed)
	f.IntVar(&p.Threads, "threads", 0, "threads (`N`) that encode; 0: one for each core."+unchanged)
	f.BoolVar(&p.Force, "force", false, "overwrite files of an earlier run")
	f.BoolVar(&p.quiet, "quiet", false, "print errors only")
	return c
}

// formats are the values of --format.
var formats = map[string]prepare.Format{"auto": prepare.Auto, "text": prepare.Text, "jsonl": prepare.JSONL}

func (p *preparation) main(c *cobra.Command, args []string) error {
	var f faults
	format, ok := formats[p.format]
	f.check(ok, "--format %q: want auto, text or jsonl", p.format)
	f.check(p.Out != "", "-o is missing: name the folder for train.bin and val.bin")
	f.check(p.Val >= 0 && p.Val < 1, "--val %v: want a fraction from 0 to under 1", p.Val)
	f.check(p.Threads >= 0, "--threads %d: want 0 or more", p.Threads)
	f.check(p.TextField != "", "--text-field is empty: name the field that holds the text")
	if err := f.err(); err != nil {
		return err
	}
	p.Format, p.Stdin = format, c.InOrStdin()
	if p.Threads == 0 {
		p.Threads = runtime.GOMAXPROCS(0)
	}
	var err error
	if p.Tokenizer, err = tokenizer.Named(p.tokenizer); err != nil {
		return err
	}
	return p.run(c, args)
}

// run prepares until it is done, or a signal comes.
func (p *preparation) run(c *cobra.Command, args []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sig := watch(io.Discard)
	defer sig.close()
	go func() {
		select {
		case <-sig.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	stdout, bar := c.OutOrStdout(), newBar(c.ErrOrStderr())
	if p.quiet {
		stdout, bar = io.Discard, &prepareBar{}
	}
	p.Report = bar.report
	start := time.Now()
	res, err := prepare.Run(ctx, args, p.Options)
	bar.close()
	if stopped := sig.err(); stopped != nil && err != nil {
		return stopped
	}
	if err != nil {
		return err
	}
	printPrepared(stdout, res, p.Out, time.Since(start))
	return nil
}

// printPrepared is the table of what was made.
func printPrepared(w io.Writer, res *prepare.Result, dir string, took time.Duration) {
	m := &res.Meta
	head, val := []string{dir, "train.bin"}, &data.MetaPart{}
	if m.Val != nil {
		head, val = append(head, "val.bin"), m.Val
	}
	rows := [][]string{head}
	row := func(name string, of func(p *data.MetaPart) int64) {
		rows = append(rows, []string{name, train.Thousands(of(&m.Train)), train.Thousands(of(val))}[:len(head)])
	}
	row("documents", func(p *data.MetaPart) int64 { return p.Documents })
	row("tokens", func(p *data.MetaPart) int64 { return p.Tokens })
	row("bytes of text", func(p *data.MetaPart) int64 { return p.Bytes })
	printTable(w, rows)
	skipped := ""
	if res.Skipped > 0 {
		skipped = fmt.Sprintf("; %d entries of folders skipped: hidden, or no regular file", res.Skipped)
	}
	fmt.Fprintf(w, "%d file(s) read%s\n", res.Inputs, skipped)
	if res.LastHeldOut {
		fmt.Fprintf(w, "the last document is for validation: by --val none of %d would be\n", m.Documents)
	}
	fmt.Fprintf(w, "vocabulary %s (%s), ids of %s; %s\n", train.Thousands(int64(m.Vocab)), m.Tokenizer, m.Type, endWords(m))
	seconds := max(took.Seconds(), 1e-3)
	fmt.Fprintf(w, "%.1f MB/s, %s tokens/s\n", float64(m.Train.Bytes+val.Bytes)/1e6/seconds, train.Thousands(int64(float64(m.Train.Tokens+val.Tokens)/seconds)))
}

func endWords(m *data.Meta) string {
	if m.EndOfText == nil {
		return "no end-of-text id"
	}
	return fmt.Sprintf("each document ends with id %d", *m.EndOfText)
}

// prepareBar says how far prepare is: a bar on a terminal, else a line now and then. The zero value says nothing.
type prepareBar struct {
	w        io.Writer
	progress *mpb.Progress // nil: lines
	bar      *mpb.Bar
	last     time.Time // of the last line
}

// lineEvery is the time between two lines.
const lineEvery = 5 * time.Second

func newBar(w io.Writer) *prepareBar {
	b := &prepareBar{w: w, last: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b.progress = mpb.New(mpb.WithOutput(f), mpb.WithWidth(64))
	}
	return b
}

func (b *prepareBar) report(p prepare.Progress) {
	switch {
	case b.w == nil:
	case b.progress != nil:
		if b.bar == nil {
			b.bar = b.progress.AddBar(p.Total, mpb.PrependDecorators(decor.CountersKibiByte("% .1f / % .1f")),
				mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageSpeed(decor.SizeB1000(0), "% .1f"), decor.Name(" "),
					decor.AverageETA(decor.ET_STYLE_GO)))
		}
		b.bar.SetCurrent(p.Done)
	case time.Since(b.last) >= lineEvery:
		b.last = time.Now()
		of := ""
		if p.Total > 0 {
			of = fmt.Sprintf(" of %s, %d%%", memory.FormatBytes(p.Total), 100*p.Done/p.Total)
		}
		fmt.Fprintf(b.w, "prepared %s%s: %s tokens\n", memory.FormatBytes(p.Done), of, train.Thousands(p.Tokens))
	}
}

// close leaves the bar on the terminal as it is.
func (b *prepareBar) close() {
	if b.progress == nil {
		return
	}
	if b.bar != nil && !b.bar.Completed() {
		b.bar.Abort(false)
	}
	b.progress.Wait()
}
