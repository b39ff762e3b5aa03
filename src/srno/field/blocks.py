"""A picture as a function of which only the parts in use are encoded, so that its size does not matter.

The picture is divided into small square blocks, which are cached. Those that a window lacks are encoded together, in
pieces of at most a few hundred pixels a side: a piece is encoded from its pixels and the encoder's radius around them,
so its features are those of the whole picture, and neighbouring blocks share the pixels around them.

The kernel integral is estimated from small sample windows that are spread evenly over the picture: few at first, more
later. Each number of windows is a version of the integral, and a render names the version that it uses, so that its
pixels do not depend on what has been encoded since.
"""

import threading
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field as attribute
from itertools import pairwise
from typing import Protocol, TypeAlias, TypeVar

import torch
from torch import Tensor

from srno.field.encode import encode
from srno.field.engine import Integrals, integrate_points
from srno.field.field import CACHED_SCALES, Field, Region
from srno.field.quadrature import golden_lattice, low_discrepancy
from srno.once import Once
from srno.operator.encoder import channels, radius
from srno.operator.model import Model
from srno.operator.sampling import Sampling, whole_picture, window
from srno.progress import Progress, between, part_of

Pixels: TypeAlias = Callable[[slice, slice], Tensor]
"""Rows and columns of the picture → its pixels (3, rows, columns) in [-1, 1]."""
Place: TypeAlias = tuple[int, int]
"""Row and column of a block."""
Piece: TypeAlias = tuple[int, int, int, int]
"""(top, left, bottom, right) in whole pixels of the picture."""
Value = TypeVar("Value")

BLOCK_SIDE = 16
"""Picture pixels; what is encoded around a window, because blocks are whole, is half of it on average."""
PIECE_SIDE = 224
"""Picture pixels; a window of 320×200 pixels, 1280×800 at ×4, is encoded in two pieces, one for each of two threads."""
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
LARGEST_WHOLE_PIXELS = 1 << 16
"""Pictures up to this size have one version, whose points lie anywhere in the picture; its blocks are few."""
RENDER_MEMORY = 64 << 20
"""Bytes that one render may use besides the features and the output."""


class BlockCache(Protocol):
    """Keeps blocks for a while: a later `get` returns the block or None. Threads share it."""

    def get(self, key: Hashable, kind: type[Value], /) -> Value | None:
        """Return the value of a key, or None."""
        ...

    def offer(self, key: Hashable, value: object, size: int, /) -> None:
        """Store a value of `size` bytes if there is room for it."""
        ...


class Claims:
    """A lock for each key in use: one thread computes a value, and others that need it wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claimed: dict[Hashable, tuple[threading.Lock, int]] = {}

    @contextmanager
    def __call__(self, key: Hashable) -> Generator[None]:
        """Hold the lock of a key."""
        with self._lock:
            lock, users = self._claimed.get(key, (threading.Lock(), 0))
            self._claimed[key] = lock, users + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._claimed.pop(key)
                if users > 1:
                    self._claimed[key] = lock, users - 1

    def __contains__(self, key: Hashable) -> bool:
        return key in self._claimed


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
    _samples: list[Tensor] = attribute(default_factory=list[Tensor], init=False)
    """Features (SAMPLE_BATCH, rows, columns, C) of the windows so far, in the order of the sequence."""

    def __post_init__(self) -> None:
        if not self.longest:
            object.__setattr__(self, "longest", max(PIECE_SIDE, 2 * radius(self.model.encoder)))

    def __repr__(self) -> str:
        height, width = self.size
        return f"BlockField({type(self.model).__name__}, {height}×{width} pixels in blocks of {self.side})"

    # Versions of the integral

    @property
    def versions(self) -> int:
        """The number of versions; the last one is the most accurate."""
        return len(SAMPLE_COUNTS) if self._is_sampled else 1

    @property
    def version(self) -> int:
        """The newest version whose sample windows are encoded, from 1; 0 if there is none yet."""
        known = SAMPLE_BATCH * len(self._samples)
        return sum(count <= known for count in SAMPLE_COUNTS) if self._is_sampled else 1

    def refine(self) -> bool:
        """Encode the next sample windows; return whether more are left for the last version."""
        with self._claims("samples"):
            if self._is_sampled and len(self._samples) * SAMPLE_BATCH < SAMPLE_COUNTS[-1]:
                self._samples.append(self._encode_windows(len(self._samples) * SAMPLE_BATCH))
        return self.version < self.versions

    def integrate(self, size: tuple[int, int], version: int | None = None) -> Integrals:
        """Return the layers with the integrals of the whole picture at `size`; without a version, of the last one."""
        if not self.model.kernel_layers():
            return ()
        version = self.versions if version is None else version
        whole = whole_picture(self.size, size)
        return self._integrals((size, version), lambda: self._integrate(whole, version))

    @torch.no_grad()
    def latent(self, size: tuple[int, int]) -> Tensor:
        """z_0 (n, d_z) at points that are spread over the whole picture at `size`, those of the first version."""
        whole = whole_picture(self.size, size)
        if self._is_sampled:
            return self._lift_samples(whole, 1)
        features = self._field(self._all, None).features
        rows, columns = golden_lattice(min(QUADRATURE_POINTS, size[0] * size[1]), size, features.device)
        cell = whole.cell(clip=True, device=features.device)
        return self.model.lift_points(features.permute(2, 0, 1).unsqueeze(0), whole.points(rows, columns), cell)[0]

    def some_features(self) -> Tensor:
        """Features (n, C) of pixels that are spread over the whole picture, those of the first version."""
        if not self._is_sampled:
            return self._field(self._all, None).features.flatten(0, 1)
        self._sample(1, None)
        return torch.cat(self._samples[: SAMPLE_COUNTS[0] // SAMPLE_BATCH]).flatten(0, 2)

    # Blocks

    @property
    def bytes(self) -> int:
        """Bytes of the sample windows and of the cached integrals, at most; blocks are counted by the cache."""
        width = channels(self.model.encoder)
        windows = SAMPLE_COUNTS[-1] * (SAMPLE_SIDE + 2) ** 2 * width if self._is_sampled else 0
        layers = sum((2 + 1 / layer.heads) * layer.W1.weight.numel() for layer in self.model.kernel_layers())
        return round(4 * (windows + CACHED_SCALES * layers))

    def missing(self, region: Region, around: Region | None = None) -> list[Piece]:
        """Pieces that a render of `region` needs and that are not cached, the nearest to its centre first.

        They are cut from the region, or from a larger one `around` it, so that its parts share them.
        """
        top, left, bottom, right = region
        hull = region
        if around is not None:
            hull = min(top, around[0]), min(left, around[1]), max(bottom, around[2]), max(right, around[3])
        is_whole = not self._is_sampled and bool(self.model.kernel_layers())
        wanted, hull = (self._all, self._all) if is_whole else (self._window(region), self._window(hull))
        pieces = [piece for piece in self._cut(hull) if self._lacks(_common(piece, wanted))]
        return sorted(
            pieces, key=lambda one: (one[0] + one[2] - top - bottom) ** 2 + (one[1] + one[3] - left - right) ** 2
        )

    def box(self, piece: Piece) -> Piece | None:
        """The part of a piece that has yet to be encoded: the rectangle around its missing blocks; None without one."""
        missing = self._lacks(piece)
        return self._hull(missing) if missing else None

    def encode(self, piece: Piece, progress: Progress | None = None) -> Tensor:
        """Return the features (rows, columns, C) of a piece; compute those that are not cached, in one go."""
        with self._claims((*self.key, piece)):  # another thread may be computing them
            known = {place: self.cache.get((*self.key, place), Tensor) for place in self._places(piece)}
            missing = [place for place, block in known.items() if block is None]
            blocks = {place: block for place, block in known.items() if block is not None}
            if missing:
                box = self._hull(missing)
                fresh = self._encode(box, progress)
                for place in missing:
                    block = blocks[place] = _cut_out(fresh, box, self._block(place)).clone()
                    self.cache.offer((*self.key, place), block, block.numel() * block.element_size())
        like = next(iter(blocks.values()))
        features = like.new_empty(piece[2] - piece[0], piece[3] - piece[1], like.shape[-1])
        for place, block in blocks.items():
            common = _common(self._block(place), piece)
            _cut_out(features, piece, common).copy_(_cut_out(block, self._block(place), common))
        return features

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
        if version is None or version > self.version:
            self._sample(self.versions if version is None else version, progress)
        integrals = self.integrate(sampling.whole.size, version)
        pieces = list(self._pieces(sampling))
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

    # Geometry

    @property
    def _is_sampled(self) -> bool:
        """Whether the integral is estimated from sample windows."""
        return bool(self.model.kernel_layers()) and self.size[0] * self.size[1] > LARGEST_WHOLE_PIXELS

    @property
    def _all(self) -> Piece:
        return 0, 0, *self.size

    def _window(self, region: Region) -> Piece:
        """The pixels of the picture that a render of `region` depends on."""
        rows, columns = window(self.size, (1, 1), region).cut_out()[1]
        return rows.start, columns.start, rows.stop, columns.stop

    def _places(self, piece: Piece) -> Iterator[Place]:
        """The blocks that contain these pixels."""
        top, left, bottom, right = piece
        if top >= bottom or left >= right:
            return
        for row in range(top // self.side, -(-bottom // self.side)):
            for column in range(left // self.side, -(-right // self.side)):
                yield row, column

    def _lacks(self, piece: Piece) -> list[Place]:
        """The blocks of a piece that are not cached."""
        return [place for place in self._places(piece) if self.cache.get((*self.key, place), Tensor) is None]

    def _block(self, place: Place) -> Piece:
        """The pixels of a block."""
        (top, left), (height, width) = (index * self.side for index in place), self.size
        return top, left, min(top + self.side, height), min(left + self.side, width)

    def _hull(self, places: list[Place]) -> Piece:
        """The smallest rectangle with all of these blocks."""
        blocks = [self._block(place) for place in places]
        low, high = ([pick(block[i] for block in blocks) for i in range(4)] for pick in (min, max))
        return low[0], low[1], high[2], high[3]

    def _cut(self, piece: Piece) -> list[Piece]:
        """Divide the blocks that contain these pixels into equal pieces of at most `longest` pixels a side."""
        rows, columns = (self._runs(piece[axis], piece[axis + 2], self.size[axis]) for axis in (0, 1))
        return [(top, left, bottom, right) for top, bottom in rows for left, right in columns]

    def _runs(self, start: int, stop: int, n: int) -> list[tuple[int, int]]:
        """Divide an interval of 0 … n, extended to whole blocks, into equal runs of whole blocks."""
        first, last = start // self.side, -(-stop // self.side)
        count = -(-(last - first) // max(1, self.longest // self.side))
        edges = [first + (last - first) * i // count for i in range(count + 1)]
        return [(low * self.side, min(n, high * self.side)) for low, high in pairwise(edges)]

    def _pieces(self, sampling: Sampling) -> Iterator[tuple[slice, slice, Region]]:
        """Divide an output so that a piece covers about one block: its rows and columns, and its region."""
        rows, columns = (
            _cuts(n, start, stop, self.longest)
            for n, start, stop in zip(sampling.size, sampling.start, sampling.stop, strict=True)
        )
        for y, (top, bottom) in rows:
            for x, (left, right) in columns:
                yield y, x, (top, left, bottom, right)

    # Evaluation

    def part(self, region: Region, progress: Progress | None = None) -> tuple[Field, Region]:
        """A field of the pixels that `region` depends on, and the region in it; it has no integrals of its own."""
        window = self._window(region)
        top, left, bottom, right = region
        return self._field(window, progress), (top - window[0], left - window[1], bottom - window[0], right - window[1])

    def _field(self, part: Piece, progress: Progress | None) -> Field:
        """A field of a part of the picture, from its blocks."""
        # Pieces that no other thread is computing come first: waiting is left to the end.
        pieces = sorted(self._cut(part), key=lambda piece: (*self.key, piece) in self._claims)
        report = between(progress, 0.0, 0.0)  # encoding can be stopped, but is not counted
        features: Tensor | None = None
        for piece in pieces:
            encoded = self.encode(piece, report)
            if report is not None:
                report(0.0)
            if features is None:
                features = encoded.new_empty(part[2] - part[0], part[3] - part[1], encoded.shape[-1])
            common = _common(piece, part)
            _cut_out(features, part, common).copy_(_cut_out(encoded, piece, common))
        assert features is not None
        return Field(self.model, self._image(part), features, RENDER_MEMORY)

    def _image(self, part: Piece) -> Tensor:
        """(1, 3, rows, columns) on the model's device, never below fp32."""
        weight = next(self.model.parameters())
        dtype = torch.promote_types(weight.dtype, torch.float32)
        top, left, bottom, right = part
        return self.pixels(slice(top, bottom), slice(left, right)).unsqueeze(0).to(device=weight.device, dtype=dtype)

    @torch.no_grad()
    def _encode(self, box: Piece, progress: Progress | None) -> Tensor:
        """Features (rows, columns, C), computed from the pixels within the encoder's radius."""
        halo, (height, width) = radius(self.model.encoder), self.size
        top, left, bottom, right = box
        outer = max(0, top - halo), max(0, left - halo), min(height, bottom + halo), min(width, right + halo)
        image = self._image(outer).to(next(self.model.parameters()).dtype)
        features = encode(self.model.encoder, image, (image.shape[-2], image.shape[-1]), progress)
        return _cut_out(features, outer, box)

    # Sample windows

    def _sample(self, version: int, progress: Progress | None) -> None:
        """Encode the sample windows that a version needs."""
        while self.version < version:
            self.refine()
            if progress is not None:
                progress(0.0)

    def _corners(self, first: int, count: int) -> list[list[int]]:
        """Top and left of sample windows, from the `first` of the sequence."""
        starts = [n - min(SAMPLE_SIDE, n) + 1 for n in self.size]
        found = low_discrepancy(first + count, (starts[0], starts[1]), torch.device("cpu"))
        return [axis[first:].tolist() for axis in found]

    @torch.no_grad()
    def _encode_windows(self, first: int) -> Tensor:
        """Features (SAMPLE_BATCH, rows, columns, C) of the next windows and one pixel around them."""
        outer = [min(n, SAMPLE_SIDE + 2 * SAMPLE_MARGIN) for n in self.size]
        inner = self._kept
        windows: list[Tensor] = []
        places: list[tuple[slice, slice]] = []
        for corner in zip(*self._corners(first, SAMPLE_BATCH), strict=True):
            start = [_inside(c - SAMPLE_MARGIN, o, n) for c, o, n in zip(corner, outer, self.size, strict=True)]
            kept = [_inside(c - 1, k, n) for c, k, n in zip(corner, inner, self.size, strict=True)]
            windows.append(self._image((start[0], start[1], start[0] + outer[0], start[1] + outer[1])))
            y, x = (slice(k - s, k - s + i) for k, s, i in zip(kept, start, inner, strict=True))
            places.append((y, x))
        images = torch.cat(windows).to(next(self.model.parameters()).dtype)
        features: Tensor = self.model.encoder(images.contiguous(memory_format=torch.channels_last))
        return torch.stack([one[:, y, x].permute(1, 2, 0) for one, (y, x) in zip(features, places, strict=True)])

    @property
    def _kept(self) -> list[int]:
        """Rows and columns of the features that are kept of a sample window: one pixel more on each side."""
        return [min(n, SAMPLE_SIDE + 2) for n in self.size]

    @torch.no_grad()
    def _integrate(self, whole: Sampling, version: int) -> Integrals:
        if not self._is_sampled:
            return self._field(self._all, None).integrate(whole.size, integral=QUADRATURE_POINTS)
        z = self._lift_samples(whole, version)
        return integrate_points(self.model.kernel_layers(), z, QUADRATURE_POINTS // 4)

    def _lift_samples(self, whole: Sampling, version: int) -> Tensor:
        """z_0 (n, d_z) at points of the sample windows."""
        self._sample(version, None)
        count = SAMPLE_COUNTS[version - 1]
        features = torch.cat(self._samples[: count // SAMPLE_BATCH]).permute(0, 3, 1, 2)
        coords = self._sample_points(whole, count).to(features.device)
        cell = whole.cell(clip=True, device=features.device).expand(count, 2)
        return self.model.lift_points(features, coords, cell).flatten(0, 1)

    def _sample_points(self, whole: Sampling, count: int) -> Tensor:
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


def _common(one: Piece, other: Piece) -> Piece:
    """The pixels that two pieces share."""
    return max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])


def _cut_out(values: Tensor, piece: Piece, part: Piece) -> Tensor:
    """A part of the values (rows, columns, ...) of a piece."""
    (top, left, _, _), rows, columns = piece, part[2] - part[0], part[3] - part[1]
    return values.narrow(0, part[0] - top, rows).narrow(1, part[1] - left, columns)


def _cuts(n: int, start: float, stop: float, side: int) -> list[tuple[slice, tuple[float, float]]]:
    """Divide n output pixels over start … stop into equal runs of at most `side` picture pixels."""
    count = min(n, max(1, -int(-(stop - start) // side)))
    edges = [n * i // count for i in range(count + 1)]
    step = (stop - start) / n
    ends = [start + edge * step for edge in edges[:-1]] + [stop]
    return [(slice(edges[i], edges[i + 1]), (ends[i], ends[i + 1])) for i in range(count)]
