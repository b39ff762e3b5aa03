"""One palette for all frames: still regions keep their indices, flat regions stay flat."""

import numpy as np
import pytest
from making import noise

from srno.imaging.animated_gif import MAX_COLOURS, TRANSPARENT, make_palette
from srno.imaging.picture import Picture


def gradient(height: int = 48, width: int = 64) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 255 // width, y * 255 // height, (x + y) * 255 // (height + width)], axis=-1).astype(np.uint8)


def shown(picture: Picture, count: int = 1) -> np.ndarray:
    palette = make_palette([picture] * count, count)
    return palette.colours[np.minimum(palette.indices(picture), len(palette.colours) - 1)]


def test_few_colours_are_exact() -> None:
    picture = Picture(colour=noise(30, 40, 3) // 64 * 64 + 7)
    assert len(np.unique(picture.colour.reshape(-1, 3), axis=0)) <= 64
    assert np.array_equal(shown(picture), picture.colour)


def test_a_pixel_that_does_not_change_keeps_its_index() -> None:
    still = gradient()
    other = still.copy()
    other[10:20, 10:20] = noise(10, 10, 3)
    pictures = [Picture(colour=still), Picture(colour=other)]
    palette = make_palette(pictures, 2)
    first, second = (palette.indices(picture) for picture in pictures)
    changed = (still != other).any(axis=2)
    assert np.array_equal(first[~changed], second[~changed])


def test_dithering_keeps_the_mean_colour_of_a_gradient() -> None:
    picture = Picture(colour=gradient(160, 160))
    blocks = (shown(picture).astype(float) - picture.colour).reshape(10, 16, 10, 16, 3).mean(axis=(1, 3))
    assert np.abs(blocks).max() < 8


def test_transparent_pixels_have_their_own_index() -> None:
    alpha = np.where(noise(48, 64) > 127, np.uint8(255), np.uint8(0))
    picture = Picture(colour=gradient(), alpha=alpha)
    palette = make_palette([picture], 1)
    assert len(palette.colours) <= MAX_COLOURS
    assert np.array_equal(palette.indices(picture) == TRANSPARENT, alpha == 0)


def test_an_animation_without_visible_pixels_has_a_palette() -> None:
    picture = Picture(colour=gradient(), alpha=np.zeros((48, 64), np.uint8))
    assert (make_palette([picture], 1).indices(picture) == TRANSPARENT).all()


@pytest.mark.parametrize("value", [0, 7, 255])
def test_one_colour_is_one_entry(value: int) -> None:
    picture = Picture(colour=np.full((5, 6, 1), value, np.uint8))
    palette = make_palette([picture], 1)
    assert palette.notes == ()
    assert palette.colours.tolist() == [[value] * 3]
    assert np.array_equal(palette.indices(picture), np.zeros((5, 6)))


def test_reduced_colours_are_noted() -> None:
    assert make_palette([Picture(colour=gradient())], 1).notes == ("colours reduced to 255: GIF cannot hold more",)
