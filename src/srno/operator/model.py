"""Base class of all arbitrary-scale models: an encoder, and a decoder that returns RGB at coordinates."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from srno.config import ModelConfig
from srno.errors import SRNOError
from srno.operator.arguments import check_batch, check_query, checked_size
from srno.operator.encoder import check_features
from srno.operator.galerkin import GalerkinLayer
from srno.operator.grid import cell_of, make_grid
from srno.operator.sampling import LARGEST_TRAINING_SCALE, GridDecoder, PointwiseGrid, Sampling

PointDecoder: TypeAlias = Callable[[Tensor], Tensor]
"""coords (B, n, 2) → RGB (B, n, 3)"""


@dataclass(frozen=True)
class Footprint:
    """Memory that a decoder needs, in numbers of values."""

    point: int
    """Per output point of a chunk, at once."""
    width: int
    """Channels of the widest array over the points of a chunk."""
    column: int = 0
    """Per low-resolution pixel of the rows that are projected at once."""
    latent: int = 0
    """Per output point, to keep z between passes; 0 if there is only one pass."""


class Model(nn.Module, ABC):
    """Pictures in [-1, 1] to RGB in [-1, 1] (not clamped) at any coordinates of Ω. Sizes are (height, width)."""

    adds_bilinear: ClassVar[bool] = False
    """Whether the decoder's values are added to the bilinear picture."""

    def __init__(self, config: ModelConfig, encoder: nn.Module) -> None:
        super().__init__()
        self.config = config
        self.encoder = encoder

    @abstractmethod
    def decode(self, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """Evaluate the decoder's equations directly, as in the paper.

        features (B, C, h, w), image (B, 3, h, w), coords (B, n, 2), cell (B, 2) → RGB (B, n, 3).
        """

    def prepare(self, features: Tensor, image: Tensor, cell: Tensor) -> PointDecoder:
        """Return coords ↦ decode(features, image, coords, cell), with fewer products and differentiable."""
        return lambda coords: self.decode(features, image, coords, cell)

    def forward(
        self,
        image: Tensor,
        coords: Tensor | None = None,
        cell: Tensor | None = None,
        *,
        size: tuple[int, int] | None = None,
    ) -> Tensor:
        """Evaluate a batch of pictures at points, or on the pixel grid of a size.

        image (B, 3, h, w) in the precision of the weights and in [-1, 1], which is not checked. With `size` = (H, W) →
        (B, 3, H, W), the cell clamped to that of ×4 beyond ×4. With coords (B, ..., 2) in [-1, 1] as (y, x) and cell
        (B, 2) = (2/r_y, 2/r_x) → (B, ..., 3). The kernel integrals are means over exactly these points. Batched and
        differentiable; memory grows with the points, so for large pictures use `srno.lift`.

        >>> import torch, srno
        >>> model = srno.load("default")
        >>> model(torch.zeros(2, 3, 8, 8), size=(20, 24)).shape
        torch.Size([2, 3, 20, 24])
        """
        if size is not None:
            if coords is not None or cell is not None:
                raise SRNOError("size together with coords or cell: give size for a whole picture, or coords and cell")
            return self._forward_grid(image, size)
        check_batch(image, self._dtype)
        coords, cell = check_query(image, coords, cell)
        return self._evaluate(image, coords.flatten(1, -2), cell).reshape(*coords.shape[:-1], 3)

    def reference(self, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """The same as forward(image, coords, cell), directly from the equations: the reference of the tests."""
        check_batch(image, self._dtype)
        coords, cell = check_query(image, coords, cell)
        rgb = self.decode(self._encode(image), image, coords.flatten(1, -2), cell)
        return rgb.reshape(*coords.shape[:-1], 3)

    def _forward_grid(self, image: Tensor, size: tuple[int, int]) -> Tensor:
        check_batch(image, self._dtype)
        size = checked_size(size)
        if min(size) < 1:
            raise SRNOError(f"size is {size}; it must be (height, width), each at least 1")
        lr = (image.shape[-2], image.shape[-1])
        grid = make_grid(*size, device=image.device).reshape(1, -1, 2).expand(len(image), -1, -1)
        cell = cell_of(size[0] / lr[0], size[1] / lr[1], batch=len(image), device=image.device)
        rgb = self._evaluate(image, *self.clip_cell(grid, cell, lr))
        return rgb.transpose(1, 2).unflatten(-1, size)

    def _evaluate(self, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        features = self._encode(image.contiguous(memory_format=torch.channels_last))
        return self.prepare(features, image, cell)(coords)

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def _encode(self, image: Tensor) -> Tensor:
        return check_features(self.encoder, image, self.encoder(image))

    def clip_cell(self, coords: Tensor, cell: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the query with its cell clamped to at least that of ×4: coordinates and cell to evaluate.

        coords (B, n, 2) and the true cell (B, 2) on a picture of `size` (h, w). A model that also computes positions
        from the cell, such as Meta-SR, moves the coordinates to compensate; all others return them unchanged.
        """
        return coords, cell.clamp(min=2 / LARGEST_TRAINING_SCALE)

    # Used by `Field`. The defaults suit every decoder that evaluates one point at a time.

    def kernel_layers(self) -> list[GalerkinLayer]:
        """Layers with a kernel integral over the whole picture; none for a pointwise decoder."""
        return []

    def on_grid(self, features: Tensor, image: Tensor, sampling: Sampling, *, cell_clip: bool) -> GridDecoder:
        """Return the decoder of one picture on one grid: features (h, w, C), image (1, 3, h, w)."""
        true_cell = sampling.cell(clip=False, device=image.device)
        cell = sampling.cell(clip=cell_clip, device=image.device)
        answer = self.prepare(features.permute(2, 0, 1).unsqueeze(0), image, cell)

        def at(coords: Tensor) -> Tensor:
            return answer(self.clip_cell(coords, true_cell, sampling.lr)[0] if cell_clip else coords)[0]

        return PointwiseGrid(at, sampling, image.device)

    def lift_points(self, features: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """z_0 (B, n, d_z) at coords (B, n, 2); only models with kernel layers have one."""
        raise NotImplementedError(f"{type(self).__name__} has no latent function")

    def at_points(
        self,
        features: Tensor,
        image: Tensor,
        coords: Tensor,
        cell: Tensor,
        layers: Sequence[Callable[[Tensor], Tensor]],  # noqa: ARG002
    ) -> Tensor:
        """RGB (B, n, 3) at coords (B, n, 2), with the kernel layers as maps z → z whose integrals are known."""
        return self.prepare(features, image, cell)(coords)

    def footprint(self) -> Footprint:
        """Memory that the decoder needs, for planning."""
        # Four neighbours with their hidden layers or unfolded features.
        return Footprint(point=4096, width=256)
