"""Ranks as processes, for PyTorch's gloo."""

import os
import sys
import tempfile


def spawn(ranks, main):
    """Runs main(rank) in ranks processes; each imports what it needs itself, so that its memory is its own. Exits with the
    first failure."""
    children = []
    for rank in range(ranks):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                main(rank)
                code = 0
            except BaseException as e:
                print(f"rank {rank}: {type(e).__name__}: {e}", file=sys.stderr)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)  # gloo's threads may outlive the group
        children.append(pid)
    failed = 0
    while children:
        pid, status = os.wait()
        children.remove(pid)
        if status and not failed:
            failed = os.waitstatus_to_exitcode(status)
            for other in children:
                os.kill(other, 9)
    sys.exit(1 if failed else 0)


def meeting():
    """An address at which ranks find each other."""
    return "file://" + os.path.join(tempfile.mkdtemp(prefix="peers-"), "meeting")


def join(address, rank, ranks):
    """torch.distributed, on gloo over the loopback."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=ranks)
    return dist
