"""Animations and pages: composed as shown, decoded one at a time, and written with their timing."""

import io
import itertools
import resource
import struct
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
import tifffile
from making import CAMERA, IPTC, P3, XMP, camera_exif, chunk, encode, gif_frames, noise, png, tiff
from PIL import Image

from srno.errors import SRNOError
from srno.imaging.formats import Format
from srno.imaging.frames import FrameSequence, open_frames, write_frames
from srno.imaging.head import read_head
from srno.imaging.metadata import clean_xmp
from srno.imaging.picture import Frame, Picture, Text

ANIMATED: list[Format] = ["PNG", "WEBP", "GIF"]
DURATIONS = [50, 120, 70, 100]


def moving(number: int, *, alpha: bool = False) -> Image.Image:
    """A red square that moves over a gradient of few colours, or over nothing."""
    y, x = np.mgrid[0:20, 0:30]
    samples = np.stack([x // 5 * 40, y // 5 * 60, np.full_like(x, 90), np.full_like(x, 0 if alpha else 255)], axis=-1)
    samples[5:10, 4 + 5 * number : 9 + 5 * number] = (255, 20, 20, 255)
    return Image.fromarray(samples.astype(np.uint8)).convert("RGBA" if alpha else "RGB")


def animation(kind: str, *, alpha: bool = False, loop: int = 3, **options: Any) -> bytes:
    frames = [moving(number, alpha=alpha) for number in range(4)]
    lossless = {"WEBP": {"lossless": True}, "GIF": {"disposal": 2}}.get(kind, {})
    timing = {"duration": DURATIONS, "loop": loop}
    return encode(frames[0], kind, save_all=True, append_images=frames[1:], **timing, **lossless, **options)


def opened(data: bytes | Path) -> FrameSequence:
    sequence = open_frames(data)
    assert sequence is not None
    return sequence


def rewritten(sequence: FrameSequence, name: Format, **options: Any) -> tuple[bytes, tuple[str, ...]]:
    stream = io.BytesIO()
    settings = {"quality": 100, "pixels": 2400, **options}
    notes = write_frames(iter(sequence), stream, format=name, like=sequence, **settings).notes
    return stream.getvalue(), notes


def shown(data: bytes) -> list[np.ndarray]:
    """All frames as Pillow shows them, RGBA with empty pixels black."""
    frames: list[np.ndarray] = []
    with Image.open(io.BytesIO(data)) as image:
        for number in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(number)
            samples = np.array(image.convert("RGBA"))
            samples[samples[..., 3] == 0] = 0
            frames.append(samples)
    return frames


def rgba(picture: Picture) -> np.ndarray:
    colour = np.broadcast_to(picture.colour, (*picture.colour.shape[:2], 3))
    alpha = np.full(colour.shape[:2], 255, np.uint8) if picture.alpha is None else picture.alpha
    samples = np.dstack([colour, alpha])
    samples[samples[..., 3] == 0] = 0
    return samples


# Reading


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("kind", ANIMATED)
def test_all_frames_durations_and_plays_are_read(kind: Format, alpha: bool) -> None:
    sequence = opened(animation(kind, alpha=alpha))
    frames = list(sequence)
    assert (sequence.kind, sequence.format, sequence.count, len(frames)) == ("animation", kind, 4, 4)
    assert [frame.duration for frame in frames] == DURATIONS
    assert sequence.plays == (4 if kind == "GIF" else 3)  # GIF counts the repetitions
    for number, frame in enumerate(frames):
        assert frame.picture.channels == (4 if alpha else 3)
        expected = np.array(moving(number, alpha=alpha).convert("RGBA"))
        expected[expected[..., 3] == 0] = 0
        assert np.abs(rgba(frame.picture).astype(int) - expected).max() <= 2
    assert [frame.duration for frame in sequence] == DURATIONS  # once more


@pytest.mark.parametrize(("repeats", "plays"), [(None, 1), (0, 0), (1, 2), (7, 8)])
def test_repetitions_of_a_gif(repeats: int | None, plays: int) -> None:
    frame = ((0, 0), noise(4, 6) % 7, 1, None, 5)
    data = gif_frames((6, 4), [frame, frame], repeats=repeats)
    assert opened(data).plays == plays
    assert opened(rewritten(opened(data), "GIF")[0]).plays == plays


def composed(size: tuple[int, int], palette: np.ndarray, frames: list[Any]) -> Iterator[np.ndarray]:
    """Compose the frames of a GIF with loops, RGBA; cleared pixels take the background if no colour is transparent."""
    clear = (*palette[0], 255) if frames[0][3] is None else (0, 0, 0, 0)
    canvas = np.zeros((size[1], size[0], 4), np.uint8)
    for (left, top), indices, disposal, transparent, _ in frames:
        before = canvas.copy()
        for y, x in np.ndindex(indices.shape):
            if indices[y, x] != transparent:
                canvas[top + y, left + x] = (*palette[indices[y, x]], 255)
        yield canvas.copy()
        if disposal == 2:
            canvas[top : top + indices.shape[0], left : left + indices.shape[1]] = clear
        elif disposal == 3:
            canvas = before


@pytest.mark.parametrize("transparent", [None, 3])
@pytest.mark.parametrize("disposals", list(itertools.product((0, 1, 2, 3), repeat=2)))
def test_gif_frames_are_composed_as_they_are_shown(disposals: tuple[int, int], transparent: int | None) -> None:
    rng = np.random.default_rng(sum(disposals))
    frames: list[Any] = [((0, 0), rng.integers(0, 8, (10, 12)), disposals[0], transparent, 5)]
    for disposal in (disposals[1], 1):
        left, top, width, height = rng.integers(0, 5, 2).tolist() + rng.integers(2, 6, 2).tolist()
        frames.append(((left, top), rng.integers(0, 8, (height, width)), disposal, transparent, 5))
    if transparent is None and 3 in disposals[:1]:
        frames[0] = (*frames[0][:2], 1, *frames[0][3:])  # before the first frame there is nothing to restore
    data = gif_frames((12, 10), frames)
    palette = noise(768).reshape(256, 3)
    for frame, expected in zip(opened(data), composed((12, 10), palette, frames), strict=True):
        expected[expected[..., 3] == 0] = 0
        assert np.array_equal(rgba(frame.picture), expected)


def test_a_first_picture_outside_the_animation_is_skipped() -> None:
    frames = [moving(number) for number in range(3)]
    cover = Image.new("RGB", (30, 20), (1, 2, 3))
    data = encode(cover, "PNG", save_all=True, default_image=True, append_images=frames, duration=40)
    sequence = opened(data)
    assert sequence.count == 3
    for frame, expected in zip(sequence, frames, strict=True):
        assert np.array_equal(frame.picture.colour, np.asarray(expected))


def test_gray_stays_gray() -> None:
    frames = [Image.fromarray(noise(6, 8, seed=seed)) for seed in range(3)]
    for kind in ("PNG", "GIF"):
        data = encode(frames[0], kind, save_all=True, append_images=frames[1:])
        assert [frame.picture.channels for frame in opened(data)] == [1, 1, 1]


def test_16_bits_are_reduced_and_noted() -> None:
    samples = noise(6, 8, 3, bits=16)
    control = struct.pack(">IIIIIHHBB", 0, 8, 6, 0, 0, 1, 10, 0, 0)
    data = png(samples, chunk(b"acTL", struct.pack(">II", 2, 0)), chunk(b"fcTL", control))
    second = png(samples[::-1])
    start = second.index(b"IDAT")
    packed = second[start + 4 : start + 4 + struct.unpack_from(">I", second, start - 4)[0]]
    more = chunk(b"fcTL", struct.pack(">I", 1) + control[4:]) + chunk(b"fdAT", struct.pack(">I", 2) + packed)
    sequence = opened(data[:-12] + more + data[-12:])
    assert sequence.first.bits == 8
    assert sequence.first.notes == ("16 bits per channel reduced to 8: frames are composed with 8",)
    for frame, expected in zip(sequence, (samples, samples[::-1]), strict=True):
        assert np.abs(frame.picture.colour - expected / 257).max() <= 1


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "TIFF", "JPEG", "BMP"])
def test_a_single_picture_is_not_a_sequence(kind: str) -> None:
    assert open_frames(encode(moving(0), kind)) is None


def count_frames(path: Path) -> int:
    sequence = open_frames(path)
    return 0 if sequence is None else sum(1 for _ in sequence)


@pytest.mark.parametrize("share", [0.4, 0.7, 0.95])
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_cut_files_are_refused(kind: str, share: float, tmp_path: Path) -> None:
    frames = [Image.fromarray(noise(40, 40, 3, seed=seed)) for seed in range(4)]
    data = encode(frames[0], kind, save_all=True, append_images=frames[1:])
    path = tmp_path / "cut.bin"
    path.write_bytes(data[: int(len(data) * share)])
    if read_head(path) is not None:  # else no sequence is opened, and `read` refuses the file
        with pytest.raises(SRNOError, match=r"cut\.bin: damaged or cut short"):
            count_frames(path)


def test_the_pixel_limit_is_checked_before_decoding() -> None:
    data = bytearray(animation("GIF"))
    data[6:10] = struct.pack("<HH", 60_000, 60_000)
    for broken in (
        bytes(data),
        animation("PNG").replace(struct.pack(">II", 30, 20), struct.pack(">II", 60_000, 60_000), 1),
    ):
        with pytest.raises(SRNOError, match="claims 60000×60000"):
            open_frames(broken)
    with pytest.raises(SRNOError, match="claims 30×20"):
        open_frames(animation("WEBP"), max_pixels=599)


# Pages


def test_pages_of_any_size_and_kind_are_read_and_written(tmp_path: Path) -> None:
    pages = [noise(9, 14, 3), noise(20, 6, bits=16), noise(5, 5, 4, seed=1)]
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream) as writer:
        writer.write(pages[0], photometric="rgb", iccprofile=P3, metadata=None)
        writer.write(pages[1], photometric="minisblack", metadata=None)
        writer.write(pages[2], photometric="rgb", extrasamples=["unassalpha"], metadata=None)
    sequence = opened(stream.getvalue())
    assert (sequence.kind, sequence.count, sequence.sizes) == ("pages", 3, ((14, 9), (6, 20), (5, 5)))
    path = tmp_path / "pages.tif"
    assert write_frames(iter(sequence), path, format="TIFF", like=sequence, pixels=1).notes == ()
    for data in (stream.getvalue(), path.read_bytes()):
        for frame, page in zip(opened(data), pages, strict=True):
            assert np.array_equal(frame.picture.samples(), page.reshape(*page.shape[:2], -1))
        assert [frame.picture.icc for frame in opened(data)] == [P3, None, None]
    assert [page.shape for page in tifffile.TiffFile(path).pages] == [page.shape for page in pages]


@pytest.mark.parametrize("big", [False, True])
def test_every_page_keeps_its_own_metadata(big: bool) -> None:
    pictures = [
        Picture(colour=noise(9, 14, 3), exif=CAMERA, xmp=clean_xmp(XMP), iptc=IPTC, dpi=(300, 150)),
        Picture(colour=noise(7, 5, 1), dpi=(200, 200)),
        Picture(colour=noise(8, 6, 3, bits=16), exif=CAMERA, icc=P3),
    ]
    like = opened(tiff(noise(3, 9, 14), photometric="minisblack"))
    stream = io.BytesIO()
    pixels = 2**32 if big else 1
    write_frames((Frame(picture) for picture in pictures), stream, format="TIFF", like=like, pixels=pixels)
    with tifffile.TiffFile(io.BytesIO(stream.getvalue())) as file:
        assert file.is_bigtiff == big
        assert len(file.pages) == 3
        assert ["ExifTag" in page.tags for page in file.pages] == [True, False, True]  # type: ignore[union-attr]
    for frame, picture in zip(opened(stream.getvalue()), pictures, strict=True):
        back = frame.picture
        assert np.array_equal(back.samples(), picture.samples())
        assert (back.xmp, back.iptc, back.icc) == (picture.xmp, picture.iptc, picture.icc)
        assert (back.exif is None) == (picture.exif is None)
        assert back.dpi == (None if picture.dpi is None else pytest.approx(picture.dpi))


def test_thumbnails_are_not_read_as_pages() -> None:
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream) as writer:
        for kind in (0, 1, 0):
            writer.write(noise(9, 14, 3, seed=kind), photometric="rgb", subfiletype=kind, metadata=None)
    data = stream.getvalue()
    head = read_head(data)
    assert head is not None
    assert head.frames == 2
    assert [frame.picture.colour[0, 0, 0] for frame in opened(data)] == [noise(9, 14, 3)[0, 0, 0]] * 2


def test_pages_are_turned_upright_one_by_one() -> None:
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream) as writer:
        for orientation in (1, 6):
            writer.write(noise(9, 14, 3), photometric="rgb", metadata=None, extratags=[(274, 3, 1, orientation, True)])
    first, second = (frame.picture for frame in opened(stream.getvalue()))
    assert np.array_equal(second.colour, np.rot90(first.colour, -1))


# Writing


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("target", ["PNG", "WEBP"])
@pytest.mark.parametrize("source", ANIMATED)
def test_lossless_animations_are_equal_in_every_format(source: Format, target: Format, alpha: bool) -> None:
    sequence = opened(animation(source, alpha=alpha))
    data, notes = rewritten(sequence, target)
    assert notes == ()
    back = opened(data)
    assert (back.format, back.count, back.plays) == (target, 4, sequence.plays)
    assert [frame.duration for frame in back] == DURATIONS
    for one, other, seen in zip(back, sequence, shown(data), strict=True):
        assert np.array_equal(rgba(one.picture), rgba(other.picture))
        assert np.array_equal(seen, rgba(other.picture))


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("source", ANIMATED)
def test_a_gif_of_few_colours_is_exact(source: Format, alpha: bool) -> None:
    sequence = opened(animation(source, alpha=alpha))
    data, _ = rewritten(sequence, "GIF")
    for one, other, seen in zip(opened(data), sequence, shown(data), strict=True):
        assert np.array_equal(rgba(one.picture), rgba(other.picture))
        assert np.array_equal(seen, rgba(other.picture))
    image = pyvips.Image.new_from_buffer(data, "", n=-1)
    assert (image.get("n-pages"), image.get("delay")) == (4, DURATIONS)


@pytest.mark.parametrize("target", ANIMATED)
def test_equal_frames_stay_separate(target: Format) -> None:
    picture = Picture(colour=noise(6, 8, 3) // 64 * 64)
    other = replace(picture, colour=picture.colour[::-1])
    frames = [Frame(picture, 10), Frame(picture, 20), Frame(other, 30), Frame(other, 40), Frame(picture, 50)]
    like = replace(opened(animation("PNG")), sizes=((8, 6),) * 5, decoded=lambda: iter(frames), plays=0)
    data, _ = rewritten(like, target)
    back = list(opened(data))
    assert [frame.duration for frame in back] == [10, 20, 30, 40, 50]
    for one, expected in zip(back, frames, strict=True):
        assert np.array_equal(rgba(one.picture), rgba(expected.picture))


@pytest.mark.parametrize("target", ["WEBP", "GIF"])
def test_rounded_durations_do_not_drift(target: Format) -> None:
    unit = 10 if target == "GIF" else 1
    frames = [Frame(Picture(colour=noise(4, 6, 1, seed=seed)), 1000 / 30) for seed in range(30)]
    like = replace(opened(animation("PNG")), sizes=((6, 4),) * 30, decoded=lambda: iter(frames))
    durations = [frame.duration for frame in opened(rewritten(like, target)[0])]
    assert abs(sum(durations) - 1000) <= unit / 2
    assert max(durations) - min(durations) <= unit


@pytest.mark.parametrize("duration", [0, 10, 1000 / 30, 1001 / 30, 100, 65_535, 655_350, 10_000_000])
def test_apng_keeps_fractions_of_seconds(duration: float) -> None:
    frames = [Frame(Picture(colour=noise(4, 6, 1, seed=seed)), duration) for seed in range(2)]
    like = replace(opened(animation("PNG")), sizes=((6, 4),) * 2, decoded=lambda: iter(frames))
    assert [frame.duration for frame in opened(rewritten(like, "PNG")[0])] == pytest.approx([duration] * 2, rel=1e-4)


@pytest.mark.parametrize("target", ["PNG", "WEBP"])
def test_metadata_of_an_animation_is_kept(target: Format) -> None:
    data = animation("WEBP", icc_profile=P3, exif=camera_exif(), xmp=XMP)
    back = opened(rewritten(opened(data), target)[0]).first
    assert (back.icc, back.exif, back.xmp) == (P3, CAMERA, clean_xmp(XMP))
    with Image.open(io.BytesIO(rewritten(opened(data), target)[0])) as image:
        assert image.info["icc_profile"] == P3
        assert image.getexif()[271] == "Canon"
    bare = opened(rewritten(opened(data), target, metadata=False)[0]).first
    assert (bare.icc, bare.exif, bare.xmp) == (None, None, None)


def test_what_a_gif_cannot_hold_is_noted_once() -> None:
    _, notes = rewritten(opened(animation("WEBP", icc_profile=P3, exif=camera_exif(), xmp=XMP)), "GIF")
    assert notes == (
        "colours converted to sRGB, since the profile is left out",
        "EXIF left out: GIF cannot hold any",
        "XMP left out: GIF cannot hold any",
        "colours reduced to 255: GIF cannot hold more",
    )


def test_comments_of_a_gif_are_kept() -> None:
    data = animation("GIF", comment=b"made by hand")
    assert opened(rewritten(opened(data), "GIF")[0]).first.comments == (b"made by hand",)
    assert opened(rewritten(opened(data), "PNG")[0]).first.texts == (Text("Comment", "made by hand"),)


def test_a_rotated_animation_is_turned_upright() -> None:
    data = animation("WEBP", exif=camera_exif(6))
    sequence = opened(data)
    assert sequence.first.size == (20, 30)
    for frame, number in zip(sequence, range(4), strict=True):
        assert np.array_equal(frame.picture.colour, np.rot90(np.asarray(moving(number)), -1))


def test_a_failure_while_writing_leaves_no_file(tmp_path: Path) -> None:
    sequence = opened(animation("GIF"))

    def stopped() -> Iterator[Frame]:
        yield from itertools.islice(sequence, 2)
        raise SRNOError("stopped")

    for name in (*ANIMATED, "TIFF"):
        with pytest.raises(SRNOError, match="stopped"):
            write_frames(stopped(), tmp_path / "out", format=name, like=sequence, pixels=1)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*ANIMATED, "TIFF"])
def test_a_full_disk_leaves_no_file(tmp_path: Path, name: Format) -> None:
    frames = [Frame(Picture(colour=noise(40, 40, 3, seed=seed)), 10) for seed in range(3)]
    like = replace(opened(animation("PNG")), sizes=((40, 40),) * 3, decoded=lambda: iter(frames))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    try:
        with pytest.raises(SRNOError, match=r"out: cannot be written \(.*large"):
            write_frames(iter(like), tmp_path / "out", format=name, like=like, pixels=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*ANIMATED, "TIFF"])
def test_memory_does_not_grow_with_the_number_of_frames(tmp_path: Path, name: Format) -> None:
    """Peak of the arrays in memory for 6 and for 24 frames of 0.75 MB."""
    flat = np.zeros((500, 500, 3), np.uint8)

    def peak(count: int) -> int:
        def frames() -> Iterator[Frame]:
            for number in range(count):
                colour = flat.copy()
                colour[number * 10 : number * 10 + 10] = number + 1
                yield Frame(Picture(colour=colour), 10)

        like = replace(opened(animation("PNG")), sizes=((500, 500),) * count, decoded=frames)
        tracemalloc.start()
        write_frames(iter(like), tmp_path / "out", format=name, like=like, pixels=1, quality=50)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    few, many = peak(6), peak(24)
    assert many < few + 2 * flat.nbytes
