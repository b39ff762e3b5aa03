"""Conversion of samples to floats and back."""

import numpy as np
import pytest
from making import noise

from srno.imaging.picture import Picture, from_float, to_float


@pytest.mark.parametrize("bits", [8, 16])
def test_the_round_trip_through_floats_is_exact(bits: int) -> None:
    levels = np.arange(2**bits, dtype=np.uint16 if bits == 16 else np.uint8)
    floats = to_float(levels)
    assert floats.dtype == np.float32
    assert (floats[0], floats[-1]) == (0, 1)
    back = from_float(floats, bits)
    assert back.dtype == levels.dtype
    assert np.array_equal(back, levels)


def test_floats_are_rounded_and_clipped() -> None:
    values = np.array([-3, -0.001, 0.49 / 255, 0.5 / 255, 1.49 / 255, 1.5 / 255, 0.5, 254.5 / 255, 1.001, 7])
    assert from_float(values, 8).tolist() == [0, 0, 0, 1, 1, 2, 128, 255, 255, 255]
    assert from_float(values.astype(np.float32), 16)[[0, 6, 9]].tolist() == [0, 32768, 65535]


def test_changing_bits_rounds_to_the_nearest() -> None:
    wide = Picture(colour=np.arange(65536, dtype=np.uint16).reshape(256, 256, 1), alpha=noise(256, 256, bits=16))
    narrow = wide.with_bits(8)
    exact = np.floor(np.arange(65536) / 257 + 0.5).reshape(256, 256)
    assert np.array_equal(narrow.colour[..., 0], exact)
    assert narrow.alpha is not None
    assert narrow.alpha.dtype == np.uint8
    assert np.array_equal(narrow.with_bits(16).with_bits(8).colour, narrow.colour)
    assert wide.with_bits(16) is wide


def test_size_bits_and_channels() -> None:
    picture = Picture(colour=noise(5, 7, 3, bits=16), alpha=noise(5, 7, bits=16))
    assert (picture.size, picture.bits, picture.channels) == ((7, 5), 16, 4)
    assert picture.samples().shape == (5, 7, 4)


@pytest.mark.parametrize(
    ("colour", "alpha"),
    [
        (noise(5, 7), None),
        (noise(5, 7, 2), None),
        (noise(0, 7, 3), None),
        (np.zeros((5, 7, 3), np.float32), None),
        (noise(5, 7, 3), noise(7, 5)),
        (noise(5, 7, 3), noise(5, 7, bits=16)),
    ],
)
def test_wrong_shapes_are_refused(colour: np.ndarray, alpha: np.ndarray | None) -> None:
    with pytest.raises(ValueError, match=r"colour|alpha"):
        Picture(colour=colour, alpha=alpha)
