"""Degradations: from an HR crop to the LR crop that the operator takes. Each table entry is a `--degradation`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Degradation = Callable[[NDArray[np.uint8], int, np.random.Generator], NDArray[np.uint8]]
"""HR crop (n, n, 3), LR side p, the sample's random generator (for noise) -> LR crop (p, p, 3)."""


def bicubic(crop: NDArray[np.uint8], side: int, rng: np.random.Generator) -> NDArray[np.uint8]:  # noqa: ARG001
    """Downscale with Pillow's antialiased bicubic, as the published recipe does."""
    return np.asarray(Image.fromarray(crop).resize((side, side), Image.Resampling.BICUBIC))


DEGRADATIONS: Mapping[str, Degradation] = MappingProxyType({"bicubic": bicubic})
