"""Which points are evaluated: a window of the picture on a grid of pixels, processed in chunks.

Everything is (y, x) and sizes are (height, width).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from srno.errors import SRNOError
from srno.operator.grid import cell_of

LARGEST_TRAINING_SCALE = 4.0
"""Largest scale of training: no model is trained with a smaller cell than that of ×4."""
WINDOW_MARGIN = 3
"""Picture pixels around a window that its values may depend on, beyond the encoder's radius."""


@dataclass(frozen=True)
class Chunk:
    """A rectangle of output pixels."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def points(self) -> int:
        return (self.bottom - self.top) * (self.right - self.left)


@dataclass(frozen=True)
class Sampling:
    """A window of a picture of `lr` pixels, sampled at `size` pixels."""

    lr: tuple[int, int]
    size: tuple[int, int]
    start: tuple[float, float]
    """Top left of the window, in pixels of the picture."""
    stop: tuple[float, float]
    """Bottom right of the window."""
    cell_override: tuple[float, float] | None = None
    """Cell (2/r_y, 2/r_x) if it differs from that of the pixels."""

    @property
    def scale(self) -> tuple[float, float]:
        """Output pixels per picture pixel."""
        y, x = (n / (stop - start) for n, start, stop in zip(self.size, self.start, self.stop, strict=True))
        return y, x

    @property
    def whole(self) -> "Sampling":
        """The whole picture at the same scale: the domain of the integral."""
        if self.start == (0, 0) and self.stop == self.lr:
            return self
        height, width = (max(1, round(n * s)) for n, s in zip(self.lr, self.scale, strict=True))
        return whole_picture(self.lr, (height, width))

    def cut_out(self) -> tuple["Sampling", tuple[slice, slice]]:
        """The same points of a smaller picture: rows and columns that the window needs, and the sampling in them."""
        first = [max(0, int(start) - WINDOW_MARGIN) for start in self.start]
        last = [min(n, int(stop) + WINDOW_MARGIN + 1) for n, stop in zip(self.lr, self.stop, strict=True)]
        moved = replace(
            self,
            lr=(last[0] - first[0], last[1] - first[1]),
            start=(self.start[0] - first[0], self.start[1] - first[1]),
            stop=(self.stop[0] - first[0], self.stop[1] - first[1]),
        )
        return moved, (slice(first[0], last[0]), slice(first[1], last[1]))

    def axis(self, which: int, device: torch.device) -> Tensor:
        """Coordinates in [-1, 1] of the pixel centres along y (0) or x (1), in float64."""
        n, start, stop, lr = self.size[which], self.start[which], self.stop[which], self.lr[which]
        step = (stop - start) / n
        places = torch.arange(n, dtype=torch.float64, device=device)
        return (start + (places + 0.5) * step) * (2 / lr) - 1

    def points(self, rows: Tensor, columns: Tensor) -> Tensor:
        """(1, n, 2) coordinates of some of the pixels."""
        y, x = self.axis(0, rows.device), self.axis(1, rows.device)
        return torch.stack([y[rows], x[columns]], dim=-1).unsqueeze(0)

    def cell(self, *, clip: bool, device: torch.device) -> Tensor:
        """(1, 2) cell of this sampling; with `clip` it is clamped to that of ×4 beyond ×4."""
        if self.cell_override is not None:
            return torch.tensor([self.cell_override], dtype=torch.float64, device=device)
        return cell_of(*(min(s, LARGEST_TRAINING_SCALE) if clip else s for s in self.scale), device=device)


def whole_picture(lr: tuple[int, int], size: tuple[int, int]) -> Sampling:
    """All of a picture of `lr` pixels at `size` pixels."""
    if min(size) < 1:
        raise SRNOError(f"size {size}: give (height, width), each at least 1 pixel")
    return Sampling(lr, size, (0, 0), lr)


def window(lr: tuple[int, int], size: tuple[int, int], region: tuple[float, float, float, float]) -> Sampling:
    """The part (top, left, bottom, right) of a picture, in its pixels."""
    try:
        top, left, bottom, right = (float(side) for side in region)
    except (TypeError, ValueError):
        raise SRNOError(f"region {region!r}: give (top, left, bottom, right), four numbers") from None
    if not (0 <= left < right <= lr[1] and 0 <= top < bottom <= lr[0]):
        raise SRNOError(f"region {region}: give (top, left, bottom, right) within the picture's {lr[0]}×{lr[1]} pixels")
    if min(size) < 1:
        raise SRNOError(f"size {size}: give (height, width), each at least 1 pixel")
    return Sampling(lr, size, (top, left), (bottom, right))


class GridDecoder(ABC):
    """A model's decoder for one picture on one grid, which it processes in chunks."""

    @abstractmethod
    def chunks(self, points: int, strip: int, band: range | None = None) -> Iterator[tuple[Chunk, Tensor]]:
        """Yield every chunk of at most `points` output pixels with its z_0 (points, d_z), top to bottom.

        With a band, only these rows of the output. At most `strip` rows of the picture are projected at once. The
        caller may overwrite z_0; the next chunk does.
        """

    @abstractmethod
    def rgb(self, chunk: Chunk, z: Tensor) -> Tensor:
        """RGB (3, rows, columns) of a chunk from its z after all layers."""


class PointwiseGrid(GridDecoder):
    """Decoders that evaluate one point at a time: z_0 is the coordinates, and any chunk size gives the same picture."""

    def __init__(self, answer: Callable[[Tensor], Tensor], sampling: Sampling, device: torch.device) -> None:
        self.answer, self.size = answer, sampling.size
        self.y, self.x = sampling.axis(0, device), sampling.axis(1, device)

    def chunks(
        self,
        points: int,
        strip: int,  # noqa: ARG002
        band: range | None = None,
    ) -> Iterator[tuple[Chunk, Tensor]]:
        height, width = self.size
        rows, step = band or range(height), max(1, points // width)
        for top in range(rows.start, rows.stop, step):
            for left in range(0, width, points):
                chunk = Chunk(top, min(top + step, rows.stop), left, min(left + points, width))
                axes = (self.y[chunk.top : chunk.bottom], self.x[chunk.left : chunk.right])
                yield chunk, torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).reshape(-1, 2)

    def rgb(self, chunk: Chunk, z: Tensor) -> Tensor:
        return self.answer(z.unsqueeze(0)).T.reshape(3, chunk.bottom - chunk.top, -1)
