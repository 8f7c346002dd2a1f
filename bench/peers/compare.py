"""Runs zeroshard and its peers in turn and prints ratios; started by run.sh. A ratio above 1 is in zeroshard's favour, for
memory below 1."""

import argparse
import importlib.util
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from machine import TUNED, Failed, Machine

HERE = os.path.dirname(os.path.abspath(__file__))

# model, sequence, micro-batch of a rank, micro-batch of one process with two threads, PyTorch's steps, target
TRAININGS = [
    ("tiny", 128, 4, 8, 40, 2.0),
    ("small", 256, 4, 4, 4, 1.5),
    ("gpt2", 256, 2, 2, 3, 1.4),
    ("gpt2", 1024, 1, 1, 2, 1.4),
]


class Comparison:
    def __init__(self, a):
        self.a, self.machine, self.rows = a, Machine(), []

    def row(self, work, ours, peer, theirs, unit, better, target):
        """Records one comparison. better is "more" or "less"; target is of the ratio that is printed, None for none."""
        ratio = ours / theirs if better == "more" or unit == "MiB" else theirs / ours
        met = target is None or (ratio <= target if unit == "MiB" else ratio >= target)
        self.rows.append(dict(work=work, zeroshard=ours, peer=peer, theirs=theirs, unit=unit, ratio=ratio, target=target, met=met))
        sign = "<=" if unit == "MiB" else ">="
        goal = "" if target is None else f"  (target {sign} {target}{'' if met else ', MISSED'})"
        print(f"{work:<42} {ours:10.4g} {unit:<9} {peer:<34} {theirs:10.4g}  ratio {ratio:6.2f}{goal}", flush=True)

    def ours(self, *args):
        """What zeroshard bench prints."""
        return self.machine.run("zeroshard bench " + " ".join(args), [self.a.zeroshard, "bench", *args, "--json"])

    def python(self, label, script, *args, threads=1, extra=None):
        return self.machine.run(label, [sys.executable, os.path.join(HERE, script), *map(str, args)], threads, extra)

    # Each section tries its contenders; one that fails is said and left out.

    def start(self):
        for label, more in (("start: train --steps 1, tiny, 4 ranks", []),
                            ("the same without the sample", ["--sample", "0"])):
            seconds = []
            for _ in range(7):
                with tempfile.TemporaryDirectory() as d:
                    out = self.machine.run(label, [self.a.zeroshard, "train", "--model", "tiny", "--ranks", "4", "--steps", "1",
                                                   "--out", os.path.join(d, "run"), *more], 2)
                seconds.append(out.seconds)
            self.row(label, statistics.median(seconds), "the target", 0.3, "s", "less", 1.0)

    def train(self):
        for model, seq, micro, alone, steps, target in TRAININGS:
            if self.a.quick and model == "gpt2":
                continue
            name, contenders = f"{model}, T {seq}, tokens/s", []
            try:
                contenders.append(("zeroshard", self.step(model, seq, 3)))
            except Failed as e:
                print(f"# {e}")
            for mode in ("ddp", "fsdp2", "single"):
                try:
                    contenders.append((f"PyTorch {mode}", self.torch(model, seq, alone if mode == "single" else micro, mode, steps)["tokens"]))
                except Failed as e:
                    print(f"# {e}")
            if self.a.compile:
                try:
                    contenders.append(("PyTorch single, compiled", self.torch(model, seq, alone, "single", steps, "--compile")["tokens"]))
                except Failed as e:
                    print(f"# {e}")
            if not contenders or contenders[0][0] != "zeroshard":
                continue
            best = max((c[1] for c in contenders[1:]), default=None)
            for peer, rate in contenders[1:]:
                self.row(name, contenders[0][1], peer, rate, "tokens/s", "more", target if rate == best else None)

    def step(self, model, seq, stage):
        filter = f"^{model} stage {stage} T {seq}, .* 2 ranks x 1 threads"
        rows = self.ours("step", "--threads", "2", "--filter", filter).rows
        return next(r["value"] for r in rows if r["unit"] == "tokens/s")

    def torch(self, model, seq, micro, mode, steps, *more, extra=TUNED):
        ranks, threads = (1, 2) if mode == "single" else (2, 1)
        return self.python(f"PyTorch {model} T {seq} {mode}", "gpt.py", "--model", model, "--seq", seq, "--micro", micro, "--mode", mode,
                           "--ranks", ranks, "--threads", threads, "--steps", steps, *more, threads=threads, extra=extra).rows[0]

    def memory(self):
        """Resident peaks, with PyTorch's allocator as it comes: the settings that make it fast keep more memory."""
        model, seq = ("small", 256) if self.a.quick else ("gpt2", 1024)
        out = self.ours("step", "--threads", "2", "--filter", f"^{model} stage 3 T {seq}, .* 2 ranks x 1 threads")
        planned = next(r["value"] for r in out.rows if r["unit"] == "bytes/rank")
        ours = out.rss / 2 / 2**20  # both ranks are in one process
        print(f"# {model}, T {seq}: the plan says {planned / 2**20:.0f} MiB a rank")
        for mode in ("fsdp2", "zero1"):
            try:
                r = self.torch(model, seq, 4 if self.a.quick else 1, mode, 1, extra={})
            except Failed as e:
                print(f"# {e}")
                continue
            for peer, theirs, target in ((f"PyTorch {mode}", r["rss"], None), (f"the same less its libraries", r["rss"] - r["libraries"], 0.5)):
                self.row(f"{model}, T {seq}, resident peak of a rank", ours, peer, theirs / 2**20, "MiB", "less", target)

    def adamw(self):
        for threads in (1, 2):
            rows = self.ours("kernels", "--threads", str(threads), "--filter", "^adamw").rows
            moved = 28 * (32 << 20)
            ours = rows[0]["value"]
            peers = self.python(f"AdamW, {threads} threads", "adamw.py", "--threads", threads, threads=threads, extra=TUNED).rows
            if importlib.util.find_spec("deepspeed"):
                try:
                    peers += self.python(f"DeepSpeed, {threads} threads", "adamw.py", "--threads", threads, "--deepspeed", threads=threads,
                                         extra=dict(TUNED, DS_ACCELERATOR="cpu")).rows
                except Failed as e:
                    print(f"# {e}")
            for p in peers:
                self.row(f"AdamW, 32 Mi elements, {threads} threads", ours, p["name"], moved / p["seconds"] / 1e9, "GB/s", "more",
                         1.0 if "DeepSpeed" in p["name"] else None)

    def collectives(self):
        most = 16 if self.a.quick else 256
        sizes = [n << 20 for n in (1, 4, 16, 64, 256) if n <= most]
        ours = {}
        for r in self.ours("collectives", "--filter", " (%s) MiB" % "|".join(str(s >> 20) for s in sizes)).rows:
            size = int(r["shape"].split()[0]) << 20
            moved = 2 * size if r["name"] == "all-gather" else size // 2 * 2 * 3
            ours[r["name"], size] = moved / (r["value"] * 1e9)
        peers = {}
        try:
            for r in self.python("gloo", "gloo.py", *sizes).rows:
                peers["gloo", r["verb"], r["size"]] = r["seconds"]
        except Failed as e:
            print(f"# {e}")
        for r in self.mpi(sizes):
            key = "Open MPI", r["verb"], r["size"]
            peers[key] = min(peers.get(key, float("inf")), r["seconds"])
        for (peer, verb, size), seconds in peers.items():
            bus = size / 2 / 1e9  # what a rank receives, or sends
            self.row(f"{verb}, {size >> 20} MiB, 2 ranks", bus / ours[verb, size], peer, bus / seconds, "GB/s", "more", 3.0)

    def mpi(self, sizes):
        if not (shutil.which("mpicc") and shutil.which("mpirun")):
            print("# Open MPI is left out: there is no mpicc and mpirun")
            return []
        program = os.path.join(self.a.cache, "mpi")
        try:
            subprocess.run(["mpicc", "-O3", "-march=native", os.path.join(HERE, "mpi.c"), "-o", program], check=True)
            root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
            return self.machine.run("Open MPI", ["mpirun", *root, "--oversubscribe", "--bind-to", "core", "-np", "2", program, *map(str, sizes)]).rows
        except (Failed, subprocess.CalledProcessError) as e:
            print(f"# {e}")
            return []

    def sgemm(self):
        wanted = "^sgemm (NN|NT|TN) " if not self.a.quick else "^sgemm (NN|NT|TN) .*(768x768x256|256x2304x768|256x768x3072)$"
        for threads in (1, 2):
            ours, peers = {}, {}
            for _ in range(2):  # in turn
                for r in self.ours("kernels", "--threads", str(threads), "--time", "60ms", "--filter", wanted).rows:
                    if "geomean" not in r["name"]:
                        ours.setdefault(f"{r['name'].split()[1]}:{r['shape']}", []).append(r["value"])
                for library in ("numpy", "torch"):
                    rows = self.python(f"{library}'s products", "sgemm.py", library, "--threads", threads, "--time", 0.06, *ours, threads=threads,
                                       extra=TUNED).rows
                    for r in rows:
                        peers.setdefault(r["library"], {}).setdefault(r["shape"], []).append(r["gflops"])
            for peer, by in peers.items():
                self.row(f"sgemm, geometric mean of {len(ours)}, {threads} threads", mean(ours), peer, mean(by), "GFLOP/s", "more",
                         1.0 if "openblas" in peer else None)


def mean(by):
    """Geometric mean over shapes of the median of rounds."""
    return statistics.geometric_mean(statistics.median(v) for v in by.values())


SECTIONS = ["start", "train", "memory", "adamw", "collectives", "sgemm"]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--zeroshard", required=True)
    p.add_argument("--cache", required=True)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--compile", action="store_true", help="also torch.compile, which adds minutes")
    p.add_argument("--only", choices=SECTIONS, action="append")
    p.add_argument("--json", help="file for the figures")
    a = p.parse_args()
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    print(f"# {time.strftime('%Y-%m-%d %H:%M')}, {model}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}")
    start, c = time.monotonic(), Comparison(a)
    for section in a.only or SECTIONS:
        try:
            getattr(c, section)()
        except Failed as e:
            print(f"# {section} is left out: {e}")
    print(f"# {time.monotonic() - start:.0f} s; at worst something else kept {c.machine.worst:.2f} cores busy during a run")
    if a.json:
        with open(a.json, "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in c.rows)


main()
