"""LTE: each pixel holds amplitudes and frequencies of the texture around it, and a perceptron reads the waves' values.

LTE+ is the same function in a second form, over whole maps: `srno.rivals.fused.prepare_maps`.
"""

from collections.abc import Sequence
from math import pi

import torch
from torch import Tensor, nn

from srno.config import LTEConfig
from srno.operator.lifting import pick
from srno.operator.model import Model, make_encoder
from srno.operator.projection import bilinear
from srno.rivals.parts import Neighbour, Perceptron, local_ensemble, size_of


class LTE(Model):
    """RGB(x) = Σ_l s_l · perceptron(A_l ⊙ [cos πf_l, sin πf_l]) + bilinear skip, with f_l = F_l·δ_l + phase(c)."""

    config: LTEConfig

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

        def look(near: Neighbour) -> Tensor:
            coefficient, frequency = (pick(a, near.rows, near.columns) for a in (coefficients, frequencies))
            return self.perceptron(waves(coefficient, frequency, near.delta.split(1, dim=-1), phase, dim=-1))

        return (local_ensemble(coords, size_of(features), look) + bilinear(image, coords)).to(image.dtype)


def waves(coefficient: Tensor, frequency: Tensor, delta: Sequence[Tensor], phase: Tensor, *, dim: int) -> Tensor:
    """A ⊙ [cos πf, sin πf] with f = F·δ + phase, from A and F with 2·J channels along `dim`.

    δ comes as its y and x parts; they and the phase have the shape of half of F, or one that broadcasts to it.
    """
    # angles grow with the frequencies: never below fp32
    y, x = (part.to(torch.promote_types(frequency.dtype, torch.float32)) for part in delta)
    F_y, F_x = frequency.chunk(2, dim)
    angle = pi * (F_y * y + F_x * x + phase)
    return coefficient * torch.cat([angle.cos(), angle.sin()], dim).to(coefficient.dtype)
