"""The evaluation sets beside the repository, and small made-up ones."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

EVAL = Path(__file__).parents[2].parent / "shared" / "data" / "eval"


@pytest.fixture
def eval_set() -> Callable[[str], Path]:
    """The folder of a set by name; skips where it is missing."""

    def find(name: str) -> Path:
        if not (EVAL / name).is_dir():
            pytest.skip(f"no evaluation set {name} beside the repository")
        return EVAL / name

    return find


@pytest.fixture
def write_picture() -> Callable[..., Path]:
    """Write a smooth random picture of (height, width) to a path, folders included."""

    def write(path: Path, height: int, width: int, *, gray: bool = False, seed: int = 0) -> Path:
        coarse = np.random.default_rng(seed).integers(0, 256, (9, 7) if gray else (9, 7, 3), dtype=np.uint8)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).save(path)
        return path

    return write
