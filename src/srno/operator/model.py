"""What every arbitrary-scale model here is: an encoder, and a decoder that gives RGB at coordinates."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from srno.config import EncoderConfig, ModelConfig, RDNConfig
from srno.errors import SRNOError
from srno.operator.edsr import EDSR
from srno.operator.rdn import RDN

if TYPE_CHECKING:
    from srno.inference.field import Field

LARGEST_SCALE = 4.0
"""Largest scale of training: no model has seen a smaller cell than that of ×4."""


def make_encoder(config: EncoderConfig) -> EDSR | RDN:
    """The encoder that a config describes, with fresh weights."""
    return RDN(config) if isinstance(config, RDNConfig) else EDSR(config)


class Model(nn.Module, ABC):
    """Pictures in [-1, 1] to RGB in [-1, 1] (not clamped) at any coordinates of Ω."""

    def __init__(self, config: ModelConfig, encoder: EDSR | RDN) -> None:
        super().__init__()
        self.config = config
        self.encoder = encoder

    @abstractmethod
    def decode(self, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), image (B, 3, h, w), coords (B, n, 2), cell (B, 2) → RGB (B, n, 3)."""

    def clip_cell(self, coords: Tensor, cell: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """The same query with the cell held at the one of ×4 where it is smaller: coordinates and cell to evaluate.

        coords (B, n, 2) and the true cell (B, 2) on a picture of `size` (h, w). A model that also measures with
        the cell, as Meta-SR does, moves the coordinates to make up for it; all others leave them alone.
        """
        return coords, cell.clamp(min=2 / LARGEST_SCALE)

    def lift(
        self, image: Tensor, *, memory: int | str | None = None, progress: Callable[[float], None] | None = None
    ) -> "Field":
        """A picture (3, h, w) in [-1, 1] as a function that can be evaluated anywhere, any number of times."""
        from srno.inference.field import lift  # the engine is built on the operator, not the other way round

        return lift(self, image, memory=memory, progress=progress)

    def forward(self, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """RGB at `coords`, by the equations as they stand: the oracle for every faster way.

        image (B, 3, h, w) in [-1, 1]; coords (B, ..., 2) in [-1, 1] as (y, x), fp32 or better;
        cell (B, 2) = (2/r_y, 2/r_x) → (B, ..., 3). The kernel integrals are means over exactly these coordinates.
        """
        if image.ndim != 4 or image.shape[1] != 3 or image.numel() == 0:
            raise SRNOError(f"image has shape {tuple(image.shape)}; it must be (batch, 3, height, width), not empty")
        batch = image.shape[0]
        if coords.ndim < 3 or coords.shape[-1] != 2 or coords.shape[0] != batch or coords.numel() == 0:
            raise SRNOError(f"coords have shape {tuple(coords.shape)}; they must be ({batch}, ..., 2), at least one")
        if cell.shape != (batch, 2):
            raise SRNOError(f"cell has shape {tuple(cell.shape)}; it must be ({batch}, 2), one (2/r_y, 2/r_x) each")
        if coords.dtype not in (torch.float32, torch.float64):
            raise SRNOError(f"coords are {coords.dtype}; below float32 neighbouring pixels cannot be told apart")
        rgb = self.decode(self.encoder(image), image, coords.flatten(1, -2), cell)
        return rgb.reshape(*coords.shape[:-1], 3)
