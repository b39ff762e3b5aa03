"""Split a render into pieces that fit a memory budget. The plan affects the time, not the picture."""

from dataclasses import dataclass, replace

import torch
from torch import nn

from srno.errors import SRNOError
from srno.operator.encoder import live_channels, radius
from srno.operator.model import Footprint
from srno.operator.sampling import Sampling

BYTES_PER_VALUE = 4
"""Of fp32; half precision is budgeted the same."""

CHUNK_VALUES = {"cpu": 1 << 20}
"""Values of z per chunk: few enough for the caches of a CPU, enough to occupy a GPU."""
GPU_CHUNK_VALUES = 1 << 25
SMALLEST_CHUNK = 64


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


def plan_render(footprint: Footprint, sampling: Sampling, budget: int, device: torch.device) -> Plan:
    """Plan a render within `budget` bytes in addition to the picture, its features and the output."""
    per_point = BYTES_PER_VALUE * footprint.point
    chunk = CHUNK_VALUES.get(device.type, GPU_CHUNK_VALUES) // footprint.width
    chunk = max(SMALLEST_CHUNK, min(chunk, budget // 4 // per_point))
    if not footprint.column:
        return Plan(chunk, sampling.lr[0], keep=False)
    per_row = BYTES_PER_VALUE * footprint.column * sampling.lr[1]
    strip = max(1, min(sampling.lr[0], budget // 4 // per_row))
    z = BYTES_PER_VALUE * footprint.latent * sampling.size[0] * sampling.size[1]
    keep = 0 < z <= budget - chunk * per_point - (strip + 1) * per_row
    return Plan(chunk, strip, keep)


def encoder_rows(encoder: nn.Module, lr: tuple[int, int], budget: int) -> int:
    """Rows of the picture to encode at once within `budget` bytes."""
    halo, per_row = radius(encoder), BYTES_PER_VALUE * live_channels(encoder) * lr[1]
    rows = budget // per_row - 2 * halo
    return lr[0] if rows >= lr[0] else max(rows, halo, 16)
