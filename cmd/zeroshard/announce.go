package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"zeroshard/memory"
	"zeroshard/train"
	"zeroshard/zero"
)

// settings is the effective settings, for settings.json: by flag, defaults resolved.
func (r *run) settings() map[string]any {
	j, l, o := &r.job, &r.learning, &r.output
	flags := map[string]string{}
	_ = json.Unmarshal(r.saves.given, &flags) // which given has made
	flags["init-from"] = r.saves.initFrom
	return map[string]any{"flags": flags,
		"model": j.model, "ranks": j.ranks, "stage": j.stage, "replicas": j.replicas, "global-batch": j.globalBatch,
		"micro-batch": j.microBatch, "seq": j.seq, "prefetch": j.prefetch, "recompute": j.recompute.String(), "window": j.window,
		"persistence-threshold": j.persistence, "keep-last": j.keepLast, "precision": j.precision, "optimizer": j.optimizer,
		"clip": j.clip, "dropout": j.dropout, "device-memory": int64(j.deviceMemory), "data": l.data, "steps": l.steps,
		"stop-at": l.stopAt, "lr": l.lr, "warmup": l.warmup, "schedule": l.schedule, "beta1": l.beta1, "beta2": l.beta2,
		"eps": l.eps, "weight-decay": l.decay, "momentum": j.momentum, "seed": l.seed, "eval-every": l.evalEvery, "threads": j.threadCount(),
		"offload-optimizer": j.tiers.optimizer, "offload-param": j.tiers.param, "offload-path": j.tiers.path, "offload-ratio": j.tiers.ratio,
		"sample": o.sample, "plan_sha256": r.program.SHA256(),
	}
}

// announce prints the effective settings, the plan's hash and its cost for a rank.
func (r *run) announce() {
	j, l := &r.job, &r.learning
	m := r.model.Config()
	w := r.stderr
	fmt.Fprintf(w, "model      %s: %d layers × %d heads × %d, vocabulary %d, %s parameters\n", j.model, m.Layers, m.Heads, m.Width, m.Vocab,
		train.Thousands(int64(r.model.Params())))
	fmt.Fprintf(w, "data       %s: %s tokens to train on, %s held out\n", strings.Join(names(l.data), ", "),
		train.Thousands(int64(r.corpus.Train.Len())), train.Thousands(int64(r.corpus.Val.Len())))
	fmt.Fprintf(w, "batch      %d sequences of %d tokens a step, in %d micro-batches\n", j.globalBatch, j.seq, j.globalBatch/j.microBatch)
	fmt.Fprintf(w, "ranks      %d, stage %d (%s), %d thread(s) each, %d replica(s)\n", j.ranks, j.stage, stageWords[j.stage], j.threadCount(), j.replicas)
	fmt.Fprintf(w, "optimizer  %s\n", l.describe(j))
	for _, line := range j.tiers.describe(r.cluster.Tiers()) {
		fmt.Fprintf(w, "offload    %s\n", line)
	}
	fmt.Fprintf(w, "run        %d steps into %s, seed %d\n", l.end(), r.folder, l.seed)
	if s := &r.saves; s.from != nil {
		fmt.Fprintf(w, "resume     from step %d, saved at %s on %d rank(s)\n", s.from.Step, s.from.World.Strategy, s.from.World.Ranks)
		if s.from.Step >= l.end() {
			fmt.Fprintf(w, "           nothing is left to do: this command goes to step %d (--steps, --stop-at)\n", l.end())
		}
	} else if s.init != nil {
		fmt.Fprintf(w, "init       weights of %s\n", s.initFrom)
		if s.init.dropout != "" {
			fmt.Fprintf(w, "           they were made with dropout %s; this run's is %v (--dropout)\n", s.init.dropout, j.dropout)
		}
	}
	for _, line := range r.saves.told {
		fmt.Fprintf(r.warnings, "resume     %s\n", line)
	}
	fmt.Fprintf(w, "saves      %s\n", r.saves.describe(r.program))
	fmt.Fprintf(w, "plan       %s\n", r.program.SHA256())
	fmt.Fprintf(w, "           %s\n\n", costLine(r.program))
}

var stageWords = [...]string{"nothing sharded", "optimizer state sharded", "optimizer state and gradients sharded",
	"optimizer state, gradients and parameters sharded"}

// end is the last step.
func (l *learning) end() int {
	if l.stopAt > 0 {
		return min(l.stopAt, l.steps)
	}
	return l.steps
}

// describe is the optimizer's line.
func (l *learning) describe(j *job) string {
	clip := "off"
	if j.clip > 0 {
		clip = fmt.Sprint(j.clip)
	}
	how := fmt.Sprintf("betas %v %v, eps %v", l.beta1, l.beta2, l.eps)
	if j.optimizer == "sgd" {
		how = fmt.Sprintf("momentum %v", j.momentum)
	}
	return fmt.Sprintf("%s: %s, decay %v, clip %s; rate %v, warm-up %d steps, then %s", j.optimizer, how, l.decay, clip, l.lr, l.warmup, l.schedule)
}

// costLine is what a rank needs, per step.
func costLine(p *zero.Program) string {
	c := p.Cost()
	return fmt.Sprintf("%d operations a step; a rank holds %s of device memory, sends %s and computes %.3g GFLOP", len(p.Train.Ops),
		memory.FormatBytes(c.Peak()), memory.FormatBytes(p.Train.WireMax().Sum()), float64(c.Flops)/1e9)
}

func names(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = filepath.Base(p)
	}
	return out
}

// ranksAcross is how many ranks stand side by side in a table.
const ranksAcross = 6

// printMemory is the table of planned and used peaks, by rank and kind.
func printMemory(w io.Writer, ranks []train.Memory) {
	for lo := 0; lo < len(ranks); lo += ranksAcross {
		block := ranks[lo:min(lo+ranksAcross, len(ranks))]
		var rows [][]string
		row := func(name string, cell func(m train.Memory) string) {
			cells := []string{name}
			for _, m := range block {
				cells = append(cells, cell(m))
			}
			rows = append(rows, cells)
		}
		row("device memory, bytes", func(m train.Memory) string { return fmt.Sprint("rank ", m.Rank) })
		row("planned peak", func(m train.Memory) string { return train.Thousands(m.PlannedPeak) })
		row("used peak", func(m train.Memory) string { return train.Thousands(m.UsedPeak) })
		for _, kind := range kinds(block) {
			row("  "+kind, func(m train.Memory) string { return train.Thousands(m.ByKind[kind]) })
		}
		printTable(w, rows)
	}
}

// kinds lists the kinds that some rank holds, in the order of memory.Kind, then the hole.
func kinds(ranks []train.Memory) (out []string) {
	has := func(kind string) bool {
		for _, m := range ranks {
			if m.ByKind[kind] != 0 {
				return true
			}
		}
		return false
	}
	for k := range memory.Kinds {
		if has(k.String()) {
			out = append(out, k.String())
		}
	}
	if has("hole") {
		out = append(out, "hole")
	}
	return out
}
