"""Written files are complete, contain what the format can store, and losses are reported."""

import io
import os
import resource
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pyvips
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from making import CMYK, DATE, EXIF, GPS, MAKE, P3, TAKEN, camera_exif, gray_profile, noise, rgb_profile
from PIL import Image, ImageCms

from srno.errors import SRNOError
from srno.imaging import exif
from srno.imaging.formats import CAPABILITIES, Format
from srno.imaging.picture import Picture, from_float
from srno.imaging.png import compressed_samples
from srno.imaging.read import read
from srno.imaging.resize import matlab_bicubic_float
from srno.imaging.tiff import needs_big, write_tiff
from srno.imaging.write import replacing, write

CAMERA = exif.from_block(camera_exif().tobytes()).block
KINDS = [(bits, channels) for bits in (8, 16) for channels in (1, 2, 3, 4)]


def make_picture(
    bits: int, channels: int, *, size: tuple[int, int] = (14, 9), seed: int = 0, described: bool = True
) -> Picture:
    colours = 1 if channels < 3 else 3
    samples = noise(size[1], size[0], channels, bits=bits, seed=seed)
    picture = Picture(colour=samples[..., :colours], alpha=samples[..., colours] if channels in (2, 4) else None)
    icc = gray_profile(1.8) if colours == 1 else P3
    return replace(picture, icc=icc, exif=CAMERA, dpi=(300, 150)) if described else picture


def to_bytes(picture: Picture, name: Format, **options: object) -> bytes:
    stream = io.BytesIO()
    write(picture, stream, format=name, **options)  # type: ignore[arg-type]
    return stream.getvalue()


def exif_values(block: bytes | None) -> object:
    """The values in an EXIF block, without their offsets."""
    found = Image.Exif()
    found.load(block or b"")
    values = {tag: value for tag, value in found.items() if tag not in (EXIF, GPS)}
    return values, found.get_ifd(EXIF), found.get_ifd(GPS)


def assert_same(one: Picture, other: Picture) -> None:
    assert np.array_equal(one.samples(), other.samples())
    assert one.samples().dtype == other.samples().dtype
    assert (one.channels, one.icc, exif_values(one.exif)) == (other.channels, other.icc, exif_values(other.exif))
    if one.format != "TIFF":
        assert one.exif == other.exif


pictures = st.builds(
    make_picture,
    st.sampled_from([8, 16]),
    st.sampled_from([1, 2, 3, 4]),
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    seed=st.integers(0, 1000),
    described=st.booleans(),
)


@given(pictures, st.sampled_from(["PNG", "TIFF"]))
@settings(max_examples=80)
def test_lossless_formats_round_trip(picture: Picture, name: Format) -> None:
    back = read(to_bytes(picture, name))
    assert_same(back, picture)
    assert back.format == name
    assert back.dpi == (picture.dpi if picture.dpi is None else pytest.approx(picture.dpi, abs=0.02))


@given(pictures)
@settings(max_examples=30)
def test_webp_at_quality_100_round_trips(picture: Picture) -> None:
    narrow = replace(picture.with_bits(8), icc=picture.icc if picture.colour.shape[2] == 3 else None)
    if picture.colour.shape[2] == 3 and picture.icc is None and np.ptp(narrow.colour, axis=2).max() == 0:
        return  # gray by chance, and read as such
    assert_same(read(to_bytes(narrow, "WEBP", quality=100)), narrow)


@given(pictures)
@settings(max_examples=30)
def test_bmp_and_gif_round_trip_what_they_can_store(picture: Picture) -> None:
    plain = Picture(colour=picture.with_bits(8).colour)
    assert_same(read(to_bytes(plain, "BMP")), plain)
    alpha = None if picture.alpha is None else np.where(picture.alpha > 9, np.uint8(255), np.uint8(0))
    few = Picture(colour=plain.colour // 128 * 255, alpha=alpha)
    back = read(to_bytes(few, "GIF"))
    opaque = np.ones(few.colour.shape[:2], bool) if few.alpha is None else few.alpha == 255
    assert np.array_equal(
        np.broadcast_to(back.colour, (*opaque.shape, 3))[opaque],
        np.broadcast_to(few.colour, (*opaque.shape, 3))[opaque],
    )
    assert np.array_equal(opaque, np.ones_like(opaque) if back.alpha is None else back.alpha == 255)


@pytest.mark.parametrize("name", ["PNG", "TIFF"])
def test_a_fine_gradient_keeps_its_levels(name: Format) -> None:
    levels = np.linspace(0, 65535, 4000).round().astype(np.uint16)
    picture = Picture(colour=np.broadcast_to(levels[None, :, None], (3, 4000, 3)).copy())
    back = read(to_bytes(picture, name))
    assert len(np.unique(back.colour)) == 4000
    assert np.array_equal(back.colour, picture.colour)


PILLOW_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def expected_mode(name: Format, bits: int, channels: int) -> str:
    if bits == 16 and channels == 1:
        return "I;16B" if name == "TIFF" else "I;16"
    if bits == 16 and channels == 2:
        return "RGBA"  # Pillow has no mode for it
    if name == "WEBP" or (name == "AVIF" and channels == 2):
        return "RGBA" if channels in (2, 4) else "RGB"
    return PILLOW_MODES[channels]


@pytest.mark.parametrize(("bits", "channels"), KINDS)
@pytest.mark.parametrize("name", ["PNG", "TIFF", "JPEG", "WEBP", "AVIF"])
def test_pillow_and_libvips_read_samples_and_metadata(name: Format, bits: int, channels: int) -> None:
    picture = make_picture(bits, channels)
    data = to_bytes(picture, name)
    capability = CAPABILITIES[name]
    bits = min(bits, max(capability.bits))
    channels = channels if capability.alpha else (1 if channels < 3 else 3)
    icc = picture.icc if capability.gray or channels >= 3 else None

    vips = pyvips.Image.new_from_buffer(data, "")
    assert (vips.width, vips.height, vips.format) == (14, 9, "ushort" if bits == 16 else "uchar")
    has_gray = name in ("PNG", "TIFF", "JPEG")
    assert vips.bands == (channels if has_gray or channels >= 3 else channels + 2)
    assert (vips.get("icc-profile-data") if vips.get_typeof("icc-profile-data") else None) == icc
    assert vips.get_typeof("orientation") == 0 or vips.get("orientation") == 1

    if (name, bits, channels) == ("TIFF", 16, 2):
        return  # Pillow cannot open it
    image = Image.open(io.BytesIO(data))
    image.load()
    assert (image.size, image.mode, image.info.get("icc_profile")) == (
        (14, 9),
        expected_mode(name, bits, channels),
        icc,
    )
    found = image.getexif()
    assert (found[MAKE], found[DATE]) == ("Canon", "2024:05:06 07:08:09")
    assert found.get_ifd(EXIF)[TAKEN] == "2024:05:06 07:08:09"
    assert found.get_ifd(GPS)[2] == (48.0, 8.0, 12.5)
    assert 40962 not in found.get_ifd(EXIF)
    if name in ("PNG", "TIFF", "JPEG"):
        assert image.info["dpi"] == pytest.approx((300, 150), abs=0.1)


def test_no_resolution_is_written_if_none_is_known() -> None:
    picture = make_picture(16, 3, described=False)
    for name in ("PNG", "JPEG"):
        assert "dpi" not in Image.open(io.BytesIO(to_bytes(picture, name))).info


@pytest.mark.parametrize("name", CAPABILITIES)
def test_without_metadata_the_file_contains_none(name: Format) -> None:
    data = to_bytes(make_picture(8, 3), name, metadata=False)
    back = read(data)
    assert (back.icc, back.exif) == (None, None)
    for secret in (b"Canon", b"2024:05", b"acsp"):
        assert secret not in data


def test_colours_look_the_same_without_their_profile() -> None:
    icc = rgb_profile(1.8, 1.8, 1.8)
    smooth = np.stack(np.meshgrid(np.arange(60, 200), np.arange(60, 200)), axis=-1).astype(np.uint8)
    picture = Picture(colour=np.concatenate([smooth, np.full((140, 140, 1), 128, np.uint8)], axis=2), icc=icc)
    shown = ImageCms.profileToProfile(
        Image.fromarray(picture.colour),
        ImageCms.ImageCmsProfile(io.BytesIO(icc)),
        ImageCms.createProfile("sRGB"),
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.NOOPTIMIZE | ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    assert shown is not None
    for name, options in (("BMP", {}), ("PNG", {"metadata": False})):
        stream = io.BytesIO()
        notes = write(picture, stream, format=name, **options).notes  # type: ignore[arg-type]
        assert any("sRGB" in note for note in notes)
        assert np.abs(read(stream.getvalue()).colour.astype(int) - np.asarray(shown)).max() <= 1
    srgb = replace(picture, icc=pyvips.Image.profile_load("srgb"))
    stream = io.BytesIO()
    assert write(srgb, stream, format="BMP").notes == ()
    assert np.array_equal(read(stream.getvalue()).colour, picture.colour)


def test_a_gray_profile_is_applied_if_the_format_has_no_gray() -> None:
    picture = Picture(colour=np.arange(256, dtype=np.uint8).reshape(16, 16, 1), icc=gray_profile(1.0))
    back = read(to_bytes(picture, "WEBP", quality=100))
    linear = np.arange(256) / 255
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055) * 255
    assert back.icc is None
    assert np.abs(back.colour.reshape(-1) - encoded).max() <= 0.6


def test_alpha_is_flattened_onto_white_and_reported() -> None:
    picture = Picture(colour=np.full((8, 8, 3), 100, np.uint16), alpha=np.full((8, 8), 32768, np.uint16))
    for name in ("JPEG", "BMP"):
        stream = io.BytesIO()
        notes = write(picture, stream, format=name).notes
        assert [note.split(":")[0] for note in notes] == ["flattened onto white", "rounded to 8 bits per channel"]
        assert np.abs(read(stream.getvalue()).colour.astype(int) - 128).max() <= 1


def test_other_losses_are_reported() -> None:
    def notes(picture: Picture, name: Format) -> tuple[str, ...]:
        return write(picture, io.BytesIO(), format=name).notes

    assert notes(make_picture(16, 4), "PNG") == notes(make_picture(16, 2), "TIFF") == ()
    assert notes(replace(make_picture(8, 3), icc=None), "BMP") == ("EXIF left out: BMP cannot hold any",)
    long = exif.from_block(camera_exif().tobytes() + b"").block
    assert long is not None
    assert notes(replace(make_picture(8, 3), exif=long + bytes(70_000)), "JPEG") == (
        "EXIF left out: JPEG cannot hold so much",
    )
    assert notes(make_picture(8, 3, size=(40, 40), described=False), "GIF") == (
        "colours reduced to 256: GIF cannot hold more",
    )
    assert "alpha reduced to on or off" in notes(make_picture(8, 2, described=False), "GIF")[-1]


@pytest.mark.parametrize("name", ["JPEG", "WEBP", "AVIF"])
def test_higher_quality_gives_larger_files(name: Format) -> None:
    y, x = np.mgrid[:64, :64]
    smooth = np.stack([x * 3, y * 3, (x + y) * 2], axis=-1).astype(np.uint8)
    picture = Picture(colour=smooth + noise(64, 64, 1) // 8)
    sizes = [len(to_bytes(picture, name, quality=quality)) for quality in (10, 60, 100)]
    assert sizes[0] < sizes[1] < sizes[2]
    fine = read(to_bytes(picture, name)).colour.astype(int)
    assert np.abs(fine - picture.colour).mean() < 3


def test_a_large_profile_is_kept() -> None:
    assert read(to_bytes(replace(make_picture(8, 3), icc=P3), "JPEG")).icc == P3
    ink = replace(make_picture(8, 3), icc=CMYK[:16] + b"RGB " + CMYK[20:])  # a megabyte, in parts for JPEG
    for name in ("JPEG", "PNG", "TIFF", "WEBP", "AVIF"):
        assert read(to_bytes(ink, name)).icc == ink.icc


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(SRNOError, match=r"format 'JPG' is unknown; choose from PNG, TIFF, JPEG"):
        write(make_picture(8, 3), io.BytesIO(), format="JPG")  # type: ignore[arg-type]
    for quality in (0, 101, -5):
        with pytest.raises(SRNOError, match=f"quality {quality} is not between 1 and 100"):
            write(make_picture(8, 3), io.BytesIO(), format="JPEG", quality=quality)


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize(("bits", "channels"), KINDS)
def test_classic_and_big_tiff_round_trip(bits: int, channels: int, big: bool, tmp_path: Path) -> None:
    picture = make_picture(bits, channels)
    path = tmp_path / "big.tif"
    with path.open("w+b") as stream:
        write_tiff(picture, stream, big=big)
    assert_same(read(path), picture)
    with tifffile.TiffFile(path) as file:
        assert file.is_bigtiff == big
        assert np.array_equal(file.asarray().reshape(9, 14, channels), picture.samples())
        assert file.pages.first.tags["ExifTag"].value["DateTimeOriginal"] == "2024:05:06 07:08:09"
        assert file.pages.first.tags["GPSTag"].value["GPSLatitudeRef"] == "N"


def test_tiff_becomes_big_from_4_gb() -> None:
    assert not needs_big(30_000, 30_000, 4, 8)
    assert needs_big(30_000, 30_000, 4, 16)
    assert needs_big(40_000, 40_000, 3, 8)


def test_a_large_tiff_is_tiled(tmp_path: Path) -> None:
    picture = Picture(colour=np.zeros((4096, 4096, 1), np.uint8))
    write(picture, tmp_path / "large.tif", format="TIFF")
    with tifffile.TiffFile(tmp_path / "large.tif") as file:
        assert file.pages.first.is_tiled
        assert file.pages[0].shape == (4096, 4096)


class Pipe(io.RawIOBase):
    """A stream that cannot seek, like standard output."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:  # type: ignore[no-untyped-def, override]
        self.data += bytes(data)
        return len(data)


@pytest.mark.parametrize("name", CAPABILITIES)
def test_streams_need_not_seek(name: Format) -> None:
    pipe = Pipe()
    write(make_picture(8, 3), pipe, format=name)  # type: ignore[arg-type]
    assert read(pipe.data).size == (14, 9)


def test_a_path_gets_one_complete_file(tmp_path: Path) -> None:
    path = tmp_path / "Ünïcode name with spaces.png"
    old = os.umask(0o022)
    try:
        write(make_picture(16, 4), path, format="PNG")
    finally:
        os.umask(old)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o644
    assert_same(read(path), make_picture(16, 4))


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError, SRNOError])
def test_an_interruption_keeps_the_old_file_and_leaves_no_other(
    tmp_path: Path, interruption: type[BaseException]
) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with replacing(path) as stream:
            stream.write(b"half a pict")
            stream.flush()
            (partial,) = (entry for entry in tmp_path.iterdir() if entry != path)
            assert partial.name.startswith(".picture.png.")
            assert partial.suffix == ".partial"
            raise interruption

    with pytest.raises(interruption):
        interrupted()
    assert [entry.name for entry in tmp_path.iterdir()] == ["picture.png"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("name", CAPABILITIES)
def test_a_full_disk_leaves_no_file(tmp_path: Path, name: Format) -> None:
    """A limit on file sizes simulates a full disk: the write fails in the same way."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(SRNOError, match=rf"out{CAPABILITIES[name].suffixes[0]}: cannot be written \(.*large"):
            write(make_picture(8, 3, size=(64, 64)), tmp_path / f"out{CAPABILITIES[name].suffixes[0]}", format=name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_paths_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    picture = make_picture(8, 3)
    with pytest.raises(SRNOError, match=r"none/out\.png: cannot be written \(No such file or directory\)"):
        write(picture, tmp_path / "none" / "out.png", format="PNG")
    with pytest.raises(SRNOError, match="cannot be written, it is not a file"):
        write(picture, tmp_path, format="PNG")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SRNOError, match="cannot be written"):
        write(picture, tmp_path / "file" / "out.png", format="PNG")


def test_links_and_long_names_are_written(tmp_path: Path) -> None:
    real, link = tmp_path / "real.png", tmp_path / "link.png"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write(make_picture(8, 3), link, format="PNG")
    assert link.is_symlink()
    assert read(real).size == (14, 9)
    long = tmp_path / ("ö" * 125 + ".png")
    write(make_picture(8, 3), long, format="PNG")
    assert read(long).size == (14, 9)


@pytest.mark.parametrize("bits", [8, 16])
def test_png_has_a_fast_filter_and_level_and_is_little_larger_than_with_all_filters(bits: int):
    small = noise(20, 30, 3).astype(np.float32) / np.float32(255)
    picture = Picture(colour=from_float(matlab_bicubic_float(small, (640, 960)), bits))
    space = "srgb" if bits == 8 else "rgb16"
    reference = pyvips.Image.new_from_array(picture.colour, interpretation=space).pngsave_buffer(
        bitdepth=bits,
        filter="all",  # pyright: ignore[reportArgumentType]
    )
    ours = to_bytes(picture, "PNG")
    assert len(ours) < 1.15 * len(reference)
    packed = b"".join(compressed_samples(memoryview(ours)))
    assert packed[1] >> 6 == 1  # levels 2 to 5 in the header of zlib; the default, 6, is 2 there
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(640, -1)
    assert np.unique(rows[:, 0]).tolist() == [2]  # the filter "up"
