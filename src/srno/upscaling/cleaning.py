"""How strongly to clean a picture: a table of what was best on training pictures, by codec and compression."""

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from srno.imaging.picture import Compression

STEP = 0.05
"""Strengths are rounded to multiples of this, so that a folder of pictures needs few mixed models."""


def choose_strength(compression: "Compression") -> float:
    """The strength from 0 to 1 for a compression, interpolated between the levels that were measured."""
    levels, strengths = _table()[compression.codec]
    return round(round(_interpolate(compression.level, levels, strengths) / STEP) * STEP, 2)


@cache
def _table() -> dict[str, tuple[list[float], list[float]]]:
    """Levels in ascending order and the best strength of each, by codec: `tools/measure_clean.py` writes them."""
    raw = json.loads((files("srno") / "weights" / "clean.json").read_text())
    return {codec: (found["levels"], found["strengths"]) for codec, found in raw["codecs"].items()}


def _interpolate(x: float, xs: list[float], ys: list[float]) -> float:
    """Piecewise linear, constant beyond the ends."""
    if x <= xs[0]:
        return ys[0]
    for (x0, y0), (x1, y1) in zip(zip(xs, ys, strict=True), zip(xs[1:], ys[1:], strict=True), strict=False):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return ys[-1]
