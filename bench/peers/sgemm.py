"""Single-precision products by OpenBLAS (numpy's) or by PyTorch's library. Prints a JSON object for each: GFLOP/s, median.

  sgemm.py numpy --threads 1 NN:256x2304x768 TN:768x768x256 ...      MxNxK, stored as zeroshard's kernels.MatMul has them
"""

import argparse
import json
import statistics
import time


def products(library, threads):
    """The library's product of fp32 matrices into a third, how to make one, and what the library says of itself."""
    if library == "numpy":
        import numpy
        import threadpoolctl
        blas = [b for b in threadpoolctl.threadpool_info() if b["user_api"] == "blas"]
        about = f"{blas[0]['internal_api']} {blas[0]['version']} {blas[0]['architecture']}" if blas else "no BLAS found"
        rng = numpy.random.default_rng(1)
        return (lambda c, a, b: numpy.matmul(a, b, out=c)), (lambda m, n: rng.random((m, n), dtype=numpy.float32)), about
    import torch
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return (lambda c, a, b: torch.mm(a, b, out=c)), torch.rand, "torch " + torch.__version__


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("library", choices=["numpy", "torch"])
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--time", type=float, default=0.1, help="seconds for a shape")
    p.add_argument("shapes", nargs="+")
    a = p.parse_args()
    multiply, matrix, about = products(a.library, a.threads)
    for label in a.shapes:
        op, shape = label.split(":")
        m, n, k = (int(x) for x in shape.split("x"))
        left = matrix(k, m).T if op[0] == "T" else matrix(m, k)
        right = matrix(n, k).T if op[1] == "T" else matrix(k, n)
        out, seconds, start = matrix(m, n), [], time.perf_counter()
        multiply(out, left, right)
        while len(seconds) < 5 or time.perf_counter() - start < a.time:
            t = time.perf_counter()
            multiply(out, left, right)
            seconds.append(time.perf_counter() - t)
        print(json.dumps(dict(library=about, shape=label, threads=a.threads, gflops=2 * m * n * k / statistics.median(seconds) / 1e9)), flush=True)


main()
