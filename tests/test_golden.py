"""Golden pictures: what each shipped model makes of one crop stays the same, on any machine."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import srno

GOLDEN = Path(__file__).parent / "fixtures" / "golden"
REMAKE = "if the change is intended: python tools/make_golden.py"


def error_histogram(errors: NDArray[np.int64]) -> str:
    """How many samples are off by how many levels, one line for each."""
    levels, counts = np.unique(errors, return_counts=True)
    return "\n".join(f"off by {level:+4}: {count:6} samples" for level, count in zip(levels, counts, strict=True))


def test_every_shipped_model_has_a_golden_picture():
    pictures = {path.stem for path in GOLDEN.glob("*.png")} - {"input"}
    assert pictures == set(srno.list_models()), REMAKE


@pytest.mark.parametrize("name", srno.list_models())
def test_a_shipped_model_gives_its_golden_picture(name: str):
    with Image.open(GOLDEN / "input.png") as picture, Image.open(GOLDEN / f"{name}.png") as golden:
        large = srno.upscale(
            picture, size=golden.size, fit="stretch", model=name, integral="exact", precision="fp32", device="cpu"
        )
        errors = np.asarray(large).astype(np.int64) - np.asarray(golden)
    worst = int(np.abs(errors).max())
    assert worst <= 1, f"{name} gives another picture; {REMAKE}\n{error_histogram(errors)}"
