"""Several processes as one: torchrun starts them, this joins them."""

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from srno.errors import SRNOError

PATIENCE = timedelta(hours=2)
"""The others wait this long while the main process decodes pictures or validates."""

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """Who we are among the processes of a run."""

    rank: int
    size: int
    device: torch.device

    @property
    def main(self) -> bool:
        """Whether this process writes and tells."""
        return self.rank == 0

    def agree(self, *values: float) -> list[float]:
        """The main process's values, in every process."""
        if self.size == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.broadcast(shared, src=0)
        return shared.tolist()

    def share(self, make: Callable[[], T]) -> T:
        """What the main process makes, in every process; so is a mistake of the user's that it runs into."""
        if self.size == 1:
            return make()
        box: list[Any] = [None, None]
        if self.main:
            try:
                box[0] = make()
            except SRNOError as error:
                box[1] = str(error)
        dist.broadcast_object_list(box, src=0)
        if box[1] is not None:
            raise SRNOError(box[1])
        return box[0]

    def mean(self, value: Tensor) -> float:
        """The mean over all processes."""
        if self.size > 1:
            value = value.clone()
            dist.all_reduce(value)
            value = value / self.size
        return float(value)

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module with gradients that are means over all processes."""
        return DistributedDataParallel(module) if self.size > 1 else module


@contextmanager
def join_world(device: str) -> Generator[World]:
    """Join the processes that torchrun started, or be alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    place = _find_device(device, int(os.environ.get("LOCAL_RANK", "0")))
    if size == 1:
        yield World(0, 1, place)
        return
    if place.type == "cuda":
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        yield World(dist.get_rank(), size, place)
    finally:
        dist.destroy_process_group()


def _find_device(name: str, local_rank: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        place = torch.device(name, local_rank) if name == "cuda" else torch.device(name)
        torch.empty(1, device=place)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise SRNOError(f"--device {name}: not there; choose auto, cpu, cuda, cuda:N or mps") from None
    return place


@contextmanager
def stop_requests(*, insist: bool) -> Generator[list[int]]:
    """Collect SIGTERM and SIGINT instead of dying of them.

    With `insist`, a second Ctrl-C is not collected. Under torchrun it must be: each one comes twice there, from the
    terminal and from torchrun.
    """
    requests: list[int] = []

    def ask(number: int, _: object) -> None:
        requests.append(number)
        if insist:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
