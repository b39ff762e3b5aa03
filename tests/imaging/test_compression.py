"""How strongly files are compressed, read from their bytes."""

import io

import numpy as np
import pytest
from PIL import Image

from srno.imaging.formats import sniff
from srno.imaging.head import compression_of
from srno.imaging.picture import Compression
from srno.imaging.read import read


def photo(side: int = 64) -> Image.Image:
    rng = np.random.default_rng(3)
    smooth = Image.fromarray(rng.integers(0, 256, (side // 8, side // 8, 3), np.uint8)).resize((side, side))
    return Image.fromarray(np.clip(np.asarray(smooth) + rng.normal(0, 9, (side, side, 3)), 0, 255).astype(np.uint8))


def encode(codec: str, **options: object) -> bytes:
    stream = io.BytesIO()
    photo().save(stream, codec, **options)
    return stream.getvalue()


@pytest.mark.parametrize("quality", [25, 30, 50, 75, 90, 95, 99])
@pytest.mark.parametrize("progressive", [False, True])
def test_the_quality_of_a_jpeg_is_found_in_its_tables(quality: int, progressive: bool):
    found = read(encode("JPEG", quality=quality, progressive=progressive)).compression
    assert found is not None
    assert found.codec == "jpeg"
    assert found.level == pytest.approx(quality, abs=0.6)


def test_tables_of_a_camera_have_the_quality_of_a_standard_table_with_the_same_sum():
    found = read(encode("JPEG", qtables=[[58] * 64, [80] * 64])).compression
    assert found is not None
    assert found.level == pytest.approx(50, abs=0.5)  # 64 × 58 is about the sum at quality 50


@pytest.mark.parametrize("cut", [0, 1, 3, 30, 66])
def test_damaged_tables_have_no_quality(cut: int):
    data = encode("JPEG", quality=75)
    start = data.index(b"\xff\xdb")
    damaged = data[: start + 4 + cut]
    assert compression_of(damaged, "JPEG", (64, 64)) is None or cut > 64


def test_lossy_webp_and_avif_have_bits_per_pixel_that_fall_with_the_quality():
    for codec in ("WEBP", "AVIF"):
        levels = [compression_of(data := encode(codec, quality=q), sniff(data), (64, 64)) for q in (20, 60, 95)]
        values = [found.level for found in levels if found is not None]
        assert len(values) == 3
        assert 0 < values[0] < values[1] < values[2] < 24


@pytest.mark.parametrize(("codec", "options"), [("PNG", {}), ("WEBP", {"lossless": True}), ("BMP", {}), ("GIF", {})])
def test_lossless_files_have_no_compression(codec: str, options: dict[str, object]):
    assert read(encode(codec, **options)).compression is None


def test_the_description_of_a_compression():
    assert str(Compression("jpeg", 74.6)) == "JPEG of quality 75"
    assert str(Compression("heif", 1.234)) == "HEIF of 1.2 bits per pixel"
