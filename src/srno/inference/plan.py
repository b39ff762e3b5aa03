"""How a render is cut into pieces that fit a memory budget. The picture does not depend on it, only time does."""

from dataclasses import dataclass, replace

import torch

from srno.config import ModelConfig, SRNOConfig
from srno.errors import SRNOError
from srno.inference.encode import live_channels
from srno.inference.sampling import Sampling
from srno.operator.model import Model

CHUNK_VALUES = {"cpu": 1 << 20}
"""Values of z per chunk: on a CPU what stays in its caches, on a GPU what fills it."""
GPU_CHUNK_VALUES = 1 << 25
SMALLEST_CHUNK = 64
POINTWISE_WIDTH = 256
"""Of a rival's hidden layers."""
POINTWISE_VALUES = 4096
"""Values per point that a rival may hold at once: four neighbours with their hidden layers or unfolded features."""


@dataclass(frozen=True)
class Plan:
    """The pieces of a render."""

    chunk: int
    """Output points that are computed at once."""
    strip: int
    """Rows of the picture whose features are projected at once."""
    keep: bool
    """Whether z is kept between passes or computed again."""

    def halved(self) -> "Plan":
        """The same work in smaller pieces, after the system has run out of memory."""
        if self.chunk <= SMALLEST_CHUNK:
            raise SRNOError("out of memory even in the smallest pieces; close other programs or ask for a smaller size")
        return replace(self, chunk=self.chunk // 2, strip=max(1, self.strip // 2), keep=False)


def plan_render(config: ModelConfig, sampling: Sampling, budget: int, device: torch.device) -> Plan:
    """Pieces for a render within `budget` bytes beside the picture, its features and the output."""
    bytes_per_value = 4
    values = 4 * config.d_z + 2 * config.projection_width + 64 if isinstance(config, SRNOConfig) else POINTWISE_VALUES
    per_point = bytes_per_value * values
    width = config.d_z if isinstance(config, SRNOConfig) else POINTWISE_WIDTH
    chunk = CHUNK_VALUES.get(device.type, GPU_CHUNK_VALUES) // width
    chunk = max(SMALLEST_CHUNK, min(chunk, budget // 4 // per_point))
    if not isinstance(config, SRNOConfig):
        return Plan(chunk, sampling.lr[0], keep=False)
    neighbours = 4 if config.lifting == "interpolation-free" else 1
    per_row = bytes_per_value * sampling.lr[1] * (neighbours * config.d_z)
    strip = max(1, min(sampling.lr[0], budget // 4 // per_row))
    z = bytes_per_value * config.d_z * sampling.size[0] * sampling.size[1]
    keep = config.iterations > 1 and z <= budget - chunk * per_point - (strip + 1) * per_row
    return Plan(chunk, strip, keep)


def encoder_rows(model: Model, lr: tuple[int, int], budget: int) -> int:
    """Rows of the picture to encode at once within `budget` bytes."""
    per_row = 4 * live_channels(model.config.encoder) * lr[1]
    rows = budget // per_row - 2 * model.encoder.halo
    return lr[0] if rows >= lr[0] else max(rows, model.encoder.halo, 16)
