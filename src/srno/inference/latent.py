"""z_0 on a grid of points, chunk by chunk, with the lifting's products done at the picture's own size.

The lifting is linear, so each neighbour's features are projected once per picture pixel and then gathered; and Ω is a
product, so what depends on the row alone or on the column alone is computed once for each.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from srno.inference.plan import Plan
from srno.inference.sampling import Sampling
from srno.operator.grid import SHIFT, nearest_pixel, neighbours, offset
from srno.operator.lifting import FREQUENCIES, InterpolationFreeLifting, NearestLifting, position_embedding


@dataclass(frozen=True)
class AxisWeights:
    """One axis of a lifting at n pixels: S picture pixels for each, and a summand that depends on this axis alone."""

    index: Tensor
    """(n, S) pixels of the picture."""
    share: Tensor
    """(n, S) their weights; they sum to one."""
    summand: Tensor
    """(n, d_z)"""


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
class Latent:
    """z_0 of a picture under one sampling."""

    features: Tensor
    """(h, w, C)"""
    weight: Tensor
    """(S·S·d_z, C): the projections of the S·S neighbours, rows of the stencil first"""
    y: AxisWeights
    x: AxisWeights

    def chunks(self, plan: Plan) -> Iterator[tuple[Chunk, Tensor]]:
        """All output pixels from top to bottom, each chunk with its z_0 (points, d_z).

        The caller may overwrite z_0, and the next chunk does: memory that is asked for anew each time costs more than
        the arithmetic on it.
        """
        width = self.x.index.shape[0]
        rows = min(max(1, plan.chunk // width), self.y.index.shape[0])
        columns = min(plan.chunk, width)
        picked = [self.weight.new_empty(rows, self.features.shape[1], *self.stencil) for _ in range(2)]
        latent = [self.weight.new_empty(rows * columns, self.stencil[-1]) for _ in range(2)]
        for top, bottom in self._bands(plan):
            first = int(self.y.index[top:bottom].min())
            last = int(self.y.index[top:bottom].max()) + 1
            projected = self._project(first, last)
            for start in range(top, bottom, rows):
                stop = min(start + rows, bottom)
                combined = self._combine_rows(projected, start, stop, first, picked)
                for left in range(0, width, columns):
                    chunk = Chunk(start, stop, left, min(left + columns, width))
                    yield chunk, self._combine_columns(combined, chunk, latent)

    @property
    def stencil(self) -> tuple[int, int]:
        """Columns of the stencil, and d_z."""
        return self.x.index.shape[1], self.x.summand.shape[1]

    def _bands(self, plan: Plan) -> Iterator[tuple[int, int]]:
        """Runs of output rows that need at most plan.strip rows of the picture (or those of a single output row)."""
        lowest, highest = self.y.index.amin(1).tolist(), self.y.index.amax(1).tolist()
        top = 0
        for row in range(1, len(lowest) + 1):
            if row == len(lowest) or highest[row] - lowest[top] >= plan.strip:
                yield top, row
                top = row

    def _project(self, first: int, last: int) -> Tensor:
        """Picture rows → (rows, w, S, S, d_z), the stencil's rows before its columns."""
        stencil = self.y.index.shape[1]
        projected = self.features[first:last] @ self.weight.T
        return projected.reshape(last - first, self.features.shape[1], stencil, stencil, -1)

    def _combine_rows(self, projected: Tensor, start: int, stop: int, first: int, out: list[Tensor]) -> Tensor:
        """Sum over the stencil's rows at the picture's own columns → (output rows, w·S, d_z)."""
        index = self.y.index[start:stop] - first
        share = self.y.share[start:stop].reshape(stop - start, -1, 1, 1, 1)
        combined, other = (buffer[: stop - start] for buffer in out)
        torch.index_select(projected[:, :, 0], 0, index[:, 0], out=combined)
        combined.mul_(share[:, 0])
        for i in range(1, index.shape[1]):
            torch.index_select(projected[:, :, i], 0, index[:, i], out=other)
            combined.addcmul_(other, share[:, i])
        # the columns' weights sum to one, so what is added here arrives once at every output pixel of the row
        combined.add_(self.y.summand[start:stop].reshape(stop - start, 1, 1, -1))
        return combined.flatten(1, 2)

    def _combine_columns(self, combined: Tensor, chunk: Chunk, out: list[Tensor]) -> Tensor:
        """Sum over the stencil's columns → (points, d_z)."""
        columns = slice(chunk.left, chunk.right)
        stencil, d_z = self.stencil
        place = self.x.index[columns] * stencil + torch.arange(stencil, device=combined.device)
        share = self.x.share[columns].unsqueeze(-1)
        shape = (chunk.bottom - chunk.top, chunk.right - chunk.left, d_z)
        z, other = (buffer[: chunk.points].reshape(shape) for buffer in out)
        torch.index_select(combined, 1, place[:, 0], out=z)
        z.mul_(share[:, 0])
        for j in range(1, stencil):
            torch.index_select(combined, 1, place[:, j], out=other)
            z.addcmul_(other, share[:, j])
        return z.add_(self.x.summand[columns]).flatten(0, 1)


def make_latent(
    lifting: InterpolationFreeLifting | NearestLifting, features: Tensor, sampling: Sampling, cell: Tensor
) -> Latent:
    """z_0 of `features` (h, w, C) under a sampling; cell is (1, 2)."""
    weight, bias = lifting.linear.weight, lifting.linear.bias
    constant = cell[0].to(weight.dtype) @ weight[:, -2:].T + bias
    channels = features.shape[-1]
    y, x = sampling.axis(0, features.device), sampling.axis(1, features.device)
    if isinstance(lifting, InterpolationFreeLifting):
        local, projections = weight[:, :8].reshape(-1, 2, 2, 2), weight[:, 8:-2].reshape(-1, 2, 2, channels)
        return Latent(
            features,
            projections.permute(1, 2, 0, 3).reshape(-1, channels).contiguous(),
            _between(y, sampling.lr[0], local[..., 0].sum(2), constant),
            _between(x, sampling.lr[1], local[..., 1].sum(1), torch.zeros_like(constant)),
        )
    embedding = weight[:, channels:-2].reshape(-1, 2 * FREQUENCIES, 2)
    return Latent(
        features,
        weight[:, :channels].contiguous(),
        _nearest(y, sampling.lr[0], embedding[..., 0], constant),
        _nearest(x, sampling.lr[1], embedding[..., 1], torch.zeros_like(constant)),
    )


def _between(coords: Tensor, n: int, weight: Tensor, constant: Tensor) -> AxisWeights:
    """Two neighbours on each axis; weight (d_z, 2) is that of their offsets."""
    found = neighbours(coords, n)
    summand = found.delta.to(weight.dtype) @ weight.T + constant
    return AxisWeights(found.index, found.share.to(weight.dtype), summand)


def _nearest(coords: Tensor, n: int, weight: Tensor, constant: Tensor) -> AxisWeights:
    """One neighbour on each axis; weight (d_z, 2·FREQUENCIES) is that of its position embedding."""
    index = nearest_pixel(coords + SHIFT, n)
    embedded = position_embedding(offset(coords, index, n).unsqueeze(-1)).to(weight.dtype)
    return AxisWeights(index.unsqueeze(-1), torch.ones_like(embedded[:, :1]), embedded @ weight.T + constant)
