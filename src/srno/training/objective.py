"""What a step minimises."""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from srno.operator import fused
from srno.operator.model import Model
from srno.operator.srno import SRNO
from srno.rivals.fused import Rival, prepare
from srno.training.stages import Loss

CHARBONNIER_EPSILON = 1e-3
RMS_EPSILON = 1e-3
"""A quarter of a level: keeps the gradient of samples that are right already from growing without bound."""


class Objective(nn.Module):
    """A model and its loss as one module, so that DistributedDataParallel sees a single forward."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, lr: Tensor, coords: Tensor, cell: Tensor, target: Tensor, loss: Loss) -> Tensor:
        """lr (B, 3, p, p), coords (B, n, 2), cell (B, 2), target (B, n, 3) → the mean loss."""
        return loss_of(predict(self.model, lr, coords, cell), target, loss)


def predict(model: Model, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
    """The model's answer by the fastest differentiable way."""
    features = model.encoder(image.contiguous(memory_format=torch.channels_last))
    if isinstance(model, SRNO):
        return fused.decode(model, features, image, coords, cell)
    return prepare(cast(Rival, model), features, image, cell)(coords)


def loss_of(output: Tensor, target: Tensor, loss: Loss) -> Tensor:
    """Mean over batch, points and channels; rms is the mean over the batch of each sample's own root mean square."""
    if loss == "l1":
        return F.l1_loss(output, target)
    if loss == "l2":
        return F.mse_loss(output, target)
    if loss == "rms":
        errors = (output - target).square().flatten(1).mean(1)
        return (errors + RMS_EPSILON**2).sqrt().mean()
    return ((output - target).square() + CHARBONNIER_EPSILON**2).sqrt().mean()
