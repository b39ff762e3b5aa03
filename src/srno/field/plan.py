"""Split a render into pieces that fit a memory budget. The plan affects the time, not the picture."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import torch
from torch import nn

from srno.errors import SRNOError
from srno.machine import out_of_memory
from srno.operator.encoder import live_channels, radius
from srno.operator.model import Footprint
from srno.operator.sampling import Sampling

Result = TypeVar("Result")

BYTES_PER_VALUE = 4
"""Of fp32; half precision is budgeted the same."""

CHUNK_VALUES = {"cpu": 1 << 20}
"""Values of z per chunk: few enough for the caches of a CPU, enough to occupy a GPU."""
GPU_CHUNK_VALUES = 1 << 25
STRIP_VALUES = 1 << 22
"""Projected values of a strip: few enough for the last cache of a CPU."""
SHORTEST_STRIP = 16
"""Rows of a strip, unless memory is short: neighbouring strips project one or two rows twice."""
SMALLEST_CHUNK = 64
BAND_POINTS = 1 << 16
"""Output points of a band, at least: three chunks for d_z = 48."""
MOST_BANDS = 32
"""Enough for the cores; neighbouring bands project one or two rows of the picture twice."""
SMALLEST_TILE = 16
"""Pixels along a side of a tile of the encoder."""


@dataclass(frozen=True)
class Plan:
    """The pieces of a render."""

    chunk: int
    """Output points that are computed at once."""
    strip: int
    """Rows of the picture whose features are projected at once."""
    keep: bool
    """Whether z is kept between passes or recomputed."""

    def halved(self) -> "Plan":
        """The same work in smaller pieces, after the system has run out of memory."""
        if self.chunk <= SMALLEST_CHUNK:
            raise SRNOError("out of memory even in the smallest pieces; close other programs or choose a smaller size")
        return replace(self, chunk=self.chunk // 2, strip=max(1, self.strip // 2), keep=False)


def bands(size: tuple[int, int], device: torch.device) -> list[range]:
    """Divide the rows of an output into bands for the threads of a CPU: the same ones for any number of threads.

    Products of another shape may differ in the last bit, so that the picture would depend on the number.
    """
    most = MOST_BANDS if device.type == "cpu" else 1
    count = max(1, min(size[0], size[0] * size[1] // BAND_POINTS, most))
    edges = [size[0] * i // count for i in range(count + 1)]
    return [range(top, bottom) for top, bottom in pairwise(edges)]


def plan_render(footprint: Footprint, sampling: Sampling, budget: int, device: torch.device, threads: int = 1) -> Plan:
    """Plan a render within `budget` bytes in addition to the picture, its features and the output.

    `threads` is the number of chunks that are computed at once.
    """
    per_point = BYTES_PER_VALUE * footprint.point
    chunk = CHUNK_VALUES.get(device.type, GPU_CHUNK_VALUES) // footprint.width
    chunk = max(SMALLEST_CHUNK, min(chunk, budget // 4 // per_point // threads))
    if not footprint.column:
        return Plan(chunk, sampling.lr[0], keep=False)
    per_row = BYTES_PER_VALUE * footprint.column * sampling.lr[1]
    within_cache = max(SHORTEST_STRIP, STRIP_VALUES // (footprint.column * sampling.lr[1]))
    strip = max(1, min(sampling.lr[0], within_cache, budget // 4 // per_row // threads))
    z = BYTES_PER_VALUE * footprint.latent * sampling.size[0] * sampling.size[1]
    keep = 0 < z <= budget - chunk * per_point - (strip + 1) * per_row
    return Plan(chunk, strip, keep)


def encoder_tile(encoder: nn.Module, lr: tuple[int, int], budget: int) -> tuple[int, int]:
    """Rows and columns of the picture to encode at once within `budget` bytes: the tile with the least halo."""
    halo, pixels = radius(encoder), budget // (BYTES_PER_VALUE * live_channels(encoder))
    height, width = lr
    smallest = max(halo, SMALLEST_TILE)
    best, least = (min(height, smallest), min(width, smallest)), float("inf")
    for count in range(1, max(2, width // smallest + 1)):
        columns = -(-width // count)
        outer = min(width, columns + 2 * halo)
        rows = min(height, pixels // outer) if pixels // outer >= height else pixels // outer - 2 * halo
        if rows < min(height, smallest):
            continue
        cost = outer * min(height, rows + 2 * halo) / (columns * rows)
        if cost < least:
            best, least = (rows, columns), cost
    return best


def retry_in_smaller_pieces(plan: Plan, attempt: Callable[[Plan], Result]) -> Result:
    """Call `attempt`; if memory runs out, retry in smaller pieces."""
    while True:
        try:
            return attempt(plan)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            plan = plan.halved()


def retry_in_smaller_tiles(tile: tuple[int, int], attempt: Callable[[tuple[int, int]], Result]) -> Result:
    """Call `attempt`; if memory runs out, retry with half of the longer side."""
    while True:
        try:
            return attempt(tile)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error) or max(tile) <= SMALLEST_TILE:
                raise
            rows, columns = tile
            tile = (rows // 2, columns) if rows > columns else (rows, columns // 2)
