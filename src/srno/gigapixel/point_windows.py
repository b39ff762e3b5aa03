"""z_0 at scattered points of a picture whose features are not known: only a small window around each is encoded.

The points of an integral have a fixed number. In a large picture they are far apart, and their windows are a small part
of it.
"""

import torch
from torch import Tensor

from srno.field.plan import BYTES_PER_VALUE
from srno.operator.encoder import live_channels
from srno.operator.model import Model
from srno.operator.sampling import Sampling

PATCH_SIDE = 4
"""Pixels along a side of the features that a point depends on: its two neighbours and one more on each side."""


def window_side(halo: int) -> int:
    """Pixels along a side of the window that is encoded for a point."""
    return PATCH_SIDE + 2 * halo


class PointWindows:
    """The windows of some points; those at the picture's edges are moved inside, so that all have the same size."""

    def __init__(self, whole: Sampling, halo: int, rows: Tensor, columns: Tensor) -> None:
        self.patch = [min(n, PATCH_SIDE) for n in whole.lr]
        self.window = [min(n, window_side(halo)) for n in whole.lr]
        coords = whole.points(rows, columns)[0]
        places = [(coords[:, axis] + 1) * (n / 2) for axis, n in enumerate(whole.lr)]
        firsts = [(place - 0.5).floor().long() - 1 for place in places]
        self.patches = [first.clamp(0, n - p) for first, n, p in zip(firsts, whole.lr, self.patch, strict=True)]
        self.windows = [
            (first - halo).clamp(0, n - w) for first, n, w in zip(self.patches, whole.lr, self.window, strict=True)
        ]
        self.coords = torch.stack(
            [(y - first) * (2 / side) - 1 for y, first, side in zip(places, self.patches, self.patch, strict=True)], -1
        )

    def __len__(self) -> int:
        return len(self.coords)

    def slices(self, index: int) -> tuple[slice, slice]:
        """Rows and columns of the picture that the window of a point covers."""
        y, x = (slice(int(w[index]), int(w[index]) + side) for w, side in zip(self.windows, self.window, strict=True))
        return y, x

    def batch(self, model: Model, memory: int) -> int:
        """Windows that are encoded at once within `memory` bytes."""
        per_window = self.window[0] * self.window[1] * live_channels(model.encoder) * BYTES_PER_VALUE
        return max(1, memory // per_window)

    def lift(self, model: Model, images: Tensor, first: int, cell: Tensor) -> Tensor:
        """images (B, 3, rows, columns) of the windows from the `first` → z_0 (B, d_z)."""
        features: Tensor = model.encoder(images.contiguous(memory_format=torch.channels_last))
        cut: list[Tensor] = []
        for index, each in enumerate(features, first):
            y, x = (int(p[index] - w[index]) for p, w in zip(self.patches, self.windows, strict=True))
            cut.append(each[:, y : y + self.patch[0], x : x + self.patch[1]])
        coords = self.coords[first : first + len(cut)].unsqueeze(1).to(images.device)
        return model.lift_points(torch.stack(cut), coords, cell.expand(len(cut), 2))[:, 0]
