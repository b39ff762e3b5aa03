"""A picture as a function of which only the parts in use are encoded, so that its size does not matter.

The kernel integral is estimated from sample windows: a render names the version of the integral that it uses, so that
its pixels do not depend on what has been encoded since.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import cached_property, partial
from typing import TypeAlias

import torch
from torch import Tensor

from srno.field.block_features import BlockCache, BlockFeatures
from srno.field.block_grid import BlockGrid, Piece, common
from srno.field.engine import Integrals, integrate_points
from srno.field.field import CACHED_SCALES, Field, Region
from srno.field.quadrature import golden_lattice
from srno.field.sample_windows import QUADRATURE_POINTS, SAMPLE_COUNTS, SampleWindows
from srno.once import Claims, Once
from srno.operator.encoder import radius
from srno.operator.model import Model
from srno.operator.sampling import Sampling, whole_picture, window
from srno.progress import Progress, between, part_of

Pixels: TypeAlias = Callable[[slice, slice], Tensor]
"""Rows and columns of the picture → its pixels (3, rows, columns) in [-1, 1]."""

BLOCK_SIDE = 16
"""Picture pixels; what is encoded around a window, because blocks are whole, is half of it on average."""
PIECE_SIDE = 224
"""Picture pixels; a window of 320×200 pixels, 1280×800 at ×4, is encoded in two pieces, one for each of two threads."""
LARGEST_WHOLE_PIXELS = 1 << 16
"""Pictures up to this size have one version, whose points lie anywhere in the picture; its blocks are few."""
RENDER_MEMORY = 64 << 20
"""Bytes that one render may use besides the features and the output."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BlockField:
    """A picture as a function, encoded block by block where it is evaluated. Threads may share it.

    Sizes are (height, width), regions (top, left, bottom, right). Values are RGB in [-1, 1], not clamped. The model
    should be in evaluation mode.
    """

    model: Model
    size: tuple[int, int]
    """(height, width) of the picture."""
    pixels: Pixels
    cache: BlockCache
    """Keeps the features of blocks under (*key, place); what it drops is encoded again."""
    key: tuple[Hashable, ...] = ()
    side: int = BLOCK_SIDE
    """Picture pixels along a side of a block."""
    longest: int = 0
    """Picture pixels along the longest side of a piece; 0 chooses it from the encoder's radius."""
    _integrals: Once[tuple[object, ...], Integrals] = attribute(default_factory=lambda: Once(CACHED_SCALES), init=False)
    _claims: Claims = attribute(default_factory=Claims, init=False)

    def __repr__(self) -> str:
        height, width = self.size
        return f"BlockField({type(self.model).__name__}, {height}×{width} pixels in blocks of {self.side})"

    @cached_property
    def grid(self) -> BlockGrid:
        """The blocks of the picture."""
        return BlockGrid(self.size, self.side, self.longest or max(PIECE_SIDE, 2 * radius(self.model.encoder)))

    @cached_property
    def features(self) -> BlockFeatures:
        """The features of the picture."""
        image = partial(_image, self.model, self.pixels)
        return BlockFeatures(self.model.encoder, image, self.grid, self.cache, self.key, self._claims)

    @cached_property
    def samples(self) -> SampleWindows | None:
        """What the integral is estimated from; None without an integral, and in small pictures."""
        if not self.model.kernel_layers() or self.size[0] * self.size[1] <= LARGEST_WHOLE_PIXELS:
            return None
        return SampleWindows(self.model, self.size, partial(_image, self.model, self.pixels))

    @property
    def bytes(self) -> int:
        """Bytes of the sample windows and of the cached integrals, at most; blocks are counted by the cache."""
        layers = sum((2 + 1 / layer.heads) * layer.W1.weight.numel() for layer in self.model.kernel_layers())
        return round(4 * CACHED_SCALES * layers) + (0 if self.samples is None else self.samples.bytes)

    # The integral

    @property
    def versions(self) -> int:
        """The number of versions; the last one is the most accurate."""
        return 1 if self.samples is None else len(SAMPLE_COUNTS)

    @property
    def version(self) -> int:
        """The newest version whose sample windows are encoded, from 1; 0 if there is none yet."""
        return 1 if self.samples is None else self.samples.version

    def refine(self) -> bool:
        """Encode the next sample windows; return whether more are left for the last version."""
        if self.samples is not None:
            self.samples.refine()
        return self.version < self.versions

    def integrate(self, size: tuple[int, int], version: int | None = None) -> Integrals:
        """Return the layers with the integrals of the whole picture at `size`; without a version, of the last one."""
        if not self.model.kernel_layers():
            return ()
        version = self.versions if version is None else version
        whole = whole_picture(self.size, size)
        return self._integrals((size, version), lambda: self._integrate(whole, version))

    @torch.no_grad()
    def _integrate(self, whole: Sampling, version: int) -> Integrals:
        if self.samples is None:
            return self._field(self.grid.all, None).integrate(whole.size, integral=QUADRATURE_POINTS)
        return integrate_points(
            self.model.kernel_layers(), self.samples.lift(whole, version), chunk=QUADRATURE_POINTS // 4
        )

    @torch.no_grad()
    def latent(self, size: tuple[int, int]) -> Tensor:
        """z_0 (n, d_z) at points that are spread over the whole picture at `size`, those of the first version."""
        whole = whole_picture(self.size, size)
        if self.samples is not None:
            return self.samples.lift(whole, 1)
        features = self._field(self.grid.all, None).features
        rows, columns = golden_lattice(min(QUADRATURE_POINTS, size[0] * size[1]), size, features.device)
        cell = whole.cell(clip=True, device=features.device)
        return self.model.lift_points(features.permute(2, 0, 1).unsqueeze(0), whole.points(rows, columns), cell)[0]

    def some_features(self) -> Tensor:
        """Features (n, C) of pixels that are spread over the whole picture, those of the first version."""
        if self.samples is None:
            return self._field(self.grid.all, None).features.flatten(0, 1)
        return self.samples.features(1).flatten(0, 2)

    # Blocks

    def missing(self, region: Region, around: Region | None = None) -> list[Piece]:
        """Pieces that a render of `region` needs and that are not cached, the nearest to its centre first.

        They are cut from the region, or from a larger one `around` it, so that its parts share them. The part in the
        centre of `around` has a small piece of its own if that is ready much earlier.
        """
        if self.samples is None and self.model.kernel_layers():
            wanted = shared = self.grid.all
        else:
            wanted = self._window(region)
            shared = wanted if around is None else self._window(_union(region, around))
        lacking = self.features.missing
        pieces = [piece for piece in self.grid.cut(shared) if lacking(common(piece, wanted))]
        if around is not None and _contains_centre(region, around) and (places := lacking(wanted)):
            own, cost = self.grid.hull(places), self.features.cost
            if 2 * cost(own) < sum(map(cost, pieces)):
                return [own]
        y, x = region[0] + region[2], region[1] + region[3]
        return sorted(pieces, key=lambda piece: (piece[0] + piece[2] - y) ** 2 + (piece[1] + piece[3] - x) ** 2)

    # Evaluation

    @torch.no_grad()
    def render(
        self,
        size: tuple[int, int],
        *,
        region: Region,
        version: int | None = None,
        progress: Progress | None = None,
    ) -> Tensor:
        """Render a region at `size` = (height, width) pixels with a version of the integral: (3, height, width).

        Progress is reported after every block and in between, so that a cancelled render stops within a block.
        """
        sampling = window(self.size, size, region)
        while self.version < (self.versions if version is None else version):
            self.refine()
            if progress is not None:
                progress(0.0)
        integrals = self.integrate(sampling.whole.size, version)
        pieces = list(_divide(sampling, self.grid.longest))
        out = torch.empty(3, *size)
        for i, (rows, columns, part) in enumerate(pieces):
            report = part_of(progress, i, len(pieces))
            field, local = self.part(part, report)
            out[:, rows, columns] = field.render(
                (rows.stop - rows.start, columns.stop - columns.start),
                region=local,
                integrals=integrals,
                progress=report,
            )
        return out

    def part(self, region: Region, progress: Progress | None = None) -> tuple[Field, Region]:
        """A field of the pixels that `region` depends on, and the region in it; it has no integrals of its own."""
        window = self._window(region)
        top, left, bottom, right = region
        return self._field(window, progress), (top - window[0], left - window[1], bottom - window[0], right - window[1])

    def _window(self, region: Region) -> Piece:
        """The pixels of the picture that a render of `region` depends on."""
        rows, columns = window(self.size, (1, 1), region).cut_out()[1]
        return rows.start, columns.start, rows.stop, columns.stop

    def _field(self, part: Piece, progress: Progress | None) -> Field:
        """A field of a part of the picture, from its blocks."""
        stoppable = between(progress, 0.0, 0.0)  # encoding can be stopped, but is not counted
        features = self.features.gather(part, stoppable)
        return Field(self.model, _image(self.model, self.pixels, part), features, RENDER_MEMORY)


def _image(model: Model, pixels: Pixels, part: Piece) -> Tensor:
    """(1, 3, rows, columns) on the model's device, never below fp32."""
    weight = next(model.parameters())
    dtype = torch.promote_types(weight.dtype, torch.float32)
    top, left, bottom, right = part
    return pixels(slice(top, bottom), slice(left, right)).unsqueeze(0).to(device=weight.device, dtype=dtype)


def _union(one: Region, other: Region) -> Region:
    """The smallest region with both."""
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def _contains_centre(region: Region, around: Region) -> bool:
    """Whether the centre of `around` lies in the region."""
    y, x = (around[0] + around[2]) / 2, (around[1] + around[3]) / 2
    return region[0] <= y < region[2] and region[1] <= x < region[3]


def _divide(sampling: Sampling, longest: int) -> Iterator[tuple[slice, slice, Region]]:
    """Divide an output so that each part covers at most `longest` picture pixels a side: rows, columns and region."""
    rows, columns = (
        _cuts(n, start, stop, longest)
        for n, start, stop in zip(sampling.size, sampling.start, sampling.stop, strict=True)
    )
    for y, (top, bottom) in rows:
        for x, (left, right) in columns:
            yield y, x, (top, left, bottom, right)


def _cuts(n: int, start: float, stop: float, side: int) -> list[tuple[slice, tuple[float, float]]]:
    """Divide n output pixels over start … stop into equal runs of at most `side` picture pixels."""
    count = min(n, max(1, -int(-(stop - start) // side)))
    edges = [n * i // count for i in range(count + 1)]
    step = (stop - start) / n
    ends = [start + edge * step for edge in edges[:-1]] + [stop]
    return [(slice(edges[i], edges[i + 1]), (ends[i], ends[i + 1])) for i in range(count)]
