"""Output sizes to the pixel: by factors, a box, a width or a height. Sizes are (width, height)."""

import math
import re
from collections.abc import Sized
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from srno.errors import SRNOError, two_whole_numbers, whole_number

Size: TypeAlias = tuple[int, int]
Fit: TypeAlias = Literal["contain", "cover", "stretch"]
"""Within a box, filling it with the rest cut off, or exactly its size and out of proportion."""

DEFAULT_SCALE = 2
MAX_SIDE = 2**31 - 1
"""Maximum pixels per side; no format holds more."""

_FACTOR = r"(\d+(?:\.\d*)?|\.\d+)"


@dataclass(frozen=True)
class Target:
    """The output size of one picture."""

    source: Size
    size: Size
    """Size of the output."""
    whole: Size
    """Size of the whole picture at the new scale; larger than `size` only if `cover` cuts something off."""
    factors: tuple[Fraction, Fraction]
    """Factors of width and height, before sizes are rounded to pixels."""

    @property
    def origin(self) -> Size:
        """(left, top) of the output in the whole picture, which is cropped around its centre."""
        return (self.whole[0] - self.size[0]) // 2, (self.whole[1] - self.size[1]) // 2

    @property
    def scale(self) -> tuple[float, float]:
        """The factors as floats."""
        return float(self.factors[0]), float(self.factors[1])

    @property
    def label(self) -> str:
        """The factors as text: 3.7, or 2x3 if they differ."""
        x, y = (f"{factor:.4g}" for factor in self.scale)
        return x if x == y else f"{x}x{y}"


@dataclass(frozen=True)
class Request:
    """The requested size: factors, or a box of which one side may be open."""

    factors: tuple[Fraction, Fraction] | None = None
    box: tuple[int | None, int | None] = (None, None)
    fit: Fit = "contain"

    def target(self, source: Size) -> Target:
        """The output size for a picture of this size; every side has at least one pixel."""
        factors = self.factors or self._fitted(source)
        whole = _pixels(source[0] * factors[0]), _pixels(source[1] * factors[1])
        if max(whole) > MAX_SIDE:
            raise SRNOError(f"an output of {whole[0]}×{whole[1]} pixels is larger than any format holds")
        width, height = self.box
        covered = (width, height) if self.fit == "cover" and width and height else whole
        return Target(source, covered, whole, factors)

    def _fitted(self, source: Size) -> tuple[Fraction, Fraction]:
        x, y = (None if side is None else Fraction(side, n) for side, n in zip(self.box, source, strict=True))
        if x is None or y is None:
            only = x or y or Fraction(1)
            return only, only
        if self.fit == "stretch":
            return x, y
        both = min(x, y) if self.fit == "contain" else max(x, y)
        return both, both


def make_request(
    scale: float | str | tuple[float, float] | None = None,
    size: str | Size | None = None,
    width: int | None = None,
    height: int | None = None,
    fit: Fit | None = None,
) -> Request:
    """Make a request from one of scale, size, width and height; ×2 if none is given."""
    given = {"scale": scale, "size": size, "width": width, "height": height}
    named = [name for name, value in given.items() if value is not None]
    if named == ["width", "height"]:
        raise SRNOError(f"width and height together: give size {width}x{height} and a fit")
    if len(named) > 1:
        raise SRNOError(f"{' and '.join(named)} together: give one of scale, size, width, height")
    if fit is not None and size is None:
        raise SRNOError(f"fit {fit} needs a size, such as 3840x2160")
    if fit is not None and fit not in get_args(Fit):
        raise SRNOError(f"fit {fit!r}: choose {', '.join(get_args(Fit))}")
    if size is not None:
        return Request(box=_box(size), fit=fit or "contain")
    if width is not None or height is not None:
        return Request(box=(_side("width", width), _side("height", height)))
    return Request(factors=_factors(DEFAULT_SCALE if scale is None else scale))


def rows_first(size: Size) -> tuple[int, int]:
    """(width, height), as people give sizes → (height, width), as tensors have them; also (left, top) → (top, left)."""
    return size[1], size[0]


def _factors(scale: float | str | tuple[float, float]) -> tuple[Fraction, Fraction]:
    if isinstance(scale, str):
        match = re.fullmatch(rf"{_FACTOR}(?:[xX×]{_FACTOR}?)?", scale.strip())
        if not match:
            raise SRNOError(f"scale {scale!r}: write a factor such as 3.7, or two for width and height such as 2x3")
        x, y = match[1], match[2] or match[1]
    else:
        x, y = _two_factors(scale)
        if not (math.isfinite(x) and math.isfinite(y)):
            raise SRNOError(f"scale {scale}: a factor must be a finite number")
    # From the decimal digits, so that 1.15 times 10 pixels is exactly 11.5.
    factors = Fraction(str(x)), Fraction(str(y))
    if min(factors) <= 0:
        raise SRNOError(f"scale {scale}: a factor must be more than 0")
    return factors


def _two_factors(scale: object) -> tuple[float, float]:
    """A factor for both sides, or a tuple of two; floats of numpy count, and booleans do not."""
    x, y = scale if isinstance(scale, tuple) and len(cast(Sized, scale)) == 2 else (scale, scale)
    for factor in (x, y):
        if isinstance(factor, bool) or not isinstance(factor, int | float | np.number):
            raise SRNOError(f"scale {scale!r}: give a factor such as 3.7, or a tuple of two for width and height")
    return cast(float, x), cast(float, y)


def _box(size: str | Size) -> Size:
    if isinstance(size, str):
        match = re.fullmatch(r"(\d+)[xX×](\d+)", size.strip())
        if not match:
            raise SRNOError(f"size {size!r}: write WIDTHxHEIGHT, such as 3840x2160")
        size = int(match[1]), int(match[2])
    size = _two_sides(size)
    if min(size) < 1 or max(size) > MAX_SIDE:
        raise SRNOError(f"size {size[0]}x{size[1]}: both sides must be at least 1 pixel, and no more than {MAX_SIDE:,}")
    return size


def _two_sides(size: Any) -> Size:
    try:
        return two_whole_numbers(size)
    except (TypeError, ValueError):
        raise SRNOError(f"size {size!r}: give (width, height), two whole numbers") from None


def _side(name: str, value: int | None) -> int | None:
    try:
        value = None if value is None else whole_number(value)
    except TypeError:
        raise SRNOError(f"{name} {value!r}: give a whole number of pixels") from None
    if value is not None and not 1 <= value <= MAX_SIDE:
        raise SRNOError(f"{name} {value}: it must be at least 1 pixel, and no more than {MAX_SIDE:,}")
    return value


def _pixels(length: Fraction) -> int:
    """The nearest whole number, halves up."""
    return max(1, math.floor(length + Fraction(1, 2)))
