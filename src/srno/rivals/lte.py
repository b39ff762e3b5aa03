"""LTE: each pixel holds amplitudes and frequencies of the texture around it; a perceptron maps the waves to RGB.

LTE+ is the same function in a second form, over whole maps: `prepare_maps`.
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import pi

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from srno.config import LTEConfig
from srno.operator.encoder import make_encoder
from srno.operator.grid import Neighbours, neighbours
from srno.operator.lifting import pick
from srno.operator.model import Model, PointDecoder
from srno.operator.projection import bilinear
from srno.rivals.parts import Neighbour, Perceptron, Pixels, local_ensemble, size_of


class LTE(Model):
    """RGB(x) = Σ_l s_l · perceptron(A_l ⊙ [cos πf_l, sin πf_l]) + bilinear skip, with f_l = F_l·δ_l + phase(c)."""

    config: LTEConfig
    adds_bilinear = True

    def __init__(self, config: LTEConfig) -> None:
        super().__init__(config, make_encoder(config.encoder))
        channels, waves = config.encoder.channels, 2 * config.frequencies
        self.coefficient = nn.Conv2d(channels, waves, 3, padding=1)
        """A: amplitudes of the cosines, then of the sines."""
        self.frequency = nn.Conv2d(channels, waves, 3, padding=1)
        """F: the y parts of all frequencies, then their x parts."""
        self.phase = nn.Linear(2, config.frequencies, bias=False)
        self.perceptron = Perceptron(waves, config.width, config.depth, 3)

    def decode(self, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), image (B, 3, h, w), coords (B, n, 2), cell (B, 2) → RGB (B, n, 3)."""
        coefficients, frequencies = self.coefficient(features), self.frequency(features)
        phase = self.phase(cell.to(features.dtype)).unsqueeze(1)

        def at_neighbour(near: Neighbour) -> Tensor:
            coefficient, frequency = (pick(a, near.rows, near.columns) for a in (coefficients, frequencies))
            return self.perceptron(waves(coefficient, frequency, near.delta.split(1, dim=-1), phase, dim=-1))

        return (local_ensemble(coords, size_of(features), at_neighbour) + bilinear(image, coords)).to(image.dtype)

    def prepare(self, features: Tensor, image: Tensor, cell: Tensor) -> PointDecoder:
        """The estimators' maps and the phase are computed once per picture; the rest is computed per query."""
        coefficients, frequencies = Pixels.of(self.coefficient(features)), Pixels.of(self.frequency(features))
        phase = self.phase(cell.to(features.dtype)).unsqueeze(1)

        def at_neighbour(near: Neighbour) -> Tensor:
            coefficient, frequency = (a.at(near.rows, near.columns) for a in (coefficients, frequencies))
            return self.perceptron(waves(coefficient, frequency, near.delta.split(1, dim=-1), phase, dim=-1))

        def answer(coords: Tensor) -> Tensor:
            return (local_ensemble(coords, coefficients.size, at_neighbour) + bilinear(image, coords)).to(image.dtype)

        return answer

    def prepare_maps(self, features: Tensor, image: Tensor, cell: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """LTE+: the same function over a grid, as 1×1 convolutions over maps.

        Returns rows (H,) and columns (W,) ↦ RGB (B, 3, H, W).
        """
        estimates = self.coefficient(features), self.frequency(features)
        phase = self.phase(cell.to(features.dtype))[..., None, None]
        *inner, last = self.perceptron.linears()

        def at_neighbour(y: Neighbours, x: Neighbours, i: int, j: int) -> Tensor:
            A, frequency = (a.index_select(2, y.index[:, i]).index_select(3, x.index[:, j]) for a in estimates)
            hidden = waves(A, frequency, (y.delta[:, i, None], x.delta[:, j]), phase, dim=1)
            for layer in inner:
                hidden = _pointwise(layer, hidden).relu_()
            share = y.share[:, i, None] * x.share[:, j]
            return share.to(hidden.dtype) * _pointwise(last, hidden)

        def answer(rows: Tensor, columns: Tensor) -> Tensor:
            y, x = neighbours(rows, features.shape[-2]), neighbours(columns, features.shape[-1])
            ensemble = torch.stack([at_neighbour(y, x, i, j) for i, j in product((0, 1), repeat=2)]).sum(0)
            grid = torch.stack(torch.meshgrid(rows, columns, indexing="ij"), dim=-1).flatten(0, 1)
            skip = bilinear(image, grid.expand(len(image), -1, -1))
            return (ensemble + skip.transpose(1, 2).unflatten(-1, ensemble.shape[-2:])).to(image.dtype)

        return answer


def _pointwise(layer: nn.Linear, maps: Tensor) -> Tensor:
    """A linear map as a 1×1 convolution."""
    return F.conv2d(maps, layer.weight[..., None, None], layer.bias)


def waves(coefficient: Tensor, frequency: Tensor, delta: Sequence[Tensor], phase: Tensor, *, dim: int) -> Tensor:
    """A ⊙ [cos πf, sin πf] with f = F·δ + phase, from A and F with 2·J channels along `dim`.

    δ comes as its y and x parts; they and the phase have the shape of half of F, or one that broadcasts to it.
    """
    # angles grow with the frequencies: never below fp32
    y, x = (part.to(torch.promote_types(frequency.dtype, torch.float32)) for part in delta)
    F_y, F_x = frequency.chunk(2, dim)
    angle = pi * (F_y * y + F_x * x + phase)
    return coefficient * torch.cat([angle.cos(), angle.sin()], dim).to(coefficient.dtype)
