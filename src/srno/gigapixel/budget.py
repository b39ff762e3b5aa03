"""How large tiles may be within a memory budget for the whole process, and what a job needs on disk."""

import math
import os
from dataclasses import dataclass
from pathlib import Path

from srno.errors import SRNOError
from srno.field.plan import BYTES_PER_VALUE
from srno.imaging.windows import WindowFile
from srno.machine import free_memory, parse_memory, release_memory
from srno.operator.encoder import channels, live_channels, radius
from srno.operator.model import Model
from srno.operator.sampling import WINDOW_MARGIN

STORED_TILE = 512
"""Pixels along a side of a stored tile."""
LARGEST_SIDE = 4096
"""Pixels along a side of a work tile, at most: what a kill may cost."""
FEWEST_ROWS = 16
"""Rows that are encoded at once, at least."""
PLANNED_SHARE = 0.75
"""Share of the memory that is planned for; the rest is for what freed blocks leave unused between them."""
RESERVED_BYTES = 96 << 20
"""Bytes for libraries' buffers, conversions and compression."""
LARGEST_ARITHMETIC = 1 << 30
"""Bytes for the arithmetic on a tile, at most: more does not make it faster."""


@dataclass(frozen=True)
class Pieces:
    """The side of a work tile, and the bytes for the arithmetic on it."""

    side: int
    memory: int


def resident_bytes() -> int:
    """Memory of this process now; a guess if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 512 << 20


def memory_limit(memory: str | int | None) -> int:
    """Bytes that the process may have: what the user gives, or half of what is free and what it has already."""
    return resident_bytes() + free_memory() // 2 if memory is None else parse_memory(memory)


def in_memory_bytes(model: Model, lr: tuple[int, int], whole: tuple[int, int], out_channels: int, bits: int) -> int:
    """Bytes of picture, features and output if the whole picture is enlarged in memory."""
    per_pixel = 12 + 2 * 4 + BYTES_PER_VALUE * channels(model.encoder)
    return math.prod(lr) * per_pixel + math.prod(whole) * (12 + out_channels * bits // 8)


def process_bytes(model: Model, lr: tuple[int, int], whole: tuple[int, int], *, exact: bool) -> int:
    """Bytes of the whole process, at most, if a picture is enlarged in memory; `exact` may keep z of every pixel."""
    release_memory()  # of an earlier picture
    footprint = model.footprint()
    values = math.prod(lr) * (live_channels(model.encoder) + footprint.column)
    values += math.prod(whole) * footprint.latent if exact else 0
    return resident_bytes() + RESERVED_BYTES + in_memory_bytes(model, lr, whole, 4, 8) + BYTES_PER_VALUE * values


def choose_pieces(
    model: Model,
    source: WindowFile,
    scale: tuple[float, float],
    limit: int,
    *,
    points: int | None = None,
    side: int | None = None,
    most: int = LARGEST_SIDE,
) -> Pieces:
    """Choose the tile side, up to `most`, that encodes the fewest pixels twice within `limit` bytes for a process."""
    available = int(PLANNED_SHARE * (limit - resident_bytes() - RESERVED_BYTES))
    sides = [side] if side else [STORED_TILE << i for i in range((most // STORED_TILE).bit_length())]
    costs = {one: _Cost(model, source, scale, one, points or 0) for one in sides}
    fitting = {one: cost for one, cost in costs.items() if cost.least <= available}
    if not fitting:
        needed = limit + int((min(cost.least for cost in costs.values()) - available) / PLANNED_SHARE)
        raise SRNOError(f"--memory {limit / 1e9:.2f} GB: the smallest tiles need {needed / 1e9:.2f} GB; give that much")
    best = min(fitting, key=lambda one: fitting[one].work(available))
    return Pieces(best, fitting[best].arithmetic(available))


class _Cost:
    """What tiles of one side need."""

    def __init__(self, model: Model, source: WindowFile, scale: tuple[float, float], side: int, points: int) -> None:
        halo = radius(model.encoder)
        self.inner = [side / s + 2 * WINDOW_MARGIN + 2 for s in scale]
        self.outer = [min(n, i + 2 * halo) for i, n in zip(self.inner, source.size, strict=True)]
        self.halo, self.area = halo, side**2 / (scale[0] * scale[1])
        sample = source.like.channels * source.like.bits // 8
        layers = model.kernel_layers()
        latent = points * layers[0].query.in_features * BYTES_PER_VALUE if layers else 0
        self.fixed = int(
            math.prod(self.outer) * (2 * sample + 12 + 12 + 12)
            + math.prod(self.inner) * 2 * BYTES_PER_VALUE * channels(model.encoder)
            + side**2 * (12 + 4 * max(sample, 4))
            + 4 * latent
            + source.cache_bytes
        )
        self.per_row = self.outer[1] * live_channels(model.encoder) * BYTES_PER_VALUE

    @property
    def least(self) -> int:
        """Bytes with the fewest rows at once."""
        return self.fixed + int((max(self.halo, FEWEST_ROWS) + 2 * self.halo) * self.per_row)

    def arithmetic(self, available: int) -> int:
        """Bytes for the arithmetic on a tile."""
        return min(available - self.fixed, LARGEST_ARITHMETIC)

    def work(self, available: int) -> float:
        """Pixels that are encoded for each pixel of the picture."""
        rows = self.arithmetic(available) / self.per_row - 2 * self.halo
        strips = math.ceil(self.outer[0] / max(rows, self.halo, FEWEST_ROWS))
        return (self.outer[0] + (strips - 1) * 2 * self.halo) * self.outer[1] / self.area
