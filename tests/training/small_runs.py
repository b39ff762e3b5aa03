"""Training runs that take seconds: small pictures, small samples, and processes that can be killed."""

import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from srno.checkpoints.native import read_native
from srno.training.config import TrainConfig
from srno.training.distributed import World
from srno.training.loop import loop
from srno.training.run import Run

Event = dict[str, Any]

SMALL = ("--stages", "8x2x16", "--hold-out", "0", "--precision", "fp32", "--device", "cpu", "--threads", "1")
"""A step with these flags takes a few hundredths of a second."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["srno.training.loop", "srno.commands.train", "srno.training.view"])


def make_pictures(folder: Path, count: int = 4, size: tuple[int, int] = (110, 120)) -> Path:
    """Write pictures of smooth colours with some structure."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        noise = np.random.default_rng(number).integers(256, size=(size[0] // 5, size[1] // 5, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((size[1], size[0]), Image.Resampling.BICUBIC).save(folder / f"{number}.png")
    return folder


def small_config(data: Path, **changes: Any) -> TrainConfig:
    """A config of steps that take a few hundredths of a second."""
    values: dict[str, Any] = {"stages": "8x2x16", "hold_out": 0, "precision": "fp32"}
    return TrainConfig(data=(data,), **values | changes)


def train_here(config: TrainConfig, folder: Path) -> list[Event]:
    """Train in this process; returns the run's events."""
    events: list[Event] = []
    run = Run(folder)

    def report(event: Event) -> None:
        if event["event"] != "reading":
            events.append(event)

    assert loop(config, run, World(0, 1, torch.device("cpu")), report) is None
    return events


def of_kind(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["event"] == kind]


def start(tokens: Sequence[str | Path], *, cache: Path, errors: Path) -> ForkServerProcess:
    """Start `srno` with these tokens in a new process, with its stderr in a file."""
    process = _context.Process(target=_main, args=([str(token) for token in tokens], cache, errors))
    process.start()
    return process


def _main(tokens: list[str], cache: Path, errors: Path) -> None:
    from srno.cli import main

    os.environ["XDG_CACHE_HOME"] = str(cache)
    with errors.open("a") as sys.stderr:
        main(tokens)


def assert_same_end(one: Path, other: Path) -> None:
    """Assert that two runs ended with the same weights and the same state, to the last bit."""
    for which in ("last", "best"):
        a, b = (read_native(run / f"{which}.safetensors").state for run in (one, other))
        assert a.keys() == b.keys()
        assert all(torch.equal(a[name], b[name]) for name in a)
    a, b = (Run(run).load_state() for run in (one, other))
    assert a is not None
    assert b is not None
    assert a["position"] == b["position"]
    _assert_equal(a["optimisers"], b["optimisers"])


def _assert_equal(a: Any, b: Any) -> None:
    if isinstance(a, torch.Tensor):
        assert isinstance(b, torch.Tensor)
        assert torch.equal(a, b)
    elif isinstance(a, dict | list):
        assert type(a) is type(b)
        assert len(a) == len(b)
        keys = a.keys() if isinstance(a, dict) else range(len(a))
        for key in keys:
            _assert_equal(a[key], b[key])
    else:
        assert a == b
