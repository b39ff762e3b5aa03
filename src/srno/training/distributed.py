"""Distributed training: join the processes that torchrun starts."""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from srno.errors import SRNOError

COLLECTIVE_TIMEOUT = timedelta(hours=2)
"""Longest wait of the other processes while the main process decodes pictures or validates."""

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """This process's rank and device among the processes of a run."""

    rank: int
    size: int
    device: torch.device

    @property
    def main(self) -> bool:
        """Whether this process writes files and reports events."""
        return self.rank == 0

    def broadcast(self, *values: float) -> list[float]:
        """Return the main process's values in every process."""
        if self.size == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.broadcast(shared, src=0)
        return shared.tolist()

    def share(self, make: Callable[[], T]) -> T:
        """Call `make` in the main process and return its result, or raise its `SRNOError`, in every process."""
        if self.size == 1:
            return make()
        result_and_error: list[Any] = [None, None]
        if self.main:
            try:
                result_and_error[0] = make()
            except SRNOError as error:
                result_and_error[1] = str(error)
        dist.broadcast_object_list(result_and_error, src=0)
        result, error = result_and_error
        if error is not None:
            raise SRNOError(error)
        return result

    def mean(self, value: Tensor) -> float:
        """The mean of `value` over all processes."""
        if self.size > 1:
            value = value.clone()
            dist.all_reduce(value)
            value = value / self.size
        return float(value)

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module with gradients averaged over all processes."""
        return DistributedDataParallel(module) if self.size > 1 else module


@contextmanager
def join_world(device: str) -> Generator[World]:
    """Join the processes that torchrun started; without torchrun, a world of one."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    torch_device = _find_device(device, int(os.environ.get("LOCAL_RANK", "0")))
    if size == 1:
        yield World(0, 1, torch_device)
        return
    if torch_device.type == "cuda":
        torch.cuda.set_device(torch_device)
    dist.init_process_group("nccl" if torch_device.type == "cuda" else "gloo", timeout=COLLECTIVE_TIMEOUT)
    try:
        yield World(dist.get_rank(), size, torch_device)
        with suppress(RuntimeError):  # another process has failed, and reports it
            dist.barrier()  # no process closes connections that others still use
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)  # they hold the wrapped module, and it the group
        raise
    finally:
        # The threads of the group end with the last reference to it, which may lie in a reference cycle.
        gc.collect()
        dist.destroy_process_group()


def end_process(code: int) -> NoReturn:
    """End a process of several at once, when all its files are written.

    While the interpreter and the libraries shut down, a native thread that is late, as on a busy machine, can end the
    process with SIGABRT, and torchrun then reports that the whole run failed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _find_device(name: str, local_rank: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch_device = torch.device(name, local_rank) if name == "cuda" else torch.device(name)
        torch.empty(1, device=torch_device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise SRNOError(f"--device {name}: not available; choose auto, cpu, cuda, cuda:N or mps") from None
    return torch_device


@contextmanager
def stop_requests(*, raise_on_second: bool) -> Generator[list[int]]:
    """Collect SIGTERM and SIGINT instead of ending the process.

    With `raise_on_second`, a second Ctrl-C raises KeyboardInterrupt. Under torchrun it must not: each Ctrl-C arrives
    twice there, from the terminal and from torchrun.
    """
    requests: list[int] = []

    def collect(number: int, _: object) -> None:
        requests.append(number)
        if raise_on_second:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    previous = {number: signal.signal(number, collect) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield requests
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
