"""Meta-SR: a filter for every output pixel, predicted from its position in the low-resolution pixel and its size."""

import torch
import torch.nn.functional as F
from torch import Tensor

from srno.config import MetaSRConfig
from srno.operator.encoder import make_encoder
from srno.operator.grid import BORDER_SHIFT, nearest_pixel
from srno.operator.lifting import pick
from srno.operator.model import Model, PointDecoder
from srno.rivals.parts import Perceptron, Pixels, size_of, unfold


class MetaSR(Model):
    """RGB(x) = unfolded E · filter(offset, 1/r_y), without ensemble and skip. Pixels align at top-left corners."""

    config: MetaSRConfig

    def __init__(self, config: MetaSRConfig) -> None:
        super().__init__(config, make_encoder(config.encoder))
        self.perceptron = Perceptron(3, config.width, 1, 9 * config.encoder.channels * 3)

    def decode(self, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), image (B, 3, h, w), coords (B, n, 2), cell (B, 2) → RGB (B, n, 3)."""
        rows, columns, position = corner_query(coords, cell, size_of(features))
        filters = self.perceptron(position.to(features.dtype)).unflatten(-1, (-1, 3))
        around = pick(unfold(features), rows, columns).unsqueeze(-2)
        return (around @ filters).squeeze(-2).to(image.dtype)

    def prepare(self, features: Tensor, image: Tensor, cell: Tensor) -> PointDecoder:
        """Features · filter is bilinear in the unfolded features and in the perceptron's hidden values g.

        So RGB = Σ_k g_k·A_k + A_0, where the A are 3×3 convolutions of the features: no filter is computed.
        """
        first, last = self.perceptron.linears()
        channels, width = features.shape[1], first.out_features
        kernels = torch.cat([last.weight, last.bias.unsqueeze(1)], dim=1).unflatten(0, (channels, 3, 3, 3))
        kernels = kernels.permute(3, 4, 0, 1, 2).flatten(0, 1)
        A = Pixels.of(F.conv2d(features, kernels, padding=1))

        def answer(coords: Tensor) -> Tensor:
            rows, columns, position = corner_query(coords, cell, A.size)
            g = F.relu(first(position.to(features.dtype)))
            looked_up = A.at(rows, columns).unflatten(-1, (3, width + 1))
            return ((looked_up[..., :-1] @ g.unsqueeze(-1)).squeeze(-1) + looked_up[..., -1]).to(image.dtype)

        return answer

    def clip_cell(self, coords: Tensor, cell: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Only the filters use the clipped cell: the coordinates move so that the corners x - cell/2 stay the same."""
        _, clipped = super().clip_cell(coords, cell, size)
        return coords - _half(cell, size, coords) + _half(clipped, size, coords), clipped


def corner_query(coords: Tensor, cell: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and columns (B, n) of the pixels that contain the corners x - cell/2, and the position there (B, n, 3).

    The position is the offset from the corner of that pixel, in pixels, as (y, x), and the cell's height 1/r_y.
    """
    corner = coords - _half(cell, size, coords)
    offsets: list[Tensor] = []
    indices: list[Tensor] = []
    for axis, n in enumerate(size):
        index = nearest_pixel((corner[..., axis] + BORDER_SHIFT).clamp(-1 + BORDER_SHIFT, 1 - BORDER_SHIFT), n)
        offsets.append((corner[..., axis] + 1) * (n / 2) - index)
        indices.append(index)
    height = (cell[:, :1] / 2).to(coords.dtype).expand_as(offsets[0])
    return indices[0], indices[1], torch.stack([*offsets, height], dim=-1)


def _half(cell: Tensor, size: tuple[int, int], coords: Tensor) -> Tensor:
    """Half a cell (B, 2), given in half low-resolution pixels, as a step in Ω (B, 1, 2)."""
    return (cell / (2 * cell.new_tensor(size))).to(coords.dtype).unsqueeze(1)
