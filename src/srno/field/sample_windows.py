"""The kernel integral estimated from small sample windows that are spread evenly over a picture.

There are few windows at first and more later. Each number of windows is a version of the integral.
"""

import threading
from collections.abc import Callable

import torch
from torch import Tensor

from srno.field.block_grid import Piece
from srno.field.quadrature import low_discrepancy
from srno.operator.encoder import channels, live_channels
from srno.operator.model import Model
from srno.operator.sampling import Sampling

QUADRATURE_POINTS = 16384
"""Points of an integral, about as many as in training."""
SAMPLE_SIDE = 8
"""Picture pixels along a side of a sample window."""
SAMPLE_MARGIN = 4
"""Pixels around a sample window that its features are computed from; more does not change the integral measurably."""
SAMPLE_BATCH = 64
"""Windows that are encoded at once."""
SAMPLE_COUNTS = (64, 1024)
"""Sample windows of each version of the integral (docs/serve.md has their accuracy)."""


class SampleWindows:
    """The windows of a picture of `size` whose pixels (1, 3, rows, columns) `image` gives. Threads may share it."""

    def __init__(self, model: Model, size: tuple[int, int], image: Callable[[Piece], Tensor]) -> None:
        self.model, self.size, self.image = model, size, image
        self._lock = threading.Lock()
        self._encoded: list[Tensor] = []
        # features (SAMPLE_BATCH, rows, columns, C) in the order of the sequence

    @property
    def version(self) -> int:
        """The newest version whose windows are encoded, from 1; 0 if there is none yet."""
        known = SAMPLE_BATCH * len(self._encoded)
        return sum(count <= known for count in SAMPLE_COUNTS)

    @property
    def bytes(self) -> int:
        """Bytes of all windows."""
        return 4 * SAMPLE_COUNTS[-1] * (SAMPLE_SIDE + 2) ** 2 * channels(self.model.encoder)

    @property
    def working_bytes(self) -> int:
        """Bytes that encoding the next windows takes."""
        return 4 * live_channels(self.model.encoder) * SAMPLE_BATCH * (SAMPLE_SIDE + 2 * SAMPLE_MARGIN) ** 2

    def refine(self) -> None:
        """Encode the next windows, unless the last version is known."""
        with self._lock:
            if self.version < len(SAMPLE_COUNTS):
                self._encoded.append(self._encode(len(self._encoded) * SAMPLE_BATCH))

    def features(self, version: int) -> Tensor:
        """Features (windows, rows, columns, C) of a version."""
        while self.version < version:
            self.refine()
        return torch.cat(self._encoded[: SAMPLE_COUNTS[version - 1] // SAMPLE_BATCH])

    def lift(self, whole: Sampling, version: int) -> Tensor:
        """z_0 (n, d_z) at points of the windows."""
        features, count = self.features(version).permute(0, 3, 1, 2), SAMPLE_COUNTS[version - 1]
        coords = self._points(whole, count).to(features.device)
        cell = whole.cell(clip=True, device=features.device).expand(count, 2)
        return self.model.lift_points(features, coords, cell).flatten(0, 1)

    def _corners(self, first: int, count: int) -> list[list[int]]:
        """Top and left of sample windows, from the `first` of the sequence."""
        starts = [n - min(SAMPLE_SIDE, n) + 1 for n in self.size]
        found = low_discrepancy(first + count, (starts[0], starts[1]), torch.device("cpu"))
        return [axis[first:].tolist() for axis in found]

    @torch.no_grad()
    def _encode(self, first: int) -> Tensor:
        """Features (SAMPLE_BATCH, rows, columns, C) of the next windows and one pixel around them."""
        outer = [min(n, SAMPLE_SIDE + 2 * SAMPLE_MARGIN) for n in self.size]
        inner = self._kept
        windows: list[Tensor] = []
        places: list[tuple[slice, slice]] = []
        for corner in zip(*self._corners(first, SAMPLE_BATCH), strict=True):
            start = [_inside(c - SAMPLE_MARGIN, o, n) for c, o, n in zip(corner, outer, self.size, strict=True)]
            kept = [_inside(c - 1, k, n) for c, k, n in zip(corner, inner, self.size, strict=True)]
            windows.append(self.image((start[0], start[1], start[0] + outer[0], start[1] + outer[1])))
            y, x = (slice(k - s, k - s + i) for k, s, i in zip(kept, start, inner, strict=True))
            places.append((y, x))
        images = torch.cat(windows).to(next(self.model.parameters()).dtype)
        features: Tensor = self.model.encoder(images.contiguous(memory_format=torch.channels_last))
        return torch.stack([one[:, y, x].permute(1, 2, 0) for one, (y, x) in zip(features, places, strict=True)])

    @property
    def _kept(self) -> list[int]:
        """Rows and columns of the features that are kept of a sample window: one pixel more on each side."""
        return [min(n, SAMPLE_SIDE + 2) for n in self.size]

    def _points(self, whole: Sampling, count: int) -> Tensor:
        """Coordinates (count, n, 2) of output pixels in each of the first windows, in [-1, 1] of what is kept of it."""
        corners, per_window = self._corners(0, count), QUADRATURE_POINTS // count
        scale = [size / n for size, n in zip(whole.size, whole.lr, strict=True)]
        inside = [max(1, round(min(SAMPLE_SIDE, n) * s)) for n, s in zip(whole.lr, scale, strict=True)]
        offsets = low_discrepancy(count * per_window, (inside[0], inside[1]), torch.device("cpu"))
        axes: list[Tensor] = []
        for axis in (0, 1):
            n, kept = whole.lr[axis], self._kept[axis]
            corner = torch.tensor(corners[axis], dtype=torch.float64).unsqueeze(-1)
            pixel = (corner * scale[axis]).floor() + offsets[axis].reshape(count, per_window)
            place = (pixel.clamp(max=whole.size[axis] - 1) + 0.5) / scale[axis]
            start = (corner - 1).clamp(0, n - kept)
            axes.append((place - start) * (2 / kept) - 1)
        return torch.stack(axes, dim=-1)


def _inside(start: int, length: int, n: int) -> int:
    """The start of an interval of `length`, moved so that it lies in 0 … n."""
    return min(max(0, start), n - length)
