"""Runs contenders as processes, and says how quiet the machine was meanwhile."""

import json
import os
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")

# glibc gives every large block back to the kernel and faults it in again at the next step; PyTorch does that with all
# activations. These settings keep freed blocks and ask for huge pages, worth a fifth of the larger models' speed. They also
# raise the resident peak, so memory is compared without them.
TUNED = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 34),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_TOP_PAD_": str(256 << 20),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}

# Forced core types are for old builds of OpenBLAS; they slow a current one.
FORCED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


class Failed(Exception):
    """A contender that did not finish."""


def busy():
    """Seconds that all cores were busy since the machine started."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq, steal = (int(x) for x in f.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICK


class Outcome:
    """rows: the JSON objects that a process printed; rss: its largest resident size in bytes (of one process of several);
    others: cores that something else kept busy meanwhile."""

    def __init__(self, rows, seconds, rss, others):
        self.rows, self.seconds, self.rss, self.others = rows, seconds, rss, others


class Machine:
    def __init__(self, log=sys.stderr):
        self.worst, self.log = 0.0, log

    def run(self, label, command, threads=1, extra=None, timeout=240):
        env = {k: v for k, v in os.environ.items() if k not in FORCED}
        env.update(OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
                   CUDA_VISIBLE_DEVICES="", PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"], **(extra or {}))
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            before, start = busy(), time.monotonic()
            p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, start_new_session=True)
            usage = self.wait(p, start, timeout)
            seconds = time.monotonic() - start
            own = usage.ru_utime + usage.ru_stime if usage else 0
            others = max(0.0, busy() - before - own) / seconds
            out.seek(0)
            err.seek(0)
            if usage is None or p.returncode:
                why = "took too long" if usage is None else f"exit {p.returncode}"
                raise Failed(f"{label}: {why}: {err.read().strip()[-300:]}")
            rows = [json.loads(line) for line in out if line.startswith("{")]
        self.worst = max(self.worst, others if seconds > 1 else 0)
        print(f"# {label}: {seconds:.1f} s, others {others:.2f} cores", file=self.log, flush=True)
        return Outcome(rows, seconds, usage.ru_maxrss * 1024, others)

    @staticmethod
    def wait(p, start, timeout):
        """The resources that p used, None if it had to be ended. It looks more and more seldom: looking takes time too."""
        while time.monotonic() < start + timeout:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid:
                p.returncode = os.waitstatus_to_exitcode(status)
                return usage
            time.sleep(min(0.05, max(0.001, (time.monotonic() - start) / 100)))
        os.killpg(p.pid, 9)
        p.wait()
        return None
