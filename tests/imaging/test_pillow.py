"""Conversion of Pillow images of every mode."""

import numpy as np
import pytest
from making import CMYK, P3, SRGB, camera_exif, noise
from PIL import Image

from srno.errors import SRNOError
from srno.imaging.picture import Picture
from srno.imaging.pillow import from_pillow, to_pillow


@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "La", "RGBa", "I;16"]
)
def test_every_mode_gives_the_samples_that_pillow_shows(mode: str) -> None:
    source = Image.fromarray(noise(9, 14, bits=16)) if mode == "I;16" else Image.fromarray(noise(9, 14, 4))
    steps = {"La": ("LA", "La"), "PA": ("P", "PA"), "I;16": ()}.get(mode, (mode,))
    image = source
    for step in steps:
        image = (image.convert("RGB") if step in ("HSV", "YCbCr", "P") else image).convert(step)
    picture = from_pillow(image)
    assert picture.size == (14, 9)
    assert picture.bits == (16 if mode == "I;16" else 8)
    if mode == "I;16":
        assert np.array_equal(picture.colour[..., 0], np.asarray(image))
    elif mode == "CMYK":
        assert (picture.channels, picture.icc) == (3, SRGB)
    else:
        assert picture.channels == {"1": 1, "L": 1, "LA": 2, "La": 2, "PA": 4, "RGBA": 4, "RGBa": 4}.get(mode, 3)
        shown = np.asarray(image.convert({1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[picture.channels]))
        assert np.array_equal(picture.samples(), shown.reshape(9, 14, -1))


@pytest.mark.parametrize("mode", ["I", "F"])
def test_32_bits_are_refused(mode: str) -> None:
    with pytest.raises(SRNOError, match=rf"mode {mode} \(32 bits\)"):
        from_pillow(Image.fromarray(noise(9, 14)).convert(mode))


def test_metadata_is_kept() -> None:
    image = Image.fromarray(noise(9, 14, 3))
    image.info.update(icc_profile=P3, exif=camera_exif(6).tobytes(), dpi=(300, 200))
    picture = from_pillow(image)
    assert (picture.icc, picture.dpi) == (P3, (300, 200))
    back = to_pillow(picture)
    assert (back.mode, back.info["icc_profile"], back.getexif()[271]) == ("RGB", P3, "Canon")
    image.info["icc_profile"] = CMYK
    assert from_pillow(image).icc is None


def test_16_bits_become_8() -> None:
    picture = Picture(colour=np.full((2, 3, 1), 65535, np.uint16), alpha=np.full((2, 3), 257, np.uint16))
    assert np.asarray(to_pillow(picture)).tolist() == [[[255, 1]] * 3] * 2
