"""One step: its loss, its gradient and its precision."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from srno.data.dataset import Sample
from srno.machine import fastest_precision
from srno.operator.model import Model
from srno.training.config import Precision, TrainConfig
from srno.training.distributed import World
from srno.training.stages import Loss

CHARBONNIER_EPSILON = 1e-3
RMS_EPSILON = 1e-3
"""About an eighth of a level of 255: bounds the gradient of samples that are almost exact."""


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
    """Return the precision that `auto` stands for on this device; fp16 would need loss scaling."""
    if precision != "auto":
        return precision
    return "bf16" if fastest_precision(device) == "bf16" else "fp32"
