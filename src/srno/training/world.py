"""Several processes as one: torchrun starts them, this joins them."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist


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

    def mean(self, value: torch.Tensor) -> float:
        """The mean over all processes."""
        if self.size > 1:
            value = value.clone()
            dist.all_reduce(value)
            value = value / self.size
        return float(value)


@contextmanager
def join_world(device: str) -> Generator[World]:
    """Join the processes that torchrun started, or be alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    place = torch.device(device, local) if device == "cuda" else torch.device(device)
    if size == 1:
        yield World(0, 1, place)
        return
    if place.type == "cuda":
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield World(dist.get_rank(), size, place)
    finally:
        dist.destroy_process_group()
