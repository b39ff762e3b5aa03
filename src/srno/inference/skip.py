"""The bilinear skip on a grid, axis by axis."""

from dataclasses import dataclass

import torch
from torch import Tensor

from srno.inference.latent import Chunk
from srno.inference.sampling import Sampling


@dataclass(frozen=True)
class BilinearSkip:
    """Bilinear values of a picture at the pixels of a sampling."""

    image: Tensor
    """(h, w, 3)"""
    y: tuple[Tensor, Tensor, Tensor]
    """(n,) lower and upper pixel, and the weight of the upper"""
    x: tuple[Tensor, Tensor, Tensor]

    def __call__(self, chunk: Chunk) -> Tensor:
        """(points, 3)"""
        low, high, weight = (part[chunk.top : chunk.bottom] for part in self.y)
        rows = torch.lerp(self.image[low], self.image[high], weight.reshape(-1, 1, 1))
        low, high, weight = (part[chunk.left : chunk.right] for part in self.x)
        return torch.lerp(rows[:, low], rows[:, high], weight.reshape(1, -1, 1)).flatten(0, 1)


def make_skip(image: Tensor, sampling: Sampling) -> BilinearSkip:
    """image (1, 3, h, w), clamped at its border."""
    pixels = image[0].permute(1, 2, 0).contiguous()
    y, x = (_axis(sampling.axis(i, image.device), sampling.lr[i], image.dtype) for i in (0, 1))
    return BilinearSkip(pixels, y, x)


def _axis(coords: Tensor, n: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    place = ((coords + 1) * (n / 2) - 0.5).clamp(0, n - 1)
    low = place.floor().long()
    return low, (low + 1).clamp(max=n - 1), (place - low).to(dtype)
