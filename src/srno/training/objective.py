"""What a step minimises."""

from typing import Literal, TypeAlias, cast

import torch
from torch import Tensor, nn

from srno.operator import fused
from srno.operator.model import Model
from srno.operator.srno import SRNO
from srno.rivals.fused import Rival, prepare

Loss: TypeAlias = Literal["l1", "charbonnier", "l2"]
CHARBONNIER_EPSILON = 1e-3
LUMA = (0.299, 0.587, 0.114)
"""Of R, G and B, ITU-R BT.601."""


class Objective(nn.Module):
    """A model and its loss as one module, so that DistributedDataParallel sees a single forward."""

    def __init__(self, model: Model, luma: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.luma = luma

    def forward(self, lr: Tensor, coords: Tensor, cell: Tensor, target: Tensor, loss: Loss) -> Tensor:
        """lr (B, 3, p, p), coords (B, n, 2), cell (B, 2), target (B, n, 3) → the mean loss."""
        return loss_of(predict(self.model, lr, coords, cell), target, loss, self.luma)


def predict(model: Model, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
    """The model's answer by the fastest differentiable way."""
    features = model.encoder(image.contiguous(memory_format=torch.channels_last))
    if isinstance(model, SRNO):
        return fused.decode(model, features, image, coords, cell)
    return prepare(cast(Rival, model), features, image, cell)(coords)


def loss_of(output: Tensor, target: Tensor, loss: Loss, luma: float = 0.0) -> Tensor:
    """Mean over batch, points and channels; of it a share `luma` is that of the brightness alone."""
    error = (output - target).float()
    mean = _mean_of(error, loss)
    if luma == 0:
        return mean
    brightness = (error * error.new_tensor(LUMA)).sum(dim=-1)  # no product, which autocast would round
    return torch.lerp(mean, _mean_of(brightness, loss), luma)


def _mean_of(error: Tensor, loss: Loss) -> Tensor:
    if loss == "l1":
        return error.abs().mean()
    if loss == "l2":
        return error.square().mean()
    return (error.square() + CHARBONNIER_EPSILON**2).sqrt().mean()
