"""A field that is encoded block by block equals one that is encoded as a whole."""

import threading
from collections.abc import Hashable
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rivals.rival_models import POINTWISE, random_rival
from small_models import CONFIGS, random_image, random_model
from srno.field.blocks import BlockField
from srno.field.field import Region, lift
from srno.field.sample_windows import QUADRATURE_POINTS, SAMPLE_BATCH, SAMPLE_COUNTS
from srno.operator.encoder import radius
from srno.operator.model import Model
from srno.operator.sampling import whole_picture
from srno.server.store import Store
from tolerances import assert_close

RENDER_TOLERANCE = 2e-5
"""Largest difference of two renders of the same points in other pieces, relative to values above 1."""


def block_field(model: Model, image: Tensor, *, side: int = 16, longest: int = 0, memory: int = 1 << 30) -> BlockField:
    """A field of image (3, h, w) with a cache of its own."""
    return BlockField(
        model=model,
        size=(image.shape[1], image.shape[2]),
        pixels=lambda rows, columns: image[:, rows, columns],
        cache=Store(memory),
        side=side,
        longest=longest,
    )


def picture(height: int, width: int, seed: int = 1) -> Tensor:
    return random_image(height, width, seed=seed)[0].float()


def difference(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max().clamp(min=1))


sides = st.integers(1, 17)


@settings(max_examples=30)
@given(st.sampled_from(["edsr", "rdn"]), st.integers(1, 40), st.integers(1, 40), sides, sides, st.randoms())
def test_the_features_of_every_piece_are_those_of_the_whole_picture(
    name: str, height: int, width: int, side: int, longest: int, random: Random
):
    model, image = random_model(CONFIGS[name], dtype=torch.float32), picture(height, width)
    whole, field = lift(model, image).features, block_field(model, image, side=side, longest=longest)
    for _ in range(4):  # later pieces find some of their blocks
        top, left = random.randrange(height), random.randrange(width)
        bottom, right = random.randint(top + 1, height), random.randint(left + 1, width)
        assert_close(field.features.encode((top, left, bottom, right)), whole[top:bottom, left:right])


regions = st.tuples(st.floats(0, 0.9), st.floats(0, 0.9), st.floats(0.01, 1), st.floats(0.01, 1))


@settings(max_examples=40)
@given(st.sampled_from(sorted(CONFIGS)), regions, st.integers(1, 60), st.integers(1, 60), st.integers(3, 30))
def test_a_region_of_a_small_picture_equals_that_of_the_lifted_picture(
    name: str, share: Region, height: int, width: int, side: int
):
    model, image = random_model(CONFIGS[name], dtype=torch.float32), picture(23, 31)
    top, left = share[0] * 23, share[1] * 31
    region = (top, left, top + max(0.01, share[2] * (23 - top)), left + max(0.01, share[3] * (31 - left)))
    rendered = block_field(model, image, side=side).render((height, width), region=region)
    expected = lift(model, image).render((height, width), region=region, integral=QUADRATURE_POINTS)
    assert difference(rendered, expected) < RENDER_TOLERANCE


@pytest.mark.parametrize("name", sorted(POINTWISE))
def test_a_region_of_a_pointwise_rival_equals_that_of_the_lifted_picture(name: str):
    model, image = random_rival(POINTWISE[name], dtype=torch.float32), picture(40, 30)
    region = (7.3, 4.9, 31.0, 22.2)
    rendered = block_field(model, image, side=9).render((50, 40), region=region)
    assert difference(rendered, lift(model, image).render((50, 40), region=region)) < RENDER_TOLERANCE


@pytest.fixture(scope="module")
def model() -> Model:
    return random_model(CONFIGS["edsr"], dtype=torch.float32)


@pytest.fixture(scope="module")
def large() -> Tensor:
    """A picture whose integral is sampled: its left half is smooth, its right half is noise."""
    image = picture(300, 420)
    image[:, :, :210] = torch.linspace(-1, 1, 300).reshape(1, -1, 1)
    return image


REGION = (130.0, 190.0, 160.0, 230.0)


def test_only_the_blocks_that_a_region_needs_are_encoded(model, large):
    field = block_field(model, large, side=32)
    assert field.missing(REGION) == [(96, 160, 192, 256)]
    halo = radius(model.encoder)
    assert field.features.cost((0, 160, 192, 420)) == (192 + halo) * (
        260 + halo
    )  # the picture ends at its top and right
    field.render((60, 80), region=REGION, version=1)
    assert field.missing(REGION) == []
    assert field.features.cost((96, 160, 192, 256)) == 0
    assert field.features.cost((96, 160, 192, 300)) == (96 + 2 * halo) * (64 + 2 * halo)  # whole blocks


def test_the_pieces_of_a_region_are_small_and_the_nearest_comes_first(model, large):
    field = block_field(model, large, side=16, longest=64)
    pieces = field.missing((10.0, 20.0, 290.0, 400.0))
    assert all(bottom - top <= 64 and right - left <= 64 for top, left, bottom, right in pieces)
    assert sum((bottom - top) * (right - left) for top, left, bottom, right in pieces) == 300 * 400
    away = [abs(top + bottom - 300) ** 2 + abs(left + right - 420) ** 2 for top, left, bottom, right in pieces]
    assert away == sorted(away)


def test_the_parts_of_a_window_share_its_pieces(model, large):
    field, window = block_field(model, large, longest=64), (100.0, 100.0, 200.0, 260.0)
    parts = [(100.0 + y, 100.0 + x, 120.0 + y, 120.0 + x) for y in range(0, 100, 20) for x in range(0, 160, 20)]
    needs = [
        field.missing(part, window) for part in parts if not (part[0] <= 150 < part[2] and part[1] <= 180 < part[3])
    ]
    assert {piece for pieces in needs for piece in pieces} == set(field.missing(window))
    assert len(field.missing(parts[0], window)) == 1


def test_the_part_in_the_centre_has_a_piece_of_its_own_if_that_is_much_smaller(model, large):
    field, window = block_field(model, large), (40.0, 50.0, 240.0, 370.0)
    centre = (140.0, 200.0, 156.0, 216.0)
    assert field.missing(centre, window) == [(128, 192, 160, 224)]
    beside = field.missing((140.0, 220.0, 156.0, 236.0), window)
    assert beside
    assert set(beside) <= set(field.missing(window))
    assert field.missing((50.0, 60.0, 230.0, 360.0), window) == field.missing(window)


def test_a_version_gives_the_same_pixels_whatever_is_encoded_later(model, large):
    field = block_field(model, large, side=64)
    assert (field.versions, field.version) == (2, 0)
    first = field.render((60, 80), region=REGION, version=1)
    assert field.version == 1
    while field.refine():
        pass
    assert field.version == 2
    assert torch.equal(field.render((60, 80), region=REGION, version=1), first)
    last = field.render((60, 80), region=REGION, version=2)
    assert torch.equal(field.render((60, 80), region=REGION), last)
    assert not torch.equal(first, last)


@pytest.mark.parametrize("scale", [1.0, 2.0, 3.3])
def test_the_sampled_integral_approaches_that_of_the_whole_picture(model, large, scale):
    size = (round(300 * scale), round(420 * scale))
    field, whole = block_field(model, large, side=64), lift(model, large)
    exact = whole.integrate(size, integral="exact")
    errors = [
        max(float((one.A - other.A).norm() / other.A.norm()) for one, other in zip(layers, exact, strict=True))
        for layers in (field.integrate(size, version) for version in (1, 2))
    ]
    assert errors[0] < 0.1
    assert errors[1] < min(0.02, errors[0])


def test_the_samples_are_spread_over_the_picture(model, large):
    samples = block_field(model, large).samples
    assert samples is not None
    for count in SAMPLE_COUNTS:
        rows, columns = (torch.tensor(axis, dtype=torch.float64) + 4 for axis in samples._corners(0, count))
        cells = ((rows / 300 * 4).long() * 4 + (columns / 420 * 4).long()).bincount(minlength=16)
        assert cells.min() >= 0.6 * count / 16
        assert cells.max() <= 1.4 * count / 16


def test_sample_points_lie_on_output_pixels_within_their_windows(model, large):
    samples = block_field(model, large).samples
    assert samples is not None
    points = samples._points(whole_picture((300, 420), (703, 990)), SAMPLE_BATCH)
    corners = samples._corners(0, SAMPLE_BATCH)
    for axis, (n, size) in enumerate(zip((300, 420), (703, 990), strict=True)):
        corner = torch.tensor(corners[axis], dtype=torch.float64).unsqueeze(-1)
        start = (corner - 1).clamp(0, n - 10)
        place = start + (points[..., axis] + 1) * 10 / 2
        assert (place >= corner - 0.5).all()
        assert (place <= corner + 8.5).all()
        pixel = place * size / n - 0.5
        assert (pixel - pixel.round()).abs().max() < 1e-9


def test_a_narrow_picture_is_sampled(model):
    image = picture(3, 30_000)
    field = block_field(model, image)
    assert field.versions == 2
    assert field.render((12, 40), region=(0.0, 29_980.0, 3.0, 29_990.0), version=1).isfinite().all()


class Counting(Store):
    """A store that counts what is offered."""

    def __init__(self, memory: int) -> None:
        super().__init__(memory)
        self.offered: list[Hashable] = []

    def offer(self, key: Hashable, value: object, size: int) -> None:
        self.offered.append(key)
        super().offer(key, value, size)


def counted_field(model: Model, image: Tensor) -> tuple[BlockField, Counting]:
    """A field whose cache counts what it is offered, and the cache."""
    cache = Counting(1 << 30)
    size = (image.shape[-2], image.shape[-1])
    field = BlockField(
        model=model, size=size, pixels=lambda rows, columns: image[:, rows, columns], cache=cache, side=50, longest=50
    )
    return field, cache


def test_threads_share_blocks_and_get_the_same_pixels(model, large):
    field, cache = counted_field(model, large)
    results: list[Tensor] = []
    threads = [
        threading.Thread(target=lambda: results.append(field.render((90, 90), region=REGION, version=1)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(torch.equal(one, results[0]) for one in results)
    assert len(cache.offered) == len(set(cache.offered))


@pytest.mark.parametrize("memory", [1, 60_000])
def test_a_small_cache_changes_the_work_but_not_the_pixels(model, large, memory):
    roomy, tight = (block_field(model, large, side=32, memory=size) for size in (1 << 30, memory))
    for region in (REGION, (0.0, 0.0, 40.0, 30.0), REGION):
        expected = roomy.render((50, 50), region=region, version=1)
        assert torch.equal(tight.render((50, 50), region=region, version=1), expected)
    assert isinstance(tight.cache, Store)
    assert tight.cache.used <= memory


def test_a_cancelled_render_stops_between_blocks(model, large):
    field, cache = counted_field(model, large)
    field.integrate((600, 840), 1)

    def stop(_share: float) -> None:
        if len(cache.offered) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        field.render((600, 840), region=(0.0, 0.0, 300.0, 420.0), version=1, progress=stop)
    assert len(cache.offered) == 3
    assert field.render((20, 20), region=REGION, version=1).isfinite().all()  # no lock is held any more


def test_progress_rises_to_one(model, large):
    shares: list[float] = []
    field = block_field(model, large, side=50)
    field.render((300, 420), region=(0.0, 0.0, 300.0, 420.0), version=1, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_another_thread_computes_the_block_if_the_first_one_fails(model, large):
    failures = iter([True])

    def pixels(rows: slice, columns: slice) -> Any:
        if next(failures, False):
            raise OSError
        return large[:, rows, columns]

    field = BlockField(model=model, size=(300, 420), pixels=pixels, cache=Store(1 << 30))
    with pytest.raises(OSError):  # noqa: PT011
        field.features.encode((0, 0, 20, 30))
    assert field.features.encode((0, 0, 20, 30)).shape == (20, 30, 5)


def test_the_repr_is_one_line(model, large):
    assert repr(block_field(model, large)) == "BlockField(SRNO, 300×420 pixels in blocks of 16)"
