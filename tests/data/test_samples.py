from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from srno.data.samples import DrawnSample, SampleConfig, detail_map, draw_sample, window
from srno.errors import SRNOError

Pixels = NDArray[np.uint8]


def position_picture(height: int, width: int) -> Pixels:
    """A picture whose pixels hold their position: (row, column, 7)."""
    rows, columns = np.mgrid[:height, :width]
    return np.stack([rows, columns, np.full_like(rows, 7)], axis=-1).astype(np.uint8)


def draw(picture: Pixels, config: SampleConfig, seed: int) -> DrawnSample:
    return draw_sample(picture, detail_map(picture), config, np.random.default_rng(seed))


def pixels_of(sample: DrawnSample, patch: int) -> tuple[int, NDArray[np.int64]]:
    """The crop's side and the pixels (n_q, 2) that the coordinates mean, which must be pixel centres."""
    n = round(2 * patch / sample.cell[0])
    assert sample.cell == pytest.approx((2 * patch / n,) * 2)
    indices = np.rint(((sample.coords.astype(float) + 1) * n - 1) / 2).astype(np.int64)
    centres = (-1 + (2 * indices + 1) / n).astype(np.float32)
    np.testing.assert_allclose(sample.coords, centres, rtol=0, atol=1e-7)
    assert indices.min() >= 0
    assert indices.max() < n
    return n, indices


def turns(crop: Pixels) -> list[Pixels]:
    """The eight flips and transposes of a square."""
    flips = [crop[::y, ::x] for y, x in product((1, -1), repeat=2)]
    return [*flips, *(flip.swapaxes(0, 1) for flip in flips)]


def source(picture: Pixels, sample: DrawnSample, patch: int) -> tuple[int, Pixels]:
    """Number of the turn and the HR crop from which a sample of a `position_picture` must have come."""
    n, indices = pixels_of(sample, patch)
    rows, columns = sample.target[:, 0].astype(int), sample.target[:, 1].astype(int)
    fitting: list[tuple[int, Pixels]] = []
    for number, (rows_in, columns_in) in enumerate(
        zip(*(turns(grid[..., None]) for grid in np.mgrid[:n, :n]), strict=True)
    ):
        tops = rows - rows_in[indices[:, 0], indices[:, 1], 0]
        lefts = columns - columns_in[indices[:, 0], indices[:, 1], 0]
        if np.ptp(tops) == 0 == np.ptp(lefts):
            fitting.append((number, picture[tops[0] : tops[0] + n, lefts[0] : lefts[0] + n]))
    assert len(fitting) == 1
    return fitting[0]


configs = st.builds(
    SampleConfig,
    patch=st.integers(6, 20),
    points=st.integers(20, 36),
    r_min=st.floats(1, 2),
    r_max=st.floats(2, 4.5),
    detail=st.sampled_from([0.0, 0.5, 1.0]),
)


@settings(max_examples=60)
@given(config=configs, seed=st.integers(0, 10**6))
def test_targets_are_the_pixels_at_the_coordinates_and_lr_is_their_crop(config: SampleConfig, seed: int) -> None:
    picture = position_picture(97, 110)
    sample = draw(picture, config, seed)
    number, crop = source(picture, sample, config.patch)
    n, indices = pixels_of(sample, config.patch)
    assert crop.shape == (n, n, 3)
    assert round(config.patch * config.r_min) <= n <= round(config.patch * config.r_max)
    np.testing.assert_array_equal(turns(crop)[number][indices[:, 0], indices[:, 1]], sample.target)
    lr = np.asarray(Image.fromarray(crop).resize((config.patch, config.patch), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(turns(lr)[number], sample.lr)


def test_all_turns_factors_and_positions_occur() -> None:
    picture = position_picture(50, 60)
    config = SampleConfig(patch=10, points=30)
    found = [source(picture, draw(picture, config, seed), 10) for seed in range(600)]
    assert {number for number, _ in found} == set(range(8))
    sides = [crop.shape[0] for _, crop in found]
    assert set(sides) == set(range(10, 41))
    assert np.mean(sides) == pytest.approx(25, abs=1.2)
    assert {int(crop[0, 0, 0]) for _, crop in found if crop.shape[0] == 40} <= set(range(11))
    assert {int(crop[0, 0, 1]) for _, crop in found} >= set(range(30))


@given(points=st.integers(1, 64), seed=st.integers(0, 10**6), r_max=st.floats(1, 4))
def test_points_are_drawn_without_replacement(points: int, seed: int, r_max: float) -> None:
    config = SampleConfig(patch=8, points=points, r_max=r_max)
    _, indices = pixels_of(draw(position_picture(40, 40), config, seed), 8)
    assert len({tuple(index) for index in indices.tolist()}) == points


def test_random_points_cover_the_crop_evenly() -> None:
    config = SampleConfig(patch=4, points=4, r_max=1)
    picture, counts = position_picture(8, 8), np.zeros((4, 4))
    for seed in range(2000):
        _, indices = pixels_of(draw(picture, config, seed), 4)
        np.add.at(counts, tuple(indices.T), 1)
    assert np.abs(counts - 500).max() < 100


@given(points=st.sampled_from([1, 12, 35, 36, 64]), seed=st.integers(0, 10**6))
def test_sequential_points_are_one_window(points: int, seed: int) -> None:
    config = SampleConfig(patch=8, points=points, sampling="sequential")
    _, indices = pixels_of(draw(position_picture(40, 40), config, seed), 8)
    assert len({tuple(index) for index in indices.tolist()}) == points
    spans = tuple(int(span) for span in np.ptp(indices, axis=0) + 1)
    assert spans in (window(points), window(points)[::-1])


@given(points=st.integers(1, 5000))
def test_window_is_the_squarest(points: int) -> None:
    rows, columns = window(points)
    assert rows * columns == points
    assert rows <= columns
    assert not any(points % between == 0 for between in range(rows + 1, int(points**0.5) + 1))


def test_a_small_picture_limits_the_factor() -> None:
    config = SampleConfig(patch=10, points=30, allow_small=True)
    assert config.smallest == 10
    sides = {pixels_of(draw(position_picture(23, 60), config, seed), 10)[0] for seed in range(300)}
    assert sides == set(range(10, 24))
    assert {pixels_of(draw(position_picture(10, 10), config, seed), 10)[0] for seed in range(20)} == {10}


def test_the_detail_share_sets_how_many_crops_are_placed_by_detail() -> None:
    picture = np.full((64, 256, 3), 128, np.uint8)
    picture[:, 224:] = np.random.default_rng(0).integers(256, size=(64, 32, 3))

    def share(detail: float) -> float:
        config = SampleConfig(patch=16, points=64, r_max=1, detail=detail)
        return float(np.mean([draw(picture, config, seed).lr.std() > 1 for seed in range(400)]))

    assert share(0) == pytest.approx(32 / 241, abs=0.05)
    assert share(1) > 0.95  # blocks beside the detail contain part of its edge
    assert share(0.5) == pytest.approx((0.98 + 32 / 241) / 2, abs=0.08)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"points": 2305}, "points 2305.*at most 2304"),
        ({"points": 2311, "r_min": 1.1, "sampling": "sequential"}, "1×2311 does not fit"),
        ({"points": 0}, "at least 1"),
        ({"r_min": 3.0, "r_max": 2.0}, "r_min 3, r_max 2"),
        ({"r_min": 0.5}, "r_min 0.5"),
        ({"detail": 1.5}, "detail 1.5"),
        ({"sampling": "sorted"}, "choose random or sequential"),
        ({"degradation": "blur"}, "choose from bicubic"),
    ],
)
def test_a_wrong_setting_is_an_error(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(SRNOError, match=message):
        SampleConfig(**({"patch": 48, "points": 1152} | wrong))  # type: ignore[arg-type]


def test_flat_crops_occur_in_their_share_and_keep_the_picture() -> None:
    picture = np.random.default_rng(0).integers(256, size=(80, 80, 3), dtype=np.uint8)
    samples = [draw(picture, SampleConfig(patch=8, points=16, flat=0.25), seed) for seed in range(400)]
    flat = [sample for sample in samples if (sample.target == sample.target[0]).all()]
    assert 60 < len(flat) < 140
    for sample in flat:
        assert (sample.lr == sample.target[0]).all()
    colours = np.array([sample.target[0] for sample in flat])
    assert ((colours == 0) | (colours == 255)).mean() > 0.3
    assert np.array_equal(picture, np.random.default_rng(0).integers(256, size=(80, 80, 3), dtype=np.uint8))
