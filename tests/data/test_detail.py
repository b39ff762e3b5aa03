import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from srno.data.samples import BLOCK_SIDE, blocks, detail_map, place_anywhere, place_by_detail


@given(height=st.integers(1, 70), width=st.integers(1, 70), seed=st.integers(0, 99))
def test_the_map_is_the_gradient_summed_over_blocks(height: int, width: int, seed: int) -> None:
    picture = np.random.default_rng(seed).integers(256, size=(height, width, 3), dtype=np.uint8)
    gray = picture.astype(float).sum(axis=2)
    expected = np.zeros(blocks(height, width))
    for y in range(height - 1):
        for x in range(width - 1):
            length = np.hypot(gray[y + 1, x] - gray[y, x], gray[y, x + 1] - gray[y, x])
            expected[y // BLOCK_SIDE, x // BLOCK_SIDE] += length
    running = detail_map(picture)
    np.testing.assert_allclose(np.diff(running, prepend=0).reshape(expected.shape), expected, rtol=1e-5, atol=1e-2)


@given(height=st.integers(8, 90), width=st.integers(8, 90), seed=st.integers(0, 999), data=st.data())
def test_crops_lie_inside_the_picture(height: int, width: int, seed: int, data: st.DataObject) -> None:
    side = data.draw(st.integers(1, min(height, width)))
    rng = np.random.default_rng(seed)
    picture = rng.integers(256, size=(height, width, 3), dtype=np.uint8)
    for top, left in (
        place_by_detail(detail_map(picture), (height, width), side, rng),
        place_anywhere((height, width), side, rng),
    ):
        assert 0 <= top <= height - side
        assert 0 <= left <= width - side


def test_crops_placed_by_detail_overlap_its_block() -> None:
    picture = np.full((128, 96, 3), 90, np.uint8)
    picture[70, 50] = 200
    rng = np.random.default_rng(0)
    for _ in range(200):
        top, left = place_by_detail(detail_map(picture), (128, 96), 40, rng)
        assert top <= 64 + BLOCK_SIDE
        assert top + 40 > 64
        assert left <= 48 + BLOCK_SIDE
        assert left + 40 > 48


def test_a_flat_picture_is_cropped_anywhere() -> None:
    picture, rng = np.zeros((40, 40, 3), np.uint8), np.random.default_rng(0)
    places = {place_by_detail(detail_map(picture), (40, 40), 36, rng) for _ in range(500)}
    assert len(places) == 25
