"""One step of AdamW on fp32 parameters, in PyTorch's implementations or DeepSpeed's. Prints a JSON object for each: median seconds.

  adamw.py --threads 2 --elements 33554432
  adamw.py --threads 2 --deepspeed            compiles its kernel at the first call, some minutes
"""

import argparse
import json
import statistics
import time


def gpt_like(n):
    """Lengths of a model's parameters: one large table, and twelve layers of four matrices and eight vectors."""
    table = n * 3 // 10
    layer = [768] * 8
    left = (n - table) // 12 - sum(layer)
    return [table] + 12 * (layer + [left // 4, left // 12, left // 3, left // 3])


def measure(name, threads, lengths, make, torch):
    params = [torch.full((k,), 0.5).requires_grad_() for k in lengths]
    for p in params:
        p.grad = torch.full_like(p, 0.01)
    optimizer = make(params)
    seconds = []
    for turn in range(7):
        start = time.perf_counter()
        optimizer.step()
        if turn >= 2:
            seconds.append(time.perf_counter() - start)
    print(json.dumps(dict(name=name, threads=threads, elements=sum(lengths), seconds=statistics.median(seconds))), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--elements", type=int, default=32 << 20)
    p.add_argument("--deepspeed", action="store_true")
    a = p.parse_args()
    import torch
    torch.set_num_threads(a.threads)
    kw = dict(lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1)
    if a.deepspeed:
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        return measure("DeepSpeedCPUAdam, flat", a.threads, [a.elements], lambda ps: DeepSpeedCPUAdam(ps, adamw_mode=True, **kw), torch)
    for layout, lengths in (("flat", [a.elements]), ("list", gpt_like(a.elements))):
        for kind in ("fused", "foreach"):
            measure(f"torch {kind}, {layout}", a.threads, lengths, lambda ps: torch.optim.AdamW(ps, **{kind: True}, **kw), torch)


main()
