from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="session")
def make_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[tuple[int, int]]], Path]:
    """Write PNG files of the given (height, width): noise in red and green, the picture's number in blue."""

    def make(sizes: Sequence[tuple[int, int]]) -> Path:
        folder = tmp_path_factory.mktemp("pictures")
        for number, size in enumerate(sizes):
            picture = np.random.default_rng(number).integers(256, size=(*size, 3), dtype=np.uint8)
            picture[..., 2] = number
            Image.fromarray(picture).save(folder / f"{number:03}.png")
        return folder

    return make
