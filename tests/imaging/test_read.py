"""Pictures of every kind are read correctly, or refused with one line."""

import io
import re
import struct
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import pyvips
from making import (
    CMYK,
    MAKE,
    P3,
    SRGB,
    any_format,
    camera_exif,
    chunk,
    encode,
    gray_profile,
    iccp,
    noise,
    png,
    rgb_profile,
    tiff,
)
from PIL import Image, ImageCms

from srno.errors import SRNOError
from srno.imaging import exif
from srno.imaging.formats import READ_FORMATS
from srno.imaging.read import read

RAMP = np.broadcast_to(np.arange(256, dtype=np.uint8), (4, 256))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("bits", [8, 16])
def test_png_of_every_depth_and_kind(channels: int, bits: int) -> None:
    samples = noise(9, 14, channels, bits=bits)
    picture = read(png(samples))
    assert np.array_equal(picture.samples(), samples)
    assert (picture.format, picture.bits, picture.channels, picture.size) == ("PNG", bits, channels, (14, 9))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(
    "options", [{}, {"byteorder": ">"}, {"bigtiff": True}, {"compression": "zlib", "tile": (16, 16)}]
)
def test_tiff_of_every_depth_and_kind(channels: int, bits: int, options: dict[str, object]) -> None:
    samples = noise(9, 14, channels, bits=bits)
    kind = "minisblack" if channels < 3 else "rgb"
    extra = {"extrasamples": ["unassalpha"]} if channels in (2, 4) else {}
    shown = samples[..., 0] if channels == 1 else samples
    planar = {} if channels == 1 else {"planarconfig": "contig"}
    picture = read(tiff(shown, photometric=kind, **planar, **extra, **options))
    assert np.array_equal(picture.samples(), samples)
    assert (picture.format, picture.bits) == ("TIFF", bits)


def test_tiff_variants_are_read() -> None:
    gray = noise(9, 14, bits=16)
    assert np.array_equal(read(tiff(65535 - gray, photometric="miniswhite")).colour[..., 0], gray)
    planes = noise(3, 9, 14)
    assert np.array_equal(
        read(tiff(planes, photometric="rgb", planarconfig="separate")).colour, np.moveaxis(planes, 0, 2)
    )
    bilevel = read(tiff(gray > 30000, photometric="minisblack"))
    assert np.array_equal(bilevel.colour[..., 0], np.where(gray > 30000, 255, 0))
    premultiplied = np.array([[[100, 50, 0, 128], [9, 8, 7, 255]]], np.uint8)
    picture = read(tiff(premultiplied, photometric="rgb", extrasamples=["assocalpha"]))
    assert np.abs(picture.colour.astype(int) - [[[199, 100, 0], [9, 8, 7]]]).max() <= 1


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (np.zeros((4, 5, 3), np.float32), "float"),
        (np.zeros((4, 5, 3), np.uint32), "uint"),
        (np.zeros((4, 5, 3), np.int16), "short"),
        (np.zeros((4, 5, 6), np.uint8), "6 channels"),
    ],
)
def test_unsupported_tiff_samples_are_refused(samples: np.ndarray, words: str) -> None:
    with pytest.raises(SRNOError, match=f"^the picture: .*{words}.* not supported.*convert"):
        read(tiff(samples, photometric="rgb", planarconfig="contig"))


@pytest.mark.parametrize(
    ("photometric", "words"), [("cielab", "CIELAB"), ("icclab", "CIELAB"), ("itulab", "CIELAB"), ("ycbcr", "YCbCr")]
)
@pytest.mark.parametrize("bits", [8, 16])
def test_unsupported_tiff_colour_spaces_are_refused(photometric: str, words: str, bits: int) -> None:
    with pytest.raises(SRNOError, match=f"^the picture: colours in {words} are not supported; convert"):
        read(tiff(noise(4, 5, 3, bits=bits), photometric=photometric, planarconfig="contig"))


@pytest.mark.parametrize(("quality", "photometric"), [(85, 6), (95, 2)])
def test_jpeg_compressed_tiff_is_read(quality: int, photometric: int) -> None:
    ramp = np.stack([np.linspace(200, 20, 64), np.full(64, 90), np.linspace(30, 220, 64)], axis=-1)
    colour = np.broadcast_to(ramp.astype(np.uint8), (48, 64, 3)).copy()
    image = pyvips.Image.new_from_array(colour, interpretation="srgb")
    data = image.tiffsave_buffer(compression="jpeg", Q=quality)
    assert exif.tiff_layout(data) == (64, 48, photometric, 7)
    assert np.abs(read(data).samples().astype(int) - colour).max() <= 8


def test_palettes_and_bilevel_pictures_are_read() -> None:
    image = Image.fromarray(noise(9, 14, 3)).quantize(16)
    expected = np.asarray(image.convert("RGB"))
    for kind in ("PNG", "GIF", "TIFF", "BMP"):
        assert np.array_equal(read(encode(image, kind)).colour, expected), kind
    picture = read(encode(image, "PNG", transparency=3))
    assert picture.alpha is not None
    assert np.array_equal(picture.alpha, np.where(np.asarray(image) == 3, 0, 255))
    half = read(encode(image, "PNG", transparency=bytes(range(100, 116))))
    assert half.alpha is not None
    assert np.array_equal(half.alpha, np.asarray(image) + 100)
    black_and_white = Image.fromarray(noise(9, 14)).convert("1")
    for kind in ("PNG", "TIFF", "BMP", "GIF"):
        picture = read(encode(black_and_white, kind))
        assert np.array_equal(picture.colour[..., 0], np.asarray(black_and_white.convert("L"))), kind


def test_the_transparent_colour_of_a_png_becomes_alpha() -> None:
    samples = noise(9, 14, 3, bits=16)
    picture = read(png(samples, chunk(b"tRNS", samples[4, 5].astype(">u2").tobytes())))
    assert np.array_equal(picture.colour, samples)
    assert picture.alpha is not None
    assert np.array_equal(np.argwhere(picture.alpha == 0), [[4, 5]])


@pytest.mark.parametrize("kind", READ_FORMATS)
def test_gray_stays_gray(kind: str) -> None:
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100}, "AVIF": {"quality": 100}}.get(kind, {})
    picture = read(any_format(Image.fromarray(RAMP), kind, **options))
    assert picture.channels == 1
    assert np.abs(picture.colour[..., 0].astype(int) - RAMP).max() <= 2


def test_an_animation_is_read_as_its_first_frame() -> None:
    frames = [Image.fromarray(noise(9, 14, 3, seed=seed)).quantize(8) for seed in range(3)]
    data = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert np.array_equal(read(data).colour, np.asarray(frames[0].convert("RGB")))
    assert read(data).alpha is None
    webp = encode(frames[0].convert("RGB"), "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    assert np.array_equal(read(webp).colour, np.asarray(frames[0].convert("RGB")))


def test_the_transparent_index_of_a_gif_becomes_alpha() -> None:
    image = Image.fromarray(noise(9, 14) % 7 + 1)
    image.putpalette(bytes(noise(24)))
    used, unused = read(encode(image, "GIF", transparency=5)), read(encode(image, "GIF", transparency=200))
    assert used.alpha is not None
    assert np.array_equal(used.alpha == 0, np.asarray(image) == 5)
    assert unused.alpha is None


def test_a_small_first_frame_keeps_the_canvas_size() -> None:
    data = bytearray(encode(Image.fromarray(noise(9, 14)), "GIF"))
    data[6:10] = struct.pack("<HH", 3000, 20)
    assert read(bytes(data)).size == (3000, 20)


@pytest.mark.parametrize("bits", [10, 12])
def test_avif_of_10_and_12_bits_is_scaled_to_16(bits: int) -> None:
    levels = np.linspace(0, 65535, 64 * 64).round().astype(np.uint16).reshape(64, 64)
    image = pyvips.Image.new_from_array(np.stack([levels] * 3, axis=-1), interpretation="rgb16")
    picture = read(
        image.heifsave_buffer(compression="av1", bitdepth=bits, lossless=True, subsample_mode="off", effort=0)
    )
    assert picture.bits == 16
    assert (picture.colour.min(), picture.colour.max()) == (0, 65535)
    assert np.abs(picture.colour[..., 0].astype(int) - levels).max() <= 65536 >> bits


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "AVIF"])
def test_orientation_is_applied_once(kind: str, orientation: int) -> None:
    corners = np.kron(np.array([[0, 60, 120], [180, 230, 255]], np.uint8), np.ones((16, 16), np.uint8))
    stored = Image.fromarray(np.stack([corners] * 3, axis=-1))
    exif = camera_exif(orientation, sizes=kind != "TIFF").tobytes()  # in TIFF these tags are the size of the file
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100}, "AVIF": {"quality": 100}}.get(kind, {})
    picture = read(encode(stored, kind, exif=exif, **options))
    turns = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }
    upright = stored if orientation == 1 else stored.transpose(turns[orientation])
    assert picture.size == upright.size
    assert np.abs(picture.colour.astype(int) - np.asarray(upright)).max() <= 3
    assert picture.exif is not None
    kept = Image.Exif()
    kept.load(picture.exif)
    assert kept.get(274, 1) == 1
    assert kept[MAKE] == "Canon"


def test_orientation_applies_to_alpha_and_resolution() -> None:
    data = encode(Image.fromarray(noise(9, 14, 4)), "PNG", exif=camera_exif(6), dpi=(300, 150))
    picture = read(data)
    assert picture.alpha is not None
    assert np.array_equal(picture.alpha, np.rot90(noise(9, 14, 4)[..., 3], -1))
    assert picture.dpi == pytest.approx((150, 300), abs=0.1)
    assert read(png(noise(2, 2, 3))).dpi is None
    assert read(encode(Image.new("L", (2, 2)), "JPEG")).dpi is None


def test_exif_after_the_samples_of_a_png_is_read() -> None:
    plain = png(noise(9, 14, 3))
    block = camera_exif(6).tobytes().removeprefix(b"Exif\0\0")
    picture = read(plain[:-12] + chunk(b"eXIf", block) + plain[-12:])
    assert picture.size == (9, 14)
    assert picture.exif is not None


@pytest.mark.parametrize("per_metre", [0, 1, 2**31 - 1])
def test_absurd_resolutions_are_ignored(per_metre: int) -> None:
    picture = read(png(noise(4, 5, 3), chunk(b"pHYs", struct.pack(">IIB", per_metre, 2000, 1))))
    assert picture.dpi is None


@pytest.mark.parametrize("icc", [P3, SRGB, rgb_profile(1.8, 1.8, 1.8)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "AVIF"])
def test_rgb_profiles_are_kept_byte_for_byte(kind: str, icc: bytes) -> None:
    image = Image.fromarray(noise(9, 14, 3))
    picture = read(encode(image, kind, icc_profile=icc, **({"lossless": True} if kind == "WEBP" else {})))
    assert picture.icc == icc
    if kind in ("PNG", "WEBP", "TIFF"):
        assert np.array_equal(picture.colour, noise(9, 14, 3))


def test_a_palette_with_a_profile_keeps_its_colours() -> None:
    image = Image.fromarray(noise(9, 14, 3)).quantize(16)
    picture = read(encode(image, "PNG", icc_profile=P3))
    assert picture.icc == P3
    assert np.array_equal(picture.colour, np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
def test_gray_keeps_its_gray_profile(kind: str) -> None:
    icc = gray_profile(1.8)
    picture = read(encode(Image.fromarray(RAMP), kind, icc_profile=icc))
    assert (picture.channels, picture.icc) == (1, icc)


def displayed(image: Image.Image, icc: bytes) -> np.ndarray:
    """What a colour-managed viewer shows, in sRGB."""
    source = ImageCms.ImageCmsProfile(io.BytesIO(icc))
    exact = ImageCms.Flags.NOOPTIMIZE
    shown = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB", flags=exact)
    return np.asarray(shown).astype(int)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
@pytest.mark.parametrize("icc", [P3, rgb_profile(1.8, 1.8, 1.8), rgb_profile(1.0, 1.0, 1.0)])
def test_gray_with_an_rgb_profile_looks_the_same(kind: str, icc: bytes) -> None:
    picture = read(encode(Image.fromarray(RAMP), kind, icc_profile=icc))
    assert picture.channels == 1
    assert picture.icc is not None
    assert picture.icc[16:20] == b"GRAY"
    gray = Image.fromarray(picture.colour[..., 0])
    shown = displayed(gray, picture.icc)
    assert np.abs(shown - displayed(gray.convert("RGB"), icc)).max() <= 1


def test_gray_with_a_profile_that_adds_colour_becomes_rgb() -> None:
    icc = rgb_profile(1.8, 2.2, 1.0)
    picture = read(encode(Image.fromarray(RAMP), "PNG", icc_profile=icc))
    assert (picture.channels, picture.icc) == (3, icc)
    assert np.array_equal(picture.colour, np.stack([RAMP] * 3, axis=-1))


def test_profiles_for_other_samples_are_dropped() -> None:
    rgb = Image.fromarray(noise(9, 14, 3))
    for icc in (gray_profile(2.2), CMYK, b"no profile at all", P3[:100]):
        picture = read(encode(rgb, "TIFF", icc_profile=icc))
        assert picture.icc is None
        assert np.array_equal(picture.colour, noise(9, 14, 3))
    assert read(png(noise(4, 4, 3), iccp(P3))).icc == P3


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk_is_converted_through_its_profile(kind: str) -> None:
    ink = Image.fromarray(np.kron(noise(4, 4, 4), np.ones((8, 8, 1), np.uint8)), "CMYK")
    data = encode(ink, kind, icc_profile=CMYK, **({"quality": 100} if kind == "JPEG" else {}))
    picture = read(data)
    assert picture.icc == SRGB
    expected = ImageCms.profileToProfile(
        Image.open(io.BytesIO(data)),
        ImageCms.ImageCmsProfile(io.BytesIO(CMYK)),
        ImageCms.createProfile("sRGB"),
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        outputMode="RGB",
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    assert expected is not None
    assert np.abs(picture.colour.astype(int) - np.asarray(expected)).max() <= 2


@pytest.mark.parametrize("icc", [None, b"broken" * 40, CMYK[:2000]])
def test_cmyk_without_a_usable_profile_is_converted(icc: bytes | None) -> None:
    patches = np.array([[[0, 0, 0, 0], [0, 0, 0, 255], [255, 0, 0, 0], [0, 255, 255, 0]]], np.uint8)
    data = encode(Image.fromarray(patches, "CMYK"), "TIFF", **({} if icc is None else {"icc_profile": icc}))
    picture = read(data)
    white, black, cyan, red = picture.colour[0].astype(int)
    assert white.min() >= 250
    assert black.max() <= 60
    assert cyan[0] < 100 < cyan[2]
    assert red[0] > 200 > 100 > red[2]
    assert picture.icc == SRGB


def test_cmyk_of_16_bits_keeps_its_alpha() -> None:
    ink = noise(6, 7, 5, bits=16)
    picture = read(tiff(ink, photometric="separated", extrasamples=["unassalpha"], planarconfig="contig"))
    assert (picture.channels, picture.bits) == (4, 16)
    assert picture.alpha is not None
    assert np.array_equal(picture.alpha, ink[..., 4])


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1)])
@pytest.mark.parametrize("kind", [kind for kind in READ_FORMATS if kind != "ICO"])
def test_extreme_sizes_are_read(kind: str, size: tuple[int, int]) -> None:
    picture = read(any_format(Image.new("RGB", size, (200, 100, 50)), kind))
    assert picture.size == size
    assert np.abs(picture.colour.astype(int) - (200, 100, 50)).max() <= 8


def file_of_false_size(kind: str) -> bytes:
    """A tiny file whose header gives a size of 60,000×60,000 pixels."""
    image = Image.fromarray(noise(24, 32, 3))
    if kind == "PNG":
        return png(noise(24, 32, 3), size=(60_000, 60_000))
    data = bytearray(any_format(image, kind))
    if kind == "JPEG":
        at = data.index(b"\xff\xc0") + 5
        data[at : at + 4] = struct.pack(">HH", 60_000, 60_000)
    elif kind == "GIF":
        data[6:10] = struct.pack("<HH", 60_000, 60_000)
    elif kind == "BMP":
        data[18:26] = struct.pack("<ii", 60_000, 60_000)
    elif kind == "JXL":  # two 30-bit sides: 0 … 2³⁰ - 1 with the selector 3
        bits = 0 | 3 << 1 | 59_999 << 3 | 0 << 33 | 3 << 36 | 59_999 << 38
        return b"\xff\x0a" + bits.to_bytes(10, "little") + bytes(data[20:])
    elif kind == "JP2":
        at = data.index(b"\xff\x4f\xff\x51") + 8
        data[at : at + 8] = struct.pack(">II", 60_000, 60_000)
    elif kind == "PNM":
        data[3:8] = b"60000 60000"
    elif kind == "TGA":
        data[12:16] = struct.pack("<HH", 60_000, 60_000)
    elif kind == "ICO":
        at = data.index(b"IHDR") + 4
        data[at : at + 8] = struct.pack(">II", 60_000, 60_000)
    elif kind in ("AVIF", "HEIF"):
        data = bytearray(
            re.sub(rb"(ispe\0{4}).{8}", rb"\g<1>" + struct.pack(">II", 60_000, 60_000), data, flags=re.DOTALL)
        )
    elif kind == "TIFF":
        for tag, side in ((256, 32), (257, 24)):
            at = data.index(struct.pack("<HHII", tag, 4, 1, side)) + 8
            data[at : at + 4] = struct.pack("<I", 60_000)
    return bytes(data)


@pytest.mark.parametrize("kind", [kind for kind in READ_FORMATS if kind != "WEBP"])
def test_a_false_size_of_60000_pixels_per_side_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "huge.png"
    path.write_bytes(file_of_false_size(kind))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SRNOError, match=r"huge\.png: claims 60000×60000 = 3,600 megapixels; the limit is 500"):
            read(path)
        with pytest.raises(SRNOError, match=r"^upload: claims"):
            read(file_of_false_size(kind), name="upload")


def test_the_limit_can_be_set_without_changing_that_of_pillow() -> None:
    before = Image.MAX_IMAGE_PIXELS
    data = png(noise(10, 10, 1))
    assert read(data, max_pixels=100).size == (10, 10)
    with pytest.raises(SRNOError, match="claims 10×10"):
        read(data, max_pixels=99)
    assert before == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("side", [2**31 - 1, 2**32 - 1, 0])
def test_impossible_sizes_are_refused_without_other_output(side: int, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SRNOError, match=r"^the picture: (claims|has no pixels)"):
        read(png(noise(4, 4, 1), size=(side, 3)))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kind", READ_FORMATS)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_truncated_files_are_refused(kind: str, share: float, tmp_path: Path) -> None:
    data = any_format(Image.fromarray(noise(64, 64, 3)), kind)
    path = tmp_path / "cut.png"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(SRNOError, match=r"cut\.png: damaged or cut short") as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"Dear reader, this is no picture.", "not a picture in a known format"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", "not a picture in a known format"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "damaged"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "damaged"),
        (b"P6 is the start of this text", "damaged"),
        (b"\0\0\1\0\0\0", "damaged"),
        (b"BM is the start of this text, which is long enough for a header", "damaged"),
        (b"\x89PNG\r\n\x1a\n", "damaged"),
    ],
)
def test_files_that_are_not_pictures_are_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "text.png"
    path.write_bytes(content)
    with pytest.raises(SRNOError, match=rf"text\.png: {reason}") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SRNOError, match=r"none\.png: No such file"):
        read(tmp_path / "none.png")
    with pytest.raises(SRNOError, match="Is a directory"):
        read(tmp_path)


def test_the_suffix_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "picture.jpg"
    path.write_bytes(png(noise(4, 5, 3, bits=16)))
    picture = read(path)
    assert (picture.format, picture.bits) == ("PNG", 16)


def test_damaged_files_raise_no_other_error() -> None:
    rng = np.random.default_rng(7)
    image = Image.fromarray(noise(16, 16, 3))
    for kind in READ_FORMATS:
        data = any_format(image, kind)
        for _ in range(60):
            broken = bytearray(data)
            for at in rng.integers(0, len(data), 4):
                broken[at] = rng.integers(256)
            with suppress(SRNOError):
                read(bytes(broken), max_pixels=1_000_000)
