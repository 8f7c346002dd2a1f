"""GPT-2 in PyTorch, trained on random tokens for some steps: what zeroshard is compared with. Prints one JSON object.

  gpt.py --model gpt2 --seq 256 --micro 2 --mode fsdp2 --ranks 2 --threads 1

Modes: single, ddp, zero1 (ZeroRedundancyOptimizer), fsdp2 (fully_shard of every block and of the rest).
"""

import argparse
import json
import math
import statistics
import time

import ranks

MODELS = {  # layers, heads, width, vocabulary, positions
    "tiny": (4, 4, 128, 256, 128),
    "small": (6, 6, 384, 50304, 256),
    "gpt2": (12, 12, 768, 50304, 1024),
}


def build(torch, name):
    nn, functional = torch.nn, torch.nn.functional
    layers, heads, width, vocab, positions = MODELS[name]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.merge(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(vocab, width), nn.Embedding(positions, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02)

        def forward(self, tokens, targets):
            x = self.token(tokens) + self.position.weight[:tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            logits = functional.linear(self.norm(x), self.token.weight)  # tied
            return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    return GPT()


def flops_per_token(name, params, seq):
    layers, _, width, _, positions = MODELS[name]
    return 6 * (params - positions * width) + 12 * layers * width * seq


def decayed(model):
    """Weight decay on matrices alone."""
    ps = list(model.parameters())
    return [{"params": [p for p in ps if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in ps if p.dim() < 2], "weight_decay": 0.0}]


def distribute(torch, model, a):
    """The model as its mode shards it, and its optimizer."""
    adamw = dict(lr=1e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)
    if a.mode == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (a.ranks,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        model = fully_shard(model, mesh=mesh)
    elif a.mode != "single":
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if a.mode == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return model, ZeroRedundancyOptimizer(decayed(model), optimizer_class=torch.optim.AdamW, **adamw)
    return model, torch.optim.AdamW(decayed(model), **adamw)


def peak():
    """Largest resident size of this process so far, in bytes. PyTorch's libraries alone are some hundred MiB of it."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def train(a, address, rank):
    import torch
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    dist = ranks.join(address, rank, a.ranks) if a.mode != "single" else None
    libraries = peak()
    model = build(torch, a.model)
    params = sum(p.numel() for p in model.parameters())
    model, optimizer = distribute(torch, model, a)
    if a.compile:
        model = torch.compile(model)
    torch.manual_seed(rank)
    tokens = torch.randint(MODELS[a.model][3], (a.micro, a.seq + 1))
    seconds, losses = [], []
    if dist:
        dist.barrier()
    last = time.perf_counter()
    for step in range(a.warmup + a.steps):
        loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        now = time.perf_counter()
        seconds.append(now - last)
        last = now
    if not math.isfinite(losses[-1]):
        raise RuntimeError(f"loss is {losses[-1]}")
    most = torch.tensor([peak(), libraries], dtype=torch.int64)
    if dist:
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
    if rank == 0:
        t = statistics.median(seconds[a.warmup:])
        rate = a.ranks * a.micro * a.seq / t
        print(json.dumps(dict(torch=torch.__version__, mode=a.mode, params=params, step=t, tokens=rate, loss=losses,
                              flops=rate * flops_per_token(a.model, params, a.seq), rss=int(most[0]), libraries=int(most[1]))), flush=True)
    if dist:
        dist.barrier()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", choices=MODELS, default="tiny")
    p.add_argument("--mode", choices=["single", "ddp", "zero1", "fsdp2"], default="single")
    for name, value in dict(seq=128, micro=4, ranks=1, threads=1, steps=3, warmup=1).items():
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--compile", action="store_true", help="torch.compile, which takes minutes for gpt2")
    a = p.parse_args()
    if a.mode == "single":
        a.ranks = 1
        return train(a, "", 0)
    address = ranks.meeting()
    ranks.spawn(a.ranks, lambda rank: train(a, address, rank))


main()
