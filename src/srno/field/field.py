"""A picture as a function: lifted once, evaluated anywhere."""

from dataclasses import dataclass, replace
from dataclasses import field as attribute
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from srno.errors import SRNOError
from srno.field.encode import encode
from srno.field.engine import Advance, Integrals, Passes, integrate, integrate_points, sum_moments
from srno.field.plan import Plan, bands, encoder_tile, plan_render, retry_in_smaller_pieces, retry_in_smaller_tiles
from srno.field.quadrature import Integral, golden_lattice, integral_points
from srno.field.threads import run_in_threads
from srno.machine import default_budget, parse_memory, release_memory
from srno.once import Once
from srno.operator.arguments import check_points, checked_image, checked_size
from srno.operator.fused import Moments
from srno.operator.model import Model
from srno.operator.sampling import GridDecoder, Sampling, whole_picture, window
from srno.progress import Progress

Region: TypeAlias = tuple[float, float, float, float]
"""(top, left, bottom, right) in pixels of the picture."""

CACHED_SCALES = 64
"""Scales whose integrals a field caches."""
ENCODER_BUDGET_SHARE = 0.5
"""Share of the budget for the encoder's activations."""


@dataclass(frozen=True, eq=False, repr=False)
class Field:
    """A picture as a function, returned by `srno.lift`. It is immutable, so threads may share it.

    Sizes are (height, width), regions (top, left, bottom, right). Values are RGB in [-1, 1], not clamped.

    >>> import torch, srno
    >>> field = srno.lift(srno.load("default"), torch.zeros(3, 12, 16))
    >>> field.render((30, 40)).shape
    torch.Size([3, 30, 40])
    >>> field.render((8, 8), region=(2, 3, 6, 7)).shape
    torch.Size([3, 8, 8])
    >>> field(torch.zeros(5, 2), torch.tensor([0.5, 0.5])).shape
    torch.Size([5, 3])
    """

    model: Model
    image: Tensor
    """(1, 3, h, w)"""
    features: Tensor
    """(h, w, C)"""
    memory: int | None = None
    """Bytes that a render may use besides picture, features and output; None for a share of the free memory."""
    _integrals: Once[tuple[object, ...], Integrals] = attribute(default_factory=lambda: Once(CACHED_SCALES), init=False)

    def __repr__(self) -> str:
        height, width = self.size
        return f"Field({type(self.model).__name__}, {height}×{width} pixels, {self.features.shape[-1]} features)"

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the picture."""
        return self.image.shape[-2], self.image.shape[-1]

    @torch.no_grad()
    def render(
        self,
        size: tuple[int, int],
        *,
        region: Region | None = None,
        integral: Integral = "auto",
        integrals: Integrals | None = None,
        cell_clip: bool = True,
        progress: Progress | None = None,
    ) -> Tensor:
        """Render the picture, or a region of it, at `size` = (height, width) pixels: (3, height, width).

        The kernel integral is that of the whole picture at the same scale, so a region equals the crop of the whole
        picture. The integrals of the last scales are cached; the rest of the work depends only on the region's size.
        `integrals` replace those of this picture: a field that holds only a part of a picture needs those of the whole.
        """
        sampling = self._sampling(size, region)
        known = self._known_integrals(sampling, integral, cell_clip) if integrals is None else integrals
        passes = 1 if known is not None else 1 + len(self.model.kernel_layers())

        def attempt(plan: Plan) -> Tensor:
            advance = _advance(progress, passes * sampling.size[0] * sampling.size[1])
            return self._render(sampling, plan, known, cell_clip, advance)

        return retry_in_smaller_pieces(self._plan(sampling), attempt)

    @torch.no_grad()
    def integrate(self, size: tuple[int, int], *, integral: Integral = "auto", cell_clip: bool = True) -> Integrals:
        """Return the layers with the integrals of the whole picture at the scale of `size` (height, width)."""
        return self._integrate(whole_picture(self.size, checked_size(size)), integral, cell_clip)

    @torch.no_grad()
    def moments(
        self, size: tuple[int, int], layers: Integrals, *, region: Region, cell_clip: bool = True
    ) -> tuple[Moments, int]:
        """Sum the moments of the layer after `layers` over a region of `size` pixels; return them and the points.

        The sums of the parts of a picture add up to the integral of the whole.
        """
        sampling, layer = self._sampling(size, region), self.model.kernel_layers()[len(layers)]

        def attempt(plan: Plan) -> tuple[Moments, int]:
            grid = self._grid(sampling, cell_clip)
            passes = Passes(lambda: grid.chunks(plan.chunk, plan.strip), layers=layers)
            return sum_moments(layer, passes, lambda _: None)

        return retry_in_smaller_pieces(self._plan(sampling), attempt)

    @torch.no_grad()
    def lift_points(self, coords: Tensor, cell: Tensor) -> Tensor:
        """z_0 (n, d_z) at coords (1, n, 2) in [-1, 1] as (y, x), for a cell (1, 2)."""
        return self.model.lift_points(self._batched_features(), coords, cell)[0]

    def __call__(self, coords: Tensor, cell: Tensor, *, integral: Integral = "auto") -> Tensor:
        """RGB (..., 3) at coords (..., 2) in [-1, 1] as (y, x), differentiable with respect to them.

        cell (2,) = (2/r_y, 2/r_x) is the size of a pixel; the integrals are those of the whole picture at that scale.
        """
        check_points(coords, cell)
        points, cells = coords.reshape(1, -1, 2), cell.reshape(1, 2).to(self.image.device)
        layers: Integrals = ()
        if self.model.kernel_layers():
            y, x = (float(side) for side in cell)
            whole = whole_picture(self.size, (max(1, round(self.size[0] * 2 / y)), max(1, round(self.size[1] * 2 / x))))
            with torch.no_grad():
                layers = self._integrate(replace(whole, cell_override=(y, x)), integral, clip=False)
        rgb = self.model.at_points(self._batched_features(), self.image, points, cells, layers)
        return rgb.reshape(*coords.shape[:-1], 3)

    def _sampling(self, size: tuple[int, int], region: Region | None) -> Sampling:
        size = checked_size(size)
        return whole_picture(self.size, size) if region is None else window(self.size, size, region)

    def _plan(self, sampling: Sampling) -> Plan:
        device = self.image.device
        threads = min(torch.get_num_threads(), len(bands(sampling.size, device)))
        return plan_render(self.model.footprint(), sampling, self.memory or default_budget(device), device, threads)

    def _batched_features(self) -> Tensor:
        return self.features.permute(2, 0, 1).unsqueeze(0)

    def _known_integrals(self, sampling: Sampling, integral: Integral, clip: bool) -> Integrals | None:
        """Return the integrals to render with; None if the render computes them itself, on its own grid."""
        whole = sampling.whole
        if whole is sampling and integral_points(integral, whole.size) is None:
            return self._integrals.get(self._key(whole, None, clip))
        return self._integrate(whole, integral, clip)

    def _render(
        self, sampling: Sampling, plan: Plan, known: Integrals | None, cell_clip: bool, advance: Advance
    ) -> Tensor:
        grid = self._grid(sampling, cell_clip)
        out = self.image.new_empty(3, *sampling.size)

        def fill(passes: Passes, advance: Advance) -> None:
            with torch.no_grad():  # a setting of each thread
                for chunk, z in passes:
                    out[:, chunk.top : chunk.bottom, chunk.left : chunk.right] = grid.rgb(chunk, z)
                    advance(chunk.points)

        if known is None:
            whole = Passes(lambda: grid.chunks(plan.chunk, plan.strip), keep=plan.keep)
            known = integrate(self.model.kernel_layers(), whole, advance)
            self._integrals(self._key(sampling, None, cell_clip), lambda: known)
            if plan.keep:
                fill(whole, advance)
                return out
        chunks = (partial(grid.chunks, plan.chunk, plan.strip, band) for band in bands(sampling.size, out.device))
        run_in_threads([partial(fill, Passes(each, layers=known)) for each in chunks], advance)
        return out

    def _grid(self, sampling: Sampling, cell_clip: bool) -> GridDecoder:
        if sampling.whole is sampling:
            return self.model.on_grid(self.features, self.image, sampling, cell_clip=cell_clip)
        moved, (rows, columns) = sampling.cut_out()
        features, image = self.features[rows, columns], self.image[..., rows, columns]
        return self.model.on_grid(features, image, moved, cell_clip=cell_clip)

    def _key(self, whole: Sampling, points: int | None, clip: bool) -> tuple[object, ...]:
        return whole.size, whole.cell_override, points, clip

    def _integrate(self, whole: Sampling, integral: Integral, clip: bool) -> Integrals:
        """Return the integrals of a whole picture."""
        if not self.model.kernel_layers():
            return ()
        points = integral_points(integral, whole.size)
        make = self._integrate_exactly if points is None else self._integrate_points
        return self._integrals(self._key(whole, points, clip), lambda: make(whole, points or 0, clip))

    def _integrate_exactly(self, whole: Sampling, _points: int, clip: bool) -> Integrals:
        def attempt(plan: Plan) -> Integrals:
            grid = self._grid(whole, clip)
            passes = Passes(lambda: grid.chunks(plan.chunk, plan.strip), keep=plan.keep)
            return integrate(self.model.kernel_layers(), passes, lambda _: None)

        return retry_in_smaller_pieces(self._plan(whole), attempt)

    def _integrate_points(self, whole: Sampling, points: int, clip: bool) -> Integrals:
        chunk, device = self._plan(whole).chunk, self.image.device
        coords = whole.points(*golden_lattice(points, whole.size, device))
        cell = whole.cell(clip=clip, device=device)
        z = torch.cat([self.lift_points(part, cell) for part in coords.split(chunk, dim=1)])
        found = integrate_points(self.model.kernel_layers(), z, chunk)
        _release(self.memory)
        return found


@torch.no_grad()
def lift(model: Model, image: Tensor, *, memory: int | str | None = None, progress: Progress | None = None) -> Field:
    """Encode a picture (3, h, w) or (1, 3, h, w) in [-1, 1] once, for any number of evaluations.

    `memory` is a budget such as "2G" for this and for renders. The model should be in evaluation mode and must not be
    trained while the field is in use.

    >>> import torch, srno
    >>> srno.lift(srno.load("default"), torch.zeros(3, 12, 16)).size
    (12, 16)
    """
    image = checked_image(image)
    if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SRNOError(f"model is a {type(model).__name__}; give a model, such as one from srno.load")
    weight = next(model.parameters())
    # A model in half precision computes what is added to the picture; the picture itself stays in full precision.
    image = image.to(device=weight.device, dtype=torch.promote_types(weight.dtype, torch.float32)).contiguous()
    bytes_given = None if memory is None else parse_memory(memory)
    budget = int(ENCODER_BUDGET_SHARE * (bytes_given or default_budget(image.device)))
    tile = encoder_tile(model.encoder, (image.shape[-2], image.shape[-1]), budget)
    features = retry_in_smaller_tiles(tile, partial(encode, model.encoder, image.to(weight.dtype), progress=progress))
    _release(bytes_given)
    return Field(model, image, features, bytes_given)


def _release(memory: int | None) -> None:
    """Give freed memory back before the next stage if there is a budget: in pieces, it would not be used again."""
    if memory is not None:
        release_memory()


def _advance(progress: Progress | None, total: int) -> Advance:
    """Convert counts of points to shares of the work."""
    if progress is None:
        return lambda _: None
    done = 0

    def advance(points: int) -> None:
        nonlocal done
        done += points
        progress(min(1.0, done / total))

    return advance
