"""LIIF: a perceptron maps a pixel's features and the query's relative position to RGB; four pixels are averaged."""

import torch
import torch.nn.functional as F
from torch import Tensor

from srno.config import LIIFConfig
from srno.operator.encoder import make_encoder
from srno.operator.lifting import pick
from srno.operator.model import Model, PointDecoder
from srno.rivals.parts import Neighbour, Perceptron, Pixels, cell_per_query, local_ensemble, size_of, unfold


class LIIF(Model):
    """RGB(x) = Σ_l s_l · perceptron([unfolded E at x̂_l, δ_l, c]), without a skip."""

    config: LIIFConfig

    def __init__(self, config: LIIFConfig) -> None:
        super().__init__(config, make_encoder(config.encoder))
        self.perceptron = Perceptron(9 * config.encoder.channels + 4, config.width, config.depth, 3)

    def decode(self, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), image (B, 3, h, w), coords (B, n, 2), cell (B, 2) → RGB (B, n, 3)."""
        unfolded = unfold(features)
        c = cell_per_query(coords, cell)

        def at_neighbour(near: Neighbour) -> Tensor:
            parts = (pick(unfolded, near.rows, near.columns), near.delta, c)
            return self.perceptron(torch.cat([part.to(features.dtype) for part in parts], dim=-1))

        return local_ensemble(coords, size_of(features), at_neighbour).to(image.dtype)

    def prepare(self, features: Tensor, image: Tensor, cell: Tensor) -> PointDecoder:
        """The first linear map acts on unfolded features, δ and c: a 3×3 convolution, a map of δ, and a constant."""
        first = self.perceptron.linears()[0]
        kernel = first.weight[:, :-4].unflatten(1, (features.shape[1], 3, 3))
        W_delta, W_cell = first.weight[:, -4:-2], first.weight[:, -2:]
        constant = F.linear(cell.to(features.dtype), W_cell, first.bias)
        hidden = Pixels.of(F.conv2d(features, kernel, padding=1) + constant[..., None, None])

        def at_neighbour(near: Neighbour) -> Tensor:
            looked_up = hidden.at(near.rows, near.columns)
            return self.perceptron.after_first(looked_up + F.linear(near.delta.to(looked_up.dtype), W_delta))

        return lambda coords: local_ensemble(coords, hidden.size, at_neighbour).to(image.dtype)
