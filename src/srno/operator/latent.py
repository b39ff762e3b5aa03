"""z on a grid of points, computed in chunks, with the lifting's products at the resolution of the input picture.

The lifting is linear, so each neighbour's features are projected once per picture pixel and then gathered; and Ω is a
product, so terms that depend only on the row or only on the column are computed once for each.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from srno.operator.products import affine, affine_gelu
from srno.operator.projection import GridSkip, Projection
from srno.operator.sampling import Chunk, GridDecoder


@dataclass(frozen=True)
class AxisWeights:
    """One axis of a lifting at n pixels: S picture pixels for each, and a summand that depends only on this axis."""

    index: Tensor
    """(n, S) pixels of the picture."""
    share: Tensor
    """(n, S) their weights; they sum to one."""
    summand: Tensor
    """(n, d_z)"""


@dataclass(frozen=True)
class Latent:
    """z_0 of a picture under one sampling."""

    features: Tensor
    """(h, w, C)"""
    weight: Tensor
    """(S·S·d_z, C): the projections of the S·S neighbours, rows of the stencil first"""
    y: AxisWeights
    x: AxisWeights

    def chunks(self, points: int, strip: int, band: range | None = None) -> Iterator[tuple[Chunk, Tensor]]:
        """Yield all output pixels, or those of a band of rows, from top to bottom, each chunk with z_0 (points, d_z).

        At most `strip` rows of the picture are projected at once. The caller may overwrite z_0. The next chunk reuses
        its memory: allocating it for each chunk costs more than the arithmetic on it. Sums of neighbours are computed
        in fp32, which a CPU adds faster than bf16; only the products have the precision of the weights.
        """
        width = self.x.index.shape[0]
        rows = min(max(1, points // width), self.y.index.shape[0])
        columns = min(points, width)
        like = self.weight.new_empty(0, dtype=self.wide)
        picked = [like.new_empty(rows, self.features.shape[1], *self.stencil) for _ in range(2)]
        latent = [like.new_empty(rows * columns, self.stencil[-1]) for _ in range(2)]
        narrow = self.weight.new_empty(rows * columns, self.stencil[-1]) if self.wide != self.weight.dtype else None
        for top, bottom in self._runs(band or range(len(self.y.index)), strip):
            for chunk, combined in self._combined(top, bottom, rows, columns, picked):
                z = self._combine_columns(combined, chunk, latent)
                yield chunk, z if narrow is None else narrow[: chunk.points].copy_(z)

    @property
    def stencil(self) -> tuple[int, int]:
        """Columns of the stencil, and d_z."""
        return self.x.index.shape[1], self.x.summand.shape[1]

    @property
    def wide(self) -> torch.dtype:
        """The precision of sums: that of the weights, at least fp32."""
        return torch.promote_types(self.weight.dtype, torch.float32)

    def _runs(self, band: range, strip: int) -> Iterator[tuple[int, int]]:
        """Runs of output rows that need at most `strip` rows of the picture (or those of a single output row)."""
        lowest, highest = self.y.index.amin(1).tolist(), self.y.index.amax(1).tolist()
        top = band.start
        for row in range(band.start + 1, band.stop + 1):
            if row == band.stop or highest[row] - lowest[top] >= strip:
                yield top, row
                top = row

    def _combined(
        self, top: int, bottom: int, rows: int, columns: int, out: list[Tensor]
    ) -> Iterator[tuple[Chunk, Tensor]]:
        """The chunks of a run of output rows, with the sums over the stencil's rows; its projection ends with it."""
        first, last = int(self.y.index[top:bottom].min()), int(self.y.index[top:bottom].max()) + 1
        projected, width = self._project(first, last), self.x.index.shape[0]
        for start in range(top, bottom, rows):
            stop = min(start + rows, bottom)
            combined = self._combine_rows(projected, start, stop, first, out)
            for left in range(0, width, columns):
                yield Chunk(start, stop, left, min(left + columns, width)), combined

    def _project(self, first: int, last: int) -> Tensor:
        """Picture rows → (rows, w, S, S, d_z), the stencil's rows before its columns."""
        stencil = self.y.index.shape[1]
        projected = affine(self.features[first:last].flatten(0, 1), self.weight).to(self.wide)
        return projected.reshape(last - first, self.features.shape[1], stencil, stencil, -1)

    def _combine_rows(self, projected: Tensor, start: int, stop: int, first: int, out: list[Tensor]) -> Tensor:
        """Sum over the stencil's rows at the columns of the picture → (output rows, w·S, d_z)."""
        index = self.y.index[start:stop] - first
        share = self.y.share[start:stop].reshape(stop - start, -1, 1, 1, 1)
        combined, other = (buffer[: stop - start] for buffer in out)
        torch.index_select(projected[:, :, 0], 0, index[:, 0], out=combined)
        combined.mul_(share[:, 0])
        for i in range(1, index.shape[1]):
            torch.index_select(projected[:, :, i], 0, index[:, i], out=other)
            combined.addcmul_(other, share[:, i])
        # the columns' weights sum to one, so this summand is added exactly once to every output pixel of the row
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


class LatentGrid(GridDecoder):
    """SRNO's decoder on a grid: z_0 from the lifting, RGB from the projection and the bilinear skip."""

    def __init__(self, latent: Latent, projection: Projection, skip: GridSkip) -> None:
        self.latent, self.skip = latent, skip
        self.hidden = projection.hidden
        self.last, self.last_bias = projection.rgb.weight, projection.rgb.bias.unsqueeze(1)

    def chunks(self, points: int, strip: int, band: range | None = None) -> Iterator[tuple[Chunk, Tensor]]:
        return self.latent.chunks(points, strip, band)

    def rgb(self, chunk: Chunk, z: Tensor) -> Tensor:
        hidden = affine_gelu(z, self.hidden.weight, self.hidden.bias)
        # Three long rows: a product with three columns takes four times as long.
        planes = torch.addmm(self.last_bias, self.last, hidden.T)
        return planes.reshape(3, chunk.bottom - chunk.top, -1) + self.skip(chunk)
