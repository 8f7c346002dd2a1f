"""all-gather and reduce-scatter of fp32 on torch.distributed's gloo, one process a rank. Prints a JSON object for each size: verb,
bytes of the full buffer, median seconds of the slowest rank.

  gloo.py --ranks 2 1048576 4194304 ...
"""

import argparse
import json
import statistics
import time

import ranks


def measure(a, address, rank):
    import torch
    torch.set_num_threads(1)
    dist = ranks.join(address, rank, a.ranks)
    for size in a.sizes:
        n = size // 4 // a.ranks
        full, part = torch.full((n * a.ranks,), float(rank + 1)), torch.full((n,), float(rank + 1))
        own = full[rank * n:(rank + 1) * n]
        for verb, call in (("all-gather", lambda: dist.all_gather_into_tensor(full, own)),
                           ("reduce-scatter", lambda: dist.reduce_scatter_tensor(part, full))):
            seconds = []
            for turn in range(3 + max(3, min(30, (256 << 20) // size))):
                dist.barrier()
                start = time.perf_counter()
                call()
                t = torch.tensor([time.perf_counter() - start], dtype=torch.float64)
                dist.all_reduce(t, op=dist.ReduceOp.MAX)
                if turn >= 3:
                    seconds.append(float(t))
            if rank == 0:
                print(json.dumps(dict(verb=verb, size=size, seconds=statistics.median(seconds))), flush=True)
    dist.barrier()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("sizes", type=int, nargs="+")
    a = p.parse_args()
    address = ranks.meeting()
    ranks.spawn(a.ranks, lambda rank: measure(a, address, rank))


main()
