"""One step: its loss, its gradient and its precision."""

import ctypes
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from srno.data.dataset import Sample
from srno.operator.model import Model
from srno.training.config import Precision, TrainConfig
from srno.training.distributed import World
from srno.training.stages import Loss

CHARBONNIER_EPSILON = 1e-3
RMS_EPSILON = 1e-3
"""About an eighth of a level of 255: bounds the gradient of samples that are almost exact."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Codes of the two settings in glibc's malloc.h."""
LARGEST_MALLOC_BLOCK = 32 << 20
"""Largest value in bytes that glibc accepts for M_MMAP_THRESHOLD."""
MIN_BF16_SPEED_UP = 1.3
"""`auto` chooses bf16 if it is more than this many times as fast as fp32."""


class Objective(nn.Module):
    """A model and its loss as one module, so that DistributedDataParallel sees a single forward."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, lr: Tensor, coords: Tensor, cell: Tensor, target: Tensor, loss: Loss) -> Tensor:
        """lr (B, 3, p, p), coords (B, n, 2), cell (B, 2), target (B, n, 3) → the mean loss."""
        return loss_of(self.model(lr, coords, cell), target, loss)


def loss_of(output: Tensor, target: Tensor, loss: Loss) -> Tensor:
    """Mean over batch, points and channels; rms is the mean over the batch of each sample's root mean square."""
    if loss == "l1":
        return F.l1_loss(output, target)
    if loss == "l2":
        return F.mse_loss(output, target)
    if loss == "rms":
        errors = (output - target).square().flatten(1).mean(1)
        return (errors + RMS_EPSILON**2).sqrt().mean()
    return ((output - target).square() + CHARBONNIER_EPSILON**2).sqrt().mean()


def gradient(objective: nn.Module, batch: Sample, config: TrainConfig, kind: Loss, world: World) -> tuple[float, float]:
    """Compute the step's gradient into the parameters; returns the loss and the gradient's norm before clipping."""
    objective.zero_grad(set_to_none=True)
    total = torch.zeros((), device=world.device)
    for part, share, last in _parts(batch, config.accumulate, world.device):
        synchronise = last or world.size == 1
        with nullcontext() if synchronise else cast(DistributedDataParallel, objective).no_sync():
            with torch.autocast(world.device.type, dtype=torch.bfloat16, enabled=config.precision == "bf16"):
                loss = objective(*part, kind)
            (loss * share).backward()
        total += loss.detach() * share
    norm = nn.utils.clip_grad_norm_(objective.parameters(), config.clip or math.inf)
    return world.mean(total), float(norm)


def _parts(batch: Sample, count: int, device: torch.device) -> Iterator[tuple[tuple[Tensor, ...], float, bool]]:
    """The batch in `count` parts: tensors, share of the samples, and whether it is the last."""
    parts = list(zip(*(tensor.to(device).chunk(count) for tensor in batch), strict=True))
    for number, part in enumerate(parts, start=1):
        yield part, len(part[0]) / len(batch.lr), number == len(parts)


def choose_precision(precision: Precision, device: torch.device) -> Literal["fp32", "bf16"]:
    """Resolve `auto` for this device by timing, since hardware without bf16 computes it too, only slowly."""
    if precision != "auto":
        return precision
    if device.type not in ("cpu", "cuda"):
        return "fp32"
    single, half = (torch.ones(1024, 1024, device=device, dtype=dtype) for dtype in (torch.float32, torch.bfloat16))
    return "bf16" if _time(lambda: single @ single) > MIN_BF16_SPEED_UP * _time(lambda: half @ half) else "fp32"


def _time(product: Callable[[], Tensor]) -> float:
    """Seconds of the fastest of a few runs."""
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        product()[0, 0].item()  # waits for the device
        times.append(time.perf_counter() - start)
    return min(times)


def keep_freed_memory() -> bool:
    """Ask glibc to keep freed blocks instead of returning them to the system; returns whether it does.

    By default, arrays of some megabytes are mapped again in every step, and the system fills each page with zeros
    first: that takes a tenth of a training step on a CPU.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_MALLOC_BLOCK)) and bool(mallopt(M_TRIM_THRESHOLD, 2**31 - 1))
