"""HEIC files: depth, rotation, profile and metadata."""

import sys

import numpy as np
import pytest
from making import MAKE, P3, SRGB, XMP, camera_exif, heif, noise
from PIL import Image

from srno.errors import SRNOError
from srno.imaging.head import read_head
from srno.imaging.read import read


def ramp(channels: int, top: int) -> np.ndarray:
    """Levels from 0 to `top`, (32, 48, channels)."""
    levels = np.linspace(0, top, 32 * 48).round().reshape(32, 48, 1)
    return np.repeat(levels, channels, axis=2).astype(np.uint16 if top > 255 else np.uint8)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_8_bits(channels: int) -> None:
    samples = noise(32, 48, channels)
    picture = read(heif(samples))
    assert (picture.format, picture.bits, picture.channels, picture.size) == ("HEIF", 8, channels, (48, 32))
    assert np.abs(picture.samples().astype(int) - samples).max() <= 1


@pytest.mark.parametrize("channels", [1, 3])
def test_10_bits_are_scaled_to_16(channels: int) -> None:
    samples = ramp(channels, 1023)
    samples[..., -1] = samples[..., -1][:, ::-1]  # not gray
    picture = read(heif(samples, bits=10))
    assert (picture.bits, picture.channels) == (16, channels)
    assert (picture.colour.min(), picture.colour.max()) == (0, 65535)
    assert np.abs(picture.colour / 65535 - samples / 1023).max() < 2 / 1023


def test_equal_channels_become_gray() -> None:
    assert read(heif(ramp(3, 255))).channels == 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_rotation_is_applied_once(orientation: int) -> None:
    corners = np.kron(np.array([[0, 60, 120], [180, 230, 255]], np.uint8), np.ones((16, 16), np.uint8))
    exif = camera_exif(orientation).tobytes()
    data = heif(np.stack([corners, corners[:, ::-1], corners], axis=-1), exif=exif)
    picture = read(data)
    head = read_head(data)
    assert head is not None
    assert head.size == picture.size == ((32, 48) if orientation >= 5 else (48, 32))
    turns = {
        1: lambda a: a,
        2: np.fliplr,
        3: lambda a: np.rot90(a, 2),
        4: np.flipud,
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: np.rot90(a.swapaxes(0, 1), 2),
        8: np.rot90,
    }
    assert np.abs(picture.colour[..., 0].astype(int) - turns[orientation](corners)).max() <= 2
    kept = Image.Exif()
    kept.load(picture.exif or b"")
    assert (kept[MAKE], kept.get(274, 1)) == ("Canon", 1)


def test_profile_and_xmp_are_kept() -> None:
    picture = read(heif(noise(32, 48, 3), icc_profile=P3, xmp=XMP))
    assert picture.icc == P3
    assert picture.xmp is not None
    assert b"a cat &gt; a dog" in picture.xmp
    assert b"Orientation" not in picture.xmp


def test_colours_of_p3_without_a_profile_get_one() -> None:
    assert read(heif(noise(32, 48, 3), color_primaries=12, transfer_characteristics=13)).icc == P3
    assert read(heif(noise(32, 48, 3))).icc is None
    assert read(heif(noise(32, 48, 3), color_primaries=12, icc_profile=SRGB)).icc == SRGB


@pytest.mark.parametrize(("code", "name"), [(16, "PQ"), (18, "HLG")])
def test_hdr_brightness_is_noted(code: int, name: str) -> None:
    assert read(heif(ramp(1, 1023), bits=10, transfer_characteristics=code)).notes == (
        f"HDR brightness ({name}) is taken as that of sRGB",
    )
    assert read(heif(ramp(1, 1023), bits=10)).notes == ()


def test_the_pixel_limit_is_checked_before_decoding() -> None:
    data = heif(noise(64, 128, 3))
    assert read(data, max_pixels=128 * 64).size == (128, 64)
    with pytest.raises(SRNOError, match="claims 128×64"):
        read(data, max_pixels=128 * 64 - 1)


def test_without_the_package_the_error_is_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = heif(noise(32, 48, 3))
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(SRNOError, match=r"^photo\.heic: pillow_heif is not installed; .*pip install 'srno\[heif\]'$"):
        read(data, name="photo.heic")
    head = read_head(data)
    assert head is not None
    assert (head.format, head.size) == ("HEIF", (48, 32))
