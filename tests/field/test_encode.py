"""Encoding in tiles, with progress."""

from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from srno.config import EDSRConfig, RDNConfig
from srno.field.encode import encode
from srno.field.plan import encoder_tile
from srno.operator.encoder import live_channels, make_encoder, radius

ENCODERS = {
    "edsr": make_encoder(EDSRConfig(channels=4, blocks=2)),
    "rdn": make_encoder(RDNConfig(channels=4, growth=4, blocks=2, layers=2)),
}


@settings(max_examples=25)
@given(st.tuples(st.integers(1, 40), st.integers(1, 40)), st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_any_tile_gives_the_features_of_the_whole_picture(size: tuple[int, int], tile: tuple[int, int]):
    image = torch.rand(1, 3, *size)
    for encoder in ENCODERS.values():
        with torch.no_grad():
            whole = encoder(image)[0].permute(1, 2, 0)
            assert torch.allclose(encode(encoder, image, tile), whole, atol=1e-5)


@given(st.integers(1, 20000), st.integers(1, 20000), st.integers(22, 34))
def test_the_tile_fits_the_budget_and_its_halo_is_small(height: int, width: int, log_budget: int):
    encoder = ENCODERS["edsr"]
    halo, budget = radius(encoder), 1 << log_budget
    rows, columns = encoder_tile(encoder, (height, width), budget)
    assert 1 <= rows <= height
    assert 1 <= columns <= width
    outer = min(height, rows + 2 * halo) * min(width, columns + 2 * halo)
    pixels = budget // (4 * live_channels(encoder))
    smallest = max(halo, 16)
    assert outer <= pixels or (rows <= smallest and columns <= smallest)
    square = pixels**0.5 - 2 * halo
    if square > smallest:  # no worse than a square tile, up to rounding to whole tiles
        assert outer / (rows * columns) <= 1.1 * pixels / square**2


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 40), st.sampled_from(sorted(ENCODERS)))
def test_progress_rises_to_one_and_does_not_change_the_features(rows: int, columns: int, height: int, name: str):
    encoder, image, shares, tile = ENCODERS[name], torch.rand(1, 3, height, 9), list[float](), (rows, columns)
    with torch.no_grad(), patch("srno.field.encode.SMALL_PIXELS", 0):
        with_progress = encode(encoder, image, tile, shares.append)
        assert torch.equal(with_progress, encode(encoder, image, tile))
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5
    assert shares[-1] == 1
    before = len(shares)
    encoder(image)  # the encoder itself has no hooks: other threads may use it at the same time
    assert len(shares) == before


def test_a_small_picture_reports_its_progress_once():
    shares = list[float]()
    encode(ENCODERS["edsr"], torch.rand(1, 3, 9, 9), (9, 9), shares.append)
    assert shares == [1]


def test_progress_can_cancel():
    def stop(_share: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        encode(ENCODERS["edsr"], torch.rand(1, 3, 9, 9), (9, 9), stop)
