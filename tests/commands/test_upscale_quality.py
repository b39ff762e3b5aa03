"""Quality of the shipped model: colours are preserved, and detail is better than bicubic."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import srno
from srno.operator.model import Model

EXAMPLES = Path(srno.__file__).parent / "examples"
CROP = 72


@pytest.fixture(scope="module")
def model() -> Model:
    if not srno.list_models():
        pytest.skip("the package ships no weights yet")
    return srno.load("default")


def example(name: str) -> np.ndarray:
    """The middle of an example picture (CROP, CROP, 3)."""
    samples = np.asarray(Image.open(EXAMPLES / f"{name}.png").convert("RGB"))
    top, left = ((n - CROP) // 2 for n in samples.shape[:2])
    return samples[top : top + CROP, left : left + CROP]


def psnr(one: np.ndarray, other: np.ndarray) -> float:
    """PSNR in dB of 8-bit samples."""
    return float(10 * np.log10(255**2 / np.square(one.astype(float) - other.astype(float)).mean()))


COLOURS = [(0, 0, 0), (255, 255, 255), (128, 128, 128), (255, 0, 0), (12, 200, 90), (30, 30, 220), (250, 240, 20)]


@pytest.mark.parametrize("colour", COLOURS)
def test_a_constant_picture_keeps_its_colours_at_every_scale(model: Model, colour: tuple[int, int, int]):
    image = np.full((16, 20, 4), (*colour, 77), np.uint8)
    for scale in (1, 1.5, 2, 3.7, 4, 8):
        large = srno.upscale(image, scale=scale, model=model)
        assert large.shape == (int(16 * scale + 0.5), int(20 * scale + 0.5), 4)
        assert (large[..., 3] == 77).all()
        assert np.abs(large[..., :3].astype(int) - colour).max() <= 2, f"×{scale}"


@pytest.mark.parametrize("scale", [2, 4])
@pytest.mark.parametrize("size", [(12, 12), (40, 48)])
def test_constant_pictures_of_many_colours_keep_them(model: Model, size: tuple[int, int], scale: int):
    worst: dict[tuple[int, ...], int] = {}
    for colour in product((0, 128, 255), repeat=3):
        large = srno.upscale(np.full((*size, 3), colour, np.uint8), scale=scale, model=model)
        worst[colour] = int(np.abs(large.astype(int) - colour).max())
    assert {colour: off for colour, off in worst.items() if off > 2} == {}


@pytest.mark.parametrize("scale", [12, 30])
def test_a_constant_picture_keeps_its_colours_at_large_factors(model: Model, scale: int):
    image = np.full((6, 5, 3), (200, 100, 50), np.uint8)
    assert np.abs(srno.upscale(image, scale=scale, model=model).astype(int) - (200, 100, 50)).max() <= 2


@pytest.mark.parametrize("name", ["cat", "coffee", "rocket"])
@pytest.mark.parametrize("scale", [2, 3.3, 4])
def test_mean_colours_are_preserved(model: Model, name: str, scale: float):
    image = example(name)
    large = srno.upscale(Image.fromarray(image), scale=scale, model=model)
    reduced = np.asarray(large.resize((CROP, CROP), Image.Resampling.BICUBIC))
    shift = reduced.reshape(-1, 3).mean(axis=0) - image.reshape(-1, 3).mean(axis=0)
    assert np.abs(shift).max() <= 1


@pytest.mark.parametrize("name", ["cat", "coffee", "rocket"])
def test_scale_one_gives_the_input_back(model: Model, name: str):
    image = example(name)
    assert np.array_equal(srno.upscale(image, scale=1, model=model), image)


@pytest.mark.parametrize("name", ["cat", "coffee", "rocket"])
def test_psnr_is_better_than_bicubic(model: Model, name: str):
    image = Image.fromarray(example(name))
    small = image.resize((CROP // 2, CROP // 2), Image.Resampling.BICUBIC)
    bicubic = small.resize((CROP, CROP), Image.Resampling.BICUBIC)
    large = srno.upscale(small, scale=2, model=model)
    truth = np.asarray(image)
    assert psnr(np.asarray(large), truth) > psnr(np.asarray(bicubic), truth) + 0.3


def test_the_ensemble_is_not_worse(model: Model):
    image = Image.fromarray(example("cat"))
    small, truth = image.resize((CROP // 2, CROP // 2), Image.Resampling.BICUBIC), np.asarray(image)
    one, eight = (srno.upscale(small, scale=2, model=model, ensemble=many) for many in (False, True))
    assert psnr(np.asarray(eight), truth) > psnr(np.asarray(one), truth) - 0.02
