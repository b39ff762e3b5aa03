"""The work on one tile: encode it, sum its part of an integral, render it. The same on every machine."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from srno.field.encode import encode
from srno.field.engine import Integrals, integrate_points, layer_map
from srno.field.field import Field
from srno.field.plan import encoder_tile, plan_render
from srno.gigapixel.container import Container, Stored
from srno.gigapixel.tile_plan import TilePlan, WorkTile
from srno.imaging.alpha import CELL, CoarseColours
from srno.imaging.picture import Floats, Picture, Samples, from_float, to_float
from srno.imaging.windows import WindowFile
from srno.imaging.write import adapt
from srno.operator.encoder import channels
from srno.operator.fused import Moments
from srno.operator.model import Model

Subject: TypeAlias = Literal["colour", "alpha"]
"""What is enlarged: each has features and integrals of its own."""
BAND_PIXELS = 1 << 20
"""Output pixels that are converted to samples at once."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """Everything but the model that determines the result: plain data, for workers too."""

    plan: TilePlan
    source: WindowFile
    container: Container
    bits: int
    metadata: bool
    memory: int
    """Bytes for the arithmetic on one tile."""
    folder: Path
    """Where scratch files and finished tiles are."""
    constant_alpha: int | None = None
    """The only value of alpha, if there is only one."""
    coarse: CoarseColours | None = None
    """Colours under transparency; None if nothing is hidden."""

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """What needs the model."""
        return ("colour",) if self.source.like.alpha is None or self.constant_alpha is not None else ("colour", "alpha")


class TileMaker:
    """A model and a recipe, with the source open."""

    def __init__(self, model: Model, recipe: Recipe) -> None:
        self.model, self.recipe, self.plan = model, recipe, recipe.plan
        self.weight = next(model.parameters())
        self.wide = torch.promote_types(self.weight.dtype, torch.float32)
        self.windows = recipe.source.open()

    # Features

    @torch.no_grad()
    def encode(self, subject: Subject, tile: WorkTile) -> Tensor:
        """Features (rows, columns, C) of the tile's window, computed from the pixels within the encoder's radius."""
        inner, outer = self.plan.window(tile), self.plan.halo_window(tile)
        image = self._image(subject, *outer).to(self.weight.dtype)
        piece = encoder_tile(self.model.encoder, (image.shape[-2], image.shape[-1]), self.recipe.memory)
        y, x = (slice(i.start - o.start, i.stop - o.start) for i, o in zip(inner, outer, strict=True))
        return encode(self.model.encoder, image, piece)[y, x].contiguous()

    def feature_bytes(self) -> int:
        """Bytes of the features of all tiles of one subject."""
        windows = (self.plan.window(tile) for tile in self.plan.tiles())
        pixels = sum((y.stop - y.start) * (x.stop - x.start) for y, x in windows)
        return pixels * channels(self.model.encoder) * self.weight.element_size()

    def pack_features(self, features: Tensor) -> NDArray[np.uint8]:
        """Features as bytes, for files and the network, which do not know every type of number."""
        return features.cpu().contiguous().view(torch.uint8).numpy()

    def unpack_features(self, packed: NDArray[np.uint8], tile: WorkTile) -> Tensor:
        """Invert `pack_features`."""
        y, x = self.plan.window(tile)
        shape = y.stop - y.start, x.stop - x.start, -1
        return torch.from_numpy(packed).view(self.weight.dtype).reshape(shape).to(self.weight.device)

    # Integrals

    def lift_points(self, subject: Subject, tile: WorkTile, features: Tensor | None) -> bytes:
        """z_0 at the points of the integrals that lie in the tile; without features, from a window around each."""
        cell = self.plan.sampling.cell(clip=True, device=self.weight.device)
        if features is None:
            z = self._lift_windows(subject, tile, cell)
        else:
            coords = self.plan.local_points(tile).to(self.weight.device)
            z = self._field(subject, tile, features).lift_points(coords, cell)
        return z.to(self.wide).cpu().numpy().tobytes()

    @torch.no_grad()
    def _lift_windows(self, subject: Subject, tile: WorkTile, cell: Tensor) -> Tensor:
        windows = self.plan.point_windows(tile)
        step, parts = windows.batch(self.model, self.recipe.memory), list[Tensor]()
        for first in range(0, len(windows), step):
            indices = range(first, min(first + step, len(windows)))
            images = torch.cat([self._image(subject, *windows.slices(index)) for index in indices])
            parts.append(windows.lift(self.model, images.to(self.weight.dtype), first, cell))
        return torch.cat(parts)

    def sum_moments(self, subject: Subject, tile: WorkTile, features: Tensor, layers: Integrals) -> bytes:
        """The tile's part of the integral of the layer after `layers`, in float64, and its number of points."""
        region = self.plan.local_region(tile)
        sums, n = self._field(subject, tile, features).moments(tile.size, layers, region=region)
        parts = [part.flatten() for part in (sums.kv, sums.k, sums.v)]
        return torch.cat([*parts, sums.kv.new_tensor([n])]).cpu().numpy().tobytes()

    def layers_from_points(self, z: list[bytes]) -> Integrals:
        """All layers from z_0 at the points, tile after tile."""
        layers = self.model.kernel_layers()
        joined = torch.frombuffer(bytearray(b"".join(z)), dtype=self.wide).to(self.weight)
        plan = plan_render(self.model.footprint(), self.plan.sampling, self.recipe.memory, self.weight.device)
        with torch.no_grad():
            return integrate_points(layers, joined.reshape(-1, layers[0].query.in_features), plan.chunk)

    def next_layer(self, layers: Integrals, sums: bytes) -> Integrals:
        """Add the layer whose moments over the whole picture are `sums`."""
        layer = self.model.kernel_layers()[len(layers)]
        values = torch.frombuffer(bytearray(sums), dtype=torch.float64).to(self.weight.device)
        width = layer.query.out_features // layer.heads
        kv, k, v, n = values.split([layer.heads * width * width, layer.heads * width, layer.heads * width, 1])
        shape = 1, layer.heads, width
        moments = Moments(kv.reshape(*shape, width), k.reshape(shape), v.reshape(shape))
        with torch.no_grad():
            return (*layers, layer_map(layer, moments, round(float(n))))

    # Output

    def render(
        self, tile: WorkTile, features: dict[Subject, Tensor], layers: dict[Subject, Integrals]
    ) -> tuple[list[Stored], Samples | None]:
        """Render a tile and store it; return what was stored, and what remains of it for coarser levels."""
        colour = self._colour(tile, features["colour"], layers["colour"])
        alpha = None
        if self.recipe.source.like.alpha is not None:
            alpha = self._alpha(tile, features, layers)
        picture = replace(self.recipe.source.like, colour=colour, alpha=alpha)
        picture, _ = adapt(picture, self.recipe.container.format, metadata=self.recipe.metadata)
        assert tile.place is not None
        cuts, rest = self.recipe.container.levels.cut(0, tile.place, picture.samples())
        return self.recipe.container.store(self.recipe.folder, cuts), rest

    def _colour(self, tile: WorkTile, features: Tensor, layers: Integrals) -> Samples:
        rgb = self._render("colour", tile, features, layers)
        gray = self.recipe.source.like.colour.shape[2] == 1
        out = np.empty((*tile.size, 1 if gray else 3), np.uint16 if self.recipe.bits == 16 else np.uint8)
        for rows in _bands(tile):
            band = _floats(rgb[:, rows])
            out[rows] = from_float(band.mean(axis=2, keepdims=True) if gray else band, self.recipe.bits)
        return out

    def _alpha(self, tile: WorkTile, features: dict[Subject, Tensor], layers: dict[Subject, Integrals]) -> Samples:
        """Alpha within the range of the nearest nine pixels, as in memory."""
        bits = self.recipe.bits
        if self.recipe.constant_alpha is not None:
            return np.full(tile.size, _rescaled(self.recipe.constant_alpha, self.recipe.source.like, bits))
        rgb = self._render("alpha", tile, features["alpha"], layers["alpha"])
        low, high = self._range_around(tile)
        out = np.empty(tile.size, np.uint16 if bits == 16 else np.uint8)
        for rows in _bands(tile):
            out[rows] = from_float(np.clip(_floats(rgb[:, rows]).mean(axis=2), low[rows], high[rows]), bits)
        return out

    def _range_around(self, tile: WorkTile) -> tuple[Floats, Floats]:
        """Least and largest alpha of the nine pixels of the picture around every pixel of a tile."""
        window = self.plan.window(tile)
        values = to_float(self._samples("alpha", *window)[..., 0])
        around = np.lib.stride_tricks.sliding_window_view(np.pad(values, 1, mode="edge"), (3, 3))
        y, x = (
            ((np.arange(*edges) + 0.5) * n / whole).astype(np.intp) - part.start
            for edges, n, whole, part in zip(
                (tile.rows, tile.columns), self.plan.lr, self.plan.whole, window, strict=True
            )
        )
        return around.min(axis=(2, 3))[np.ix_(y, x)], around.max(axis=(2, 3))[np.ix_(y, x)]

    def _render(self, subject: Subject, tile: WorkTile, features: Tensor, layers: Integrals) -> Tensor:
        field = self._field(subject, tile, features)
        return field.render(tile.size, region=self.plan.local_region(tile), integrals=layers)

    def _field(self, subject: Subject, tile: WorkTile, features: Tensor) -> Field:
        return Field(self.model, self._image(subject, *self.plan.window(tile)), features, self.recipe.memory)

    # Pixels

    def _image(self, subject: Subject, rows: slice, columns: slice) -> Tensor:
        """(1, 3, rows, columns) in [-1, 1] on the model's device, never below fp32."""
        values = torch.from_numpy(to_float(self._samples(subject, rows, columns)))
        image = values.permute(2, 0, 1).expand(3, -1, -1).unsqueeze(0) * 2 - 1
        return image.to(device=self.weight.device, dtype=self.wide)

    def _samples(self, subject: Subject, rows: slice, columns: slice) -> Samples:
        """(rows, columns, 1|3)"""
        if subject == "alpha":
            alpha = self.windows.read(rows, columns).alpha
            assert alpha is not None
            return alpha[..., None]
        if self.recipe.coarse is None:
            return self.windows.read(rows, columns).colour
        return self._bled(self.recipe.coarse, rows, columns)

    def _bled(self, coarse: CoarseColours, rows: slice, columns: slice) -> Samples:
        """Colour with transparent pixels filled: two cells more on each side make the window exact."""
        first = [max(0, part.start // CELL - 2) for part in (rows, columns)]
        y, x = (
            slice(start * CELL, min(n, (-(-part.stop // CELL) + 2) * CELL))
            for start, part, n in zip(first, (rows, columns), self.plan.lr, strict=True)
        )
        picture: Picture = self.windows.read(y, x)
        assert picture.alpha is not None
        filled = coarse.bleed(picture.colour, picture.alpha, (first[0], first[1]))
        return filled[rows.start - y.start : rows.stop - y.start, columns.start - x.start : columns.stop - x.start]


def add_up(parts: list[bytes]) -> bytes:
    """Sum results of `sum_moments`."""
    return np.sum([np.frombuffer(part, np.float64) for part in parts], axis=0).tobytes()


def _bands(tile: WorkTile) -> list[slice]:
    height, width = tile.size
    step = max(1, BAND_PIXELS // width)
    return [slice(top, min(top + step, height)) for top in range(0, height, step)]


def _floats(rgb: Tensor) -> Floats:
    """(3, rows, columns) in [-1, 1] → (rows, columns, 3) in [0, 1]."""
    return (rgb.permute(1, 2, 0).float() * 0.5 + 0.5).cpu().numpy()


def _rescaled(value: int, like: Picture, bits: int) -> np.uint8 | np.uint16:
    """A sample of the picture with the bits of the result."""
    one = np.full((1, 1), value, like.colour.dtype)
    converted = replace(like, alpha=one).with_bits(bits).alpha
    assert converted is not None
    return converted[0, 0]
