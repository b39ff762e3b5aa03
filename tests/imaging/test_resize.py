"""Both bicubic resamplings: exact values of MATLAB's, and properties of any resampling."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from imaging.imresize_loops import imresize
from shared_data import BENCHMARK_SETS
from srno.imaging.resize import matlab_bicubic, matlab_bicubic_float, pillow_bicubic

sides = st.integers(1, 24)
sizes = st.tuples(sides, sides)


def random_picture(shape: tuple[int, ...], seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def kernel(x: NDArray[np.floating]) -> NDArray[np.float64]:
    x = np.abs(x)
    near, far = 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def resampling_matrix(n: int, m: int) -> NDArray[np.float64]:
    """(m, n): the definition, with samples at pixel centres, a kernel widened when n > m, and repeated edges."""
    ratio = n / m
    width = max(ratio, 1)
    centres = (np.arange(m) + 0.5) * ratio - 0.5
    taps = np.arange(-math.ceil(3 * width) - 1, n + math.ceil(3 * width) + 2)
    weights = kernel((centres[:, None] - taps) / width)
    matrix = np.zeros((m, n))
    for tap, column in zip(np.clip(taps, 0, n - 1), weights.T, strict=True):
        matrix[:, tap] += column
    return matrix / matrix.sum(axis=1, keepdims=True)


def synthetic_picture(height: int, width: int) -> NDArray[np.uint8]:
    """(height, width, 3): a fine grating, a disc with hard edges, noise at the extremes, and flat regions."""
    y, x = np.mgrid[:height, :width]
    grating = 127.5 + 127.5 * np.sin(0.9 * x + 0.05 * y * y)
    disc = np.where(np.hypot(y - height / 2, x - width / 3) < height / 3, 255, 20)
    noise = np.random.default_rng(7).choice([0, 128, 255], (height, width))
    return np.stack([grating, disc, noise], axis=2).astype(np.uint8)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        *(((24, 36), (24 // factor, 36 // factor)) for factor in (2, 3, 4, 6)),
        ((30, 20), (12, 8)),
        ((7, 14), (1, 2)),
        ((9, 12), (15, 20)),
    ],
    ids=["x2", "x3", "x4", "x6", "x2.5", "x7", "enlarged"],
)
def test_matlab_resize_is_imresize_written_as_loops(shape: tuple[int, int], size: tuple[int, int]) -> None:
    image = synthetic_picture(*shape)
    assert (matlab_bicubic(image, size) == imresize(image, size)).all()


@pytest.mark.benchmark_sets("eval/Set5")
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_the_loops_reproduce_files_that_matlab_made(factor: int) -> None:
    """A corner of one picture, so that the border is compared as well as the inside."""
    hr = np.asarray(Image.open(BENCHMARK_SETS / "Set5" / "HR" / "img_002.png"))
    lr = np.asarray(Image.open(BENCHMARK_SETS / "Set5" / "LR_bicubic" / f"X{factor}" / "img_002.png"))
    side = 12
    corner = np.ascontiguousarray(hr[: (side + 4) * factor, : (side + 4) * factor])
    made = imresize(corner, (side + 4, side + 4))
    assert (made[:side, :side] == lr[:side, :side]).all()


@pytest.mark.benchmark_sets("eval/Set5", "eval/Set14", "eval/B100")
@pytest.mark.parametrize("factor", [2, 3, 4])
@pytest.mark.parametrize("name", ["Set5", "Set14", "B100"])
def test_matlab_downscale_reproduces_every_value_of_the_published_files(name: str, factor: int) -> None:
    folder = BENCHMARK_SETS / name
    wrong = {}
    for path in sorted((folder / "HR").iterdir()):
        expected = np.asarray(Image.open(folder / "LR_bicubic" / f"X{factor}" / path.name))
        size = expected.shape[:2]
        hr = np.asarray(Image.open(path))[: size[0] * factor, : size[1] * factor]
        wrong[path.name] = int(np.count_nonzero(matlab_bicubic(hr, size) != expected))
    assert wrong
    assert not any(wrong.values()), wrong


@given(shape=sizes, size=sizes)
@settings(max_examples=60)
def test_the_float_variant_equals_the_definition(shape: tuple[int, int], size: tuple[int, int]) -> None:
    image = random_picture((*shape, 3)).astype(np.float32) / np.float32(255)
    rows, columns = resampling_matrix(shape[0], size[0]), resampling_matrix(shape[1], size[1])
    expected = np.einsum("yh,hwc,xw->yxc", rows, image, columns)
    np.testing.assert_allclose(matlab_bicubic_float(image, size), expected, atol=3e-6)


@given(shape=sizes, size=sizes, value=st.integers(0, 255), gray=st.booleans())
@settings(max_examples=60)
def test_size_is_rows_first_and_a_flat_picture_stays_flat(
    shape: tuple[int, int], size: tuple[int, int], value: int, gray: bool
) -> None:
    channels = () if gray else (3,)
    flat = np.full((*shape, *channels), value, dtype=np.uint8)
    for resize in (pillow_bicubic, matlab_bicubic):
        resized = resize(flat, size)
        assert resized.dtype == np.uint8
        assert resized.shape == (*size, *channels)
        assert (resized == value).all()


@pytest.mark.parametrize("resize", [pillow_bicubic, matlab_bicubic])
def test_the_same_size_changes_nothing_and_channels_are_independent(resize) -> None:
    image = random_picture((17, 12, 3))
    assert (resize(image, (17, 12)) == image).all()
    smaller = resize(image, (7, 9))
    for channel in range(3):
        assert (resize(np.ascontiguousarray(image[..., channel]), (7, 9)) == smaller[..., channel]).all()


@given(shape=sizes, size=sizes)
@settings(max_examples=40)
def test_flips_and_transposes_commute_with_the_float_variant(shape: tuple[int, int], size: tuple[int, int]) -> None:
    image = random_picture((*shape, 3)).astype(np.float32) / np.float32(255)
    resized = matlab_bicubic_float(image, size)
    np.testing.assert_allclose(matlab_bicubic_float(image[::-1, ::-1], size), resized[::-1, ::-1], atol=3e-6)
    transposed = matlab_bicubic_float(image.swapaxes(0, 1), (size[1], size[0]))
    np.testing.assert_allclose(transposed, resized.swapaxes(0, 1), atol=3e-6)


def test_float_variant_neither_rounds_nor_clips() -> None:
    step = np.zeros((8, 8), dtype=np.float32)
    step[:, 4:] = 1
    resized = matlab_bicubic_float(step, (16, 16))
    assert resized.min() < 0
    assert resized.max() > 1


def test_the_two_kernels_differ_only_a_little_and_mostly_at_the_border() -> None:
    image = random_picture((64, 64))
    difference = np.abs(pillow_bicubic(image, (32, 32)).astype(int) - matlab_bicubic(image, (32, 32)))
    assert difference[2:-2, 2:-2].max() <= 1
    assert difference.max() > 1
