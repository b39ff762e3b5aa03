"""Train with two processes and let both end as a command does, many times; count how they end.

PYTHONPATH=src:tests python tests/training/leave_world.py 200

torch is imported once, so that a repetition takes about a second: each process is a fork that ends by itself. Run it
beside a load, which delays the threads of the process group.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import torch
from torch import _dynamo  # noqa: F401 (imported by the first wrapped module, which takes seconds)
from torch.nn.parallel import DistributedDataParallel  # noqa: F401

from srno.training.distributed import join_world
from srno.training.loop import loop
from srno.training.run import Run
from training.small_runs import make_pictures, small_config


def train(rank: int, folder: Path, port: int) -> None:
    """Be one of two processes of a run with two steps."""
    os.environ |= {"WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1"}
    os.environ |= {"MASTER_PORT": str(port), "XDG_CACHE_HOME": str(folder.parent / "cache")}
    with join_world("cpu") as world:
        config = small_config(folder.parent / "pictures", steps=2, stages="8x4x32", hold_out=0, precision="fp32")
        loop(config, Run(folder), world, lambda _: None)
    left = len([*Path("/proc/self/task").iterdir()])
    if left > 1:
        sys.exit(f"{left} threads are left")


def repeat(count: int) -> Counter[str] | None:
    """Count how the processes end; None in the processes themselves."""
    torch.set_num_threads(1)
    root = Path(tempfile.mkdtemp())
    make_pictures(root / "pictures")
    ends: Counter[str] = Counter()
    for number in range(count):
        children: list[int] = []
        for rank in (0, 1):
            child = os.fork()
            if child == 0:
                train(rank, root / f"run{number}", 29500 + number % 1000)
                return None
            children.append(child)
        for child in children:
            ends[describe(os.waitpid(child, 0)[1])] += 1
        shutil.rmtree(root / f"run{number}", ignore_errors=True)
    shutil.rmtree(root)
    return ends


def describe(status: int) -> str:
    """An exit code, or the name of a signal."""
    return str(os.waitstatus_to_exitcode(status)) if os.WIFEXITED(status) else signal.Signals(os.WTERMSIG(status)).name


if __name__ == "__main__":
    found = repeat(int(sys.argv[1]))
    if found is not None:
        sys.stdout.write(f"{dict(found)}\n")
        sys.exit(found.keys() != {"0"})
