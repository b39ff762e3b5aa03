"""One step's gradient, and the arithmetic that it is computed in."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from srno.data.loader import Batch
from srno.training.config import Precision, TrainConfig
from srno.training.stages import Loss
from srno.training.world import World

WORTH_IT = 1.3
"""bf16 is taken where it is this many times as fast as fp32."""


def gradient(objective: nn.Module, batch: Batch, config: TrainConfig, kind: Loss, world: World) -> tuple[float, float]:
    """Leave the step's gradient in the parameters; returns the loss and the gradient's norm before clipping."""
    objective.zero_grad(set_to_none=True)
    total = torch.zeros((), device=world.device)
    for part, share, last in _parts(batch, config.accumulate, world.device):
        alone = last or world.size == 1
        with nullcontext() if alone else cast(DistributedDataParallel, objective).no_sync():
            with torch.autocast(world.device.type, dtype=torch.bfloat16, enabled=config.precision == "bf16"):
                loss = objective(*part, kind)
            (loss * share).backward()
        total += loss.detach() * share
    norm = nn.utils.clip_grad_norm_(objective.parameters(), config.clip or math.inf)
    return world.mean(total), float(norm)


def _parts(batch: Batch, count: int, device: torch.device) -> Iterator[tuple[tuple[Tensor, ...], float, bool]]:
    """The batch in `count` parts: tensors, share of the samples, and whether it is the last."""
    parts = list(zip(*(tensor.chunk(count) for tensor in batch.tensors(device)), strict=True))
    for number, part in enumerate(parts, start=1):
        yield part, len(part[0]) / len(batch.lr), number == len(parts)


def choose_precision(precision: Precision, device: torch.device) -> Literal["fp32", "bf16"]:
    """What `auto` means on this device, by trying: hardware that lacks bf16 computes it all the same, only slowly."""
    if precision != "auto":
        return precision
    if device.type not in ("cpu", "cuda"):
        return "fp32"
    single, half = (torch.ones(1024, 1024, device=device, dtype=dtype) for dtype in (torch.float32, torch.bfloat16))
    return "bf16" if _time(lambda: single @ single) > WORTH_IT * _time(lambda: half @ half) else "fp32"


def _time(product: Callable[[], Tensor]) -> float:
    """Seconds of the fastest of a few tries."""
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        product()[0, 0].item()  # waits for the device
        times.append(time.perf_counter() - start)
    return min(times)
