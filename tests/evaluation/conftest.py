"""The evaluation sets beside the repository, and small synthetic pictures."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shared_data import BENCHMARK_SETS


@pytest.fixture
def eval_set() -> Callable[[str], Path]:
    """The folder of a set by name; tests that use it are marked `benchmark_sets`."""
    return lambda name: BENCHMARK_SETS / name


@pytest.fixture
def write_picture() -> Callable[..., Path]:
    """Write a smooth random picture of (height, width) to a path, folders included."""

    def write(path: Path, height: int, width: int, *, gray: bool = False, seed: int = 0) -> Path:
        coarse = np.random.default_rng(seed).integers(0, 256, (9, 7) if gray else (9, 7, 3), dtype=np.uint8)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).save(path)
        return path

    return write
