"""Train with two processes and let both end as a command does, many times; count how they end.

PYTHONPATH=src:tests python tests/training/end_processes.py 200 [library|command]

torch is imported once, so that a repetition takes about a second: each process is a fork that ends by itself, as a
program that calls the library does, or as `srno train` does under torchrun. Run it beside a load, which delays the
threads of the process group.
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

from srno.cli import main as srno
from srno.training.distributed import join_world
from srno.training.loop import loop
from srno.training.run import Run
from training.small_runs import SMALL, make_pictures, small_config


def join(rank: int, folder: Path, port: int) -> None:
    """Set what torchrun sets for one of two processes."""
    os.environ |= {"WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1"}
    os.environ |= {"MASTER_PORT": str(port), "XDG_CACHE_HOME": str(folder.parent / "cache")}


def train_by_library(folder: Path) -> None:
    """Train for two steps and return, without threads of the group."""
    with join_world("cpu") as world:
        config = small_config(folder.parent / "pictures", steps=2, stages="8x4x32", hold_out=0, precision="fp32")
        loop(config, Run(folder), world, lambda _: None)
    left = len([*Path("/proc/self/task").iterdir()])
    if left > 1:
        sys.exit(f"{left} threads are left")


def train_by_command(folder: Path) -> None:
    """Train for two steps as a user does; this does not return."""
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (it ends with the process)
    start = ["train", "--data", str(folder.parent / "pictures"), "--out", str(folder), "--steps", "2"]
    srno([*start, "--stages", "8x4x32", *SMALL[2:]])


TRAININGS = {"library": train_by_library, "command": train_by_command}


def repeat(count: int, way: str) -> Counter[str] | None:
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
                join(rank, root / f"run{number}", 29500 + number % 1000)
                TRAININGS[way](root / f"run{number}")
                return None
            children.append(child)
        for child in children:
            ends[describe(os.waitpid(child, 0)[1])] += 1
        if not (root / f"run{number}" / "last.safetensors").exists():
            ends["without a model"] += 1
        shutil.rmtree(root / f"run{number}", ignore_errors=True)
    shutil.rmtree(root)
    return ends


def describe(status: int) -> str:
    """An exit code, or the name of a signal."""
    return str(os.waitstatus_to_exitcode(status)) if os.WIFEXITED(status) else signal.Signals(os.WTERMSIG(status)).name


if __name__ == "__main__":
    found = repeat(int(sys.argv[1]), (*sys.argv[2:], "library")[0])
    if found is not None:
        sys.stdout.write(f"{dict(found)}\n")
        sys.exit(found.keys() != {"0"})
