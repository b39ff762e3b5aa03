"""A picture as a function: lifted once, evaluated anywhere."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, cast

import torch
from torch import Tensor

from srno.errors import SRNOError
from srno.inference.encode import encode
from srno.inference.engine import Advance, Integrals, Points, integrate_latent, integrate_points, render
from srno.inference.latent import make_latent
from srno.inference.memory import default_budget, parse_memory
from srno.inference.plan import Plan, encoder_rows, plan_render
from srno.inference.pointwise import render_pointwise
from srno.inference.sampling import Sampling, whole_picture, window
from srno.inference.skip import make_skip
from srno.operator import fused
from srno.operator.galerkin import GalerkinLayer
from srno.operator.lifting import InterpolationFreeLifting
from srno.operator.model import Model
from srno.operator.projection import bilinear
from srno.operator.srno import SRNO
from srno.rivals.fused import Rival

Integral: TypeAlias = int | Literal["exact"]
"""How the kernel integral is computed: over every output pixel, or from this many of them."""
Region: TypeAlias = tuple[float, float, float, float]
"""(left, top, right, bottom) in pixels of the picture."""
Progress: TypeAlias = Callable[[float], None]
"""Called with the share of the work that is done; may raise to cancel it."""
Result = TypeVar("Result")

PLASTIC = 1.324717957244746
"""The real root of x³ = x + 1."""
ENCODER_SHARE = 0.5
"""Part of the budget that the encoder's activations may take."""


@dataclass(frozen=True)
class Field:
    """The function that a model makes of one picture. Nothing in it changes, so threads may share it.

    Sizes are (width, height). Values are RGB in [-1, 1], not clamped.
    """

    model: Model
    image: Tensor
    """(1, 3, h, w)"""
    features: Tensor
    """(h, w, C)"""
    memory: int | None = None
    """Bytes that a render may use beside picture, features and output; None for a share of what is free then."""

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the picture."""
        return self.image.shape[-1], self.image.shape[-2]

    @torch.no_grad()
    def render(
        self,
        size: tuple[int, int],
        *,
        region: Region | None = None,
        integral: Integral = "exact",
        integrals: Integrals | None = None,
        cell_clip: bool = True,
        progress: Progress | None = None,
    ) -> Tensor:
        """The picture, or a region of it, at `size` pixels: (3, height, width).

        The integral is always that of the whole picture at the same scale, so a region is what one would cut out of
        the whole. `integrals` are those of `integrate` at that scale, where they are known already.
        """
        sampling = self._sampling(size, region)
        if integrals is None and (integral != "exact" or sampling.whole != sampling):
            integrals = self._integrate(sampling.whole, integral, cell_clip)

        def attempt(plan: Plan) -> Tensor:
            out = self.image.new_empty(sampling.size[0], sampling.size[1], 3)
            passes = 1 if integrals is not None else 1 + len(self._layers())
            advance = _advance(progress, passes * sampling.size[0] * sampling.size[1])
            for chunk, rgb in self._chunks(sampling, plan, integrals, cell_clip, advance):
                rows, columns = slice(chunk.top, chunk.bottom), slice(chunk.left, chunk.right)
                out[rows, columns] = rgb.reshape(chunk.bottom - chunk.top, -1, 3)
            return out.permute(2, 0, 1)

        return _with_less_memory(self._plan(sampling), attempt)

    @torch.no_grad()
    def integrate(
        self,
        size: tuple[int, int],
        *,
        region: Region | None = None,
        integral: Integral = "exact",
        cell_clip: bool = True,
    ) -> Integrals:
        """The integrals of the whole picture at the scale of this size and region, to be used for many renders."""
        return self._integrate(self._sampling(size, region).whole, integral, cell_clip)

    def __call__(self, coords: Tensor, cell: Tensor, *, integrals: Integrals | None = None) -> Tensor:
        """RGB (..., 3) at coords (..., 2) in [-1, 1] as (y, x), differentiable with respect to them.

        cell (2,) = (2/r_y, 2/r_x) is the size of a pixel; the integrals, unless given, are those of the whole picture
        at that scale.
        """
        points = coords.reshape(1, -1, 2)
        cells = cell.reshape(1, 2).to(self.image.device)
        features = self.features.permute(2, 0, 1).unsqueeze(0)
        if not isinstance(self.model, SRNO):
            return self.model.decode(features, self.image, points, cells).reshape(*coords.shape[:-1], 3)
        if integrals is None:
            height, width = (max(1, round(n * 2 / float(c))) for n, c in zip(self.image.shape[-2:], cell, strict=True))
            with torch.no_grad():
                integrals = self._integrate(whole_picture(self._lr, (height, width)), "exact", clip=False, cell=cells)
        z = self._lift_points(self.model, points, cells)[0]
        for layer in integrals:
            z = layer(z)
        rgb = self.model.projection(z) + bilinear(self.image, points)[0]
        return rgb.to(self.image.dtype).reshape(*coords.shape[:-1], 3)

    @property
    def _lr(self) -> tuple[int, int]:
        return self.image.shape[-2], self.image.shape[-1]

    def _sampling(self, size: tuple[int, int], region: Region | None) -> Sampling:
        if region is None:
            return whole_picture(self._lr, (size[1], size[0]))
        return window(self._lr, (size[1], size[0]), region)

    def _plan(self, sampling: Sampling) -> Plan:
        device = self.image.device
        return plan_render(self.model.config, sampling, self.memory or default_budget(device), device)

    def _layers(self) -> list[GalerkinLayer]:
        return self.model.galerkin_layers() if isinstance(self.model, SRNO) else []

    def _chunks(
        self, sampling: Sampling, plan: Plan, integrals: Integrals | None, cell_clip: bool, advance: Advance
    ) -> Iterator[Points]:
        """Every chunk with its RGB (points, 3)."""
        if not isinstance(self.model, SRNO):
            rival = cast(Rival, self.model)
            yield from render_pointwise(rival, self.features, self.image, sampling, cell_clip, plan, advance)
            return
        cell = sampling.cell(clip=cell_clip, device=self.image.device)
        skip = make_skip(self.image, sampling)
        latent = make_latent(self.model.lifting, self.features, sampling, cell)
        for chunk, rgb in render(self._layers(), self.model.projection, latent, plan, integrals, advance):
            yield chunk, rgb + skip(chunk)

    def _integrate(self, whole: Sampling, integral: Integral, clip: bool, cell: Tensor | None = None) -> Integrals:
        if not isinstance(self.model, SRNO):
            return ()
        cell = whole.cell(clip=clip, device=self.image.device) if cell is None else cell
        pixels = whole.size[0] * whole.size[1]
        if integral != "exact" and integral < 1:
            raise SRNOError(f"integral {integral}: give a number of points, or exact")
        if integral == "exact" or integral >= pixels:
            return self._integrate_exactly(self.model, whole, cell)
        rows, columns = low_discrepancy(integral, whole.size, self.image.device)
        z = self._lift_points(self.model, whole.points(rows, columns), cell)[0]
        return integrate_points(self._layers(), z, self._plan(whole).chunk)

    def _integrate_exactly(self, model: SRNO, whole: Sampling, cell: Tensor) -> Integrals:
        latent = make_latent(model.lifting, self.features, whole, cell)

        layers = model.galerkin_layers()
        return _with_less_memory(self._plan(whole), lambda plan: integrate_latent(layers, latent, plan, lambda _: None))

    def _lift_points(self, model: SRNO, points: Tensor, cell: Tensor) -> Tensor:
        features = self.features.permute(2, 0, 1).unsqueeze(0)
        if isinstance(model.lifting, InterpolationFreeLifting):
            return fused.lift(model.lifting, features, points, cell)
        return model.lifting(features, points, cell)


@torch.no_grad()
def lift(model: Model, image: Tensor, *, memory: int | str | None = None, progress: Progress | None = None) -> Field:
    """Encode a picture (3, h, w) or (1, 3, h, w) in [-1, 1] once, for any number of evaluations.

    The model should be in evaluation mode and is not to be trained while the field is in use.
    """
    if image.ndim == 3:
        image = image.unsqueeze(0)
    if image.ndim != 4 or image.shape[:2] != (1, 3):
        raise SRNOError(f"image has shape {tuple(image.shape)}; it must be (3, height, width)")
    weight = next(model.parameters())
    # a model in half precision computes what is added to the picture, and the picture stays as fine as it was
    image = image.to(device=weight.device, dtype=torch.promote_types(weight.dtype, torch.float32))
    bytes_given = None if memory is None else parse_memory(memory)
    budget = int(ENCODER_SHARE * (bytes_given or default_budget(image.device)))
    rows = encoder_rows(model, (image.shape[-2], image.shape[-1]), budget)
    features = _halving(rows, lambda count: encode(model.encoder, image.to(weight.dtype), count, progress))
    return Field(model, image, features, bytes_given)


def low_discrepancy(n: int, size: tuple[int, int], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows and columns (n,) of pixels that are spread evenly over a grid (height, width).

    The sequence turns by irrational steps (Roberts' R₂). Sobol's points are dyadic: on grids whose sides are multiples
    of powers of two they miss some places within a pixel of the picture altogether, however many there are.
    """
    count = torch.arange(1, n + 1, dtype=torch.float64, device=device)
    rows, columns = ((0.5 + count * PLASTIC**-power) % 1 for power in (1, 2))
    return (rows * size[0]).long(), (columns * size[1]).long()


def _advance(progress: Progress | None, total: int) -> Advance:
    """Turn counts of points into shares of the work."""
    if progress is None:
        return lambda _: None
    done = 0

    def advance(points: int) -> None:
        nonlocal done
        done += points
        progress(min(1.0, done / total))

    return advance


def out_of_memory(error: BaseException) -> bool:
    """Whether this is the system's or the device's way of saying so."""
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in words)


def _with_less_memory(plan: Plan, attempt: Callable[[Plan], Result]) -> Result:
    """Try, and where memory runs out try again in smaller pieces."""
    while True:
        try:
            return attempt(plan)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            plan = plan.halved()


def _halving(rows: int, attempt: Callable[[int], Result]) -> Result:
    while True:
        try:
            return attempt(rows)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error) or rows <= 16:
                raise
            rows //= 2
