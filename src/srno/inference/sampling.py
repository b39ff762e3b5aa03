"""Which points of the plane are asked for: a window of the picture, sampled at so many pixels."""

from dataclasses import dataclass

import torch
from torch import Tensor

from srno.errors import SRNOError
from srno.operator.grid import cell_of
from srno.operator.model import LARGEST_SCALE


@dataclass(frozen=True)
class Sampling:
    """A window of a picture of `lr` pixels, sampled at `size` pixels. Everything is (y, x)."""

    lr: tuple[int, int]
    size: tuple[int, int]
    start: tuple[float, float]
    """Top left of the window, in pixels of the picture."""
    stop: tuple[float, float]
    """Bottom right of the window."""

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
        """(1, 2) cell of this sampling, held at that of ×4 beyond it if asked."""
        return cell_of(*(min(s, LARGEST_SCALE) if clip else s for s in self.scale), device=device)


def whole_picture(lr: tuple[int, int], size: tuple[int, int]) -> Sampling:
    """All of a picture; `lr` and `size` are (height, width)."""
    if min(size) < 1:
        raise SRNOError(f"size {size[1]}×{size[0]}: both sides must be at least 1 pixel")
    return Sampling(lr, size, (0, 0), lr)


def window(lr: tuple[int, int], size: tuple[int, int], region: tuple[float, float, float, float]) -> Sampling:
    """The part (left, top, right, bottom) of a picture, in its pixels; `lr` and `size` are (height, width)."""
    left, top, right, bottom = region
    if not (0 <= left < right <= lr[1] and 0 <= top < bottom <= lr[0]):
        raise SRNOError(f"region {region}: left, top, right, bottom must lie in the picture of {lr[1]}×{lr[0]} pixels")
    if min(size) < 1:
        raise SRNOError(f"size {size[1]}×{size[0]}: both sides must be at least 1 pixel")
    return Sampling(lr, size, (top, left), (bottom, right))
