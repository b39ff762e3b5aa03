"""Animations and pages: read as a sequence that is decoded one frame at a time, and written in the same way."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyvips
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from srno.errors import SRNOError
from srno.imaging import exif, png
from srno.imaging.animated_gif import make_palette, write_gif
from srno.imaging.animated_webp import write_animated_webp
from srno.imaging.formats import CAPABILITIES, Format, SequenceKind, check_limits
from srno.imaging.head import read_head
from srno.imaging.icc import space
from srno.imaging.picture import Frame, Picture, Samples, split_samples
from srno.imaging.pillow import from_pillow
from srno.imaging.png import write_apng
from srno.imaging.read import DECODER_ERRORS, MAX_PIXELS, check_readable, decode, explain
from srno.imaging.tiff import needs_big, page_offsets, write_pages
from srno.imaging.vips import decode_vips, upright
from srno.imaging.write import WriteTarget, Written, adapt, check_options, opened


@dataclass(frozen=True)
class FrameSequence:
    """The frames of an animation, composed as they are shown, or pages; each iteration decodes them again."""

    kind: SequenceKind
    format: Format
    sizes: tuple[tuple[int, int], ...]
    """(width, height) of each frame; of pages as stored, before they are turned upright."""
    first: Picture
    """The first frame or page, with the metadata of the file."""
    plays: int
    """How often an animation is shown; 0 is without end."""
    decoded: Callable[[], Iterator[Frame]]

    def __iter__(self) -> Iterator[Frame]:
        return self.decoded()

    @property
    def count(self) -> int:
        return len(self.sizes)


def open_frames(source: Path | bytes, *, max_pixels: int = MAX_PIXELS, name: str | None = None) -> FrameSequence | None:
    """Open an animation or a file with several pages; None if the file holds one picture.

    All frames of an animation have the same channels: alpha if one of them needs it, gray if all are gray.
    """
    name = name or (str(source) if isinstance(source, Path) else "the picture")
    try:
        data = source.read_bytes() if isinstance(source, Path) else source
        sequence = _open(data, check_readable(data, name), name, max_pixels)
    except (*DECODER_ERRORS, OSError) as error:
        raise SRNOError(f"{name}: {explain(error)}") from None
    return sequence


def write_frames(
    frames: Iterable[Frame],
    target: WriteTarget,
    *,
    format: Format,  # noqa: A002 — the usual name
    like: FrameSequence,
    pixels: int,
    quality: int | None = None,
    metadata: bool = True,
) -> Written:
    """Write the frames of a sequence like `like`, with `pixels` pixels in all, to a path or a stream.

    At most two frames are in memory at a time. The options are those of `write`.
    """
    quality = check_options(format, quality)
    notes: dict[str, None] = {}

    def adapted(waiting: Iterable[Frame]) -> Iterator[Frame]:
        for frame in waiting:
            check_limits(format, *frame.picture.size, frame.picture.channels, frame.picture.bits)
            picture, losses = adapt(frame.picture, format, metadata=metadata)
            notes.update(dict.fromkeys(losses))
            yield replace(frame, picture=picture)

    with opened(target) as stream:
        if format == "TIFF":
            big = needs_big(pixels, 1, like.first.channels, 16)
            write_pages((frame.picture for frame in adapted(frames)), stream, big=big)
        elif format == "GIF":
            palette = make_palette((frame.picture for frame in adapted(like)), like.count)
            notes.update(dict.fromkeys(palette.notes))
            write_gif(adapted(frames), stream, like.plays, palette)
        elif format == "WEBP":
            write_animated_webp(adapted(frames), stream, like.plays, quality)
        else:
            write_apng(adapted(frames), stream, like.plays, like.count)
    return Written(tuple(notes))


def _open(data: bytes, kind: Format, name: str, max_pixels: int) -> FrameSequence | None:
    head = read_head(data)
    if head is None or head.frames < 2 or CAPABILITIES.get(kind) is None or CAPABILITIES[kind].sequence is None:
        return None
    first = decode(data, name, max_pixels)
    if kind == "PNG" and first.bits == 16:
        first = replace(first, notes=(*first.notes, "16 bits per channel reduced to 8: frames are composed with 8"))
    if kind == "TIFF":
        offsets = page_offsets(BytesIO(data))

        def pages() -> Iterator[Frame]:
            return (Frame(decode_vips(data, "TIFF", max_pixels, page)) for page in offsets.items())

        sizes = tuple(exif.tiff_layout(data, offset)[:2] for offset in offsets.values())
        return FrameSequence("pages", kind, sizes, first, 0, _reported(pages, name))
    animation = {"GIF": _open_gif, "WEBP": _open_webp, "PNG": _open_apng}[kind](data)
    if animation.count < 2:
        return None
    layout = _layout(animation, first)

    def frames() -> Iterator[Frame]:
        return (Frame(layout.apply(picture, first), duration) for picture, duration in animation.frames())

    shown = layout.apply(first, first)
    sizes = (shown.size,) * animation.count
    return FrameSequence("animation", kind, sizes, shown, animation.plays, _reported(frames, name))


def _reported(frames: Callable[[], Iterator[Frame]], name: str) -> Callable[[], Iterator[Frame]]:
    """Turn errors of the decoders into SRNOErrors that begin with the name."""

    def reported() -> Iterator[Frame]:
        try:
            yield from frames()
        except (*DECODER_ERRORS, OSError) as error:
            raise SRNOError(f"{name}: {explain(error)}") from None

    return reported


@dataclass(frozen=True)
class _Animation:
    count: int
    plays: int
    """How often it is shown; 0 is without end."""
    frames: Callable[[], Iterator[tuple[Picture, float]]]
    """Pictures, composed as they are shown, and their durations in milliseconds."""


def _open_gif(data: bytes) -> _Animation:
    """Open by libvips: Pillow takes over the disposal of the frame before if a frame states none."""

    def load() -> Any:
        return pyvips.Image.gifload_buffer(data, n=-1, access="sequential", fail_on="truncated")

    def frames() -> Iterator[tuple[Picture, float]]:
        # All frames are one tall picture, which libvips decodes from top to bottom.
        column = load()
        height = column.get("page-height")
        for number, duration in enumerate(column.get("delay")):
            samples = column.crop(0, number * height, column.width, height).numpy().reshape(height, column.width, -1)
            yield split_samples(samples), float(duration)

    column = load()
    return _Animation(column.get("n-pages"), column.get("loop"), frames)


def _open_webp(data: bytes) -> _Animation:
    def frames() -> Iterator[tuple[Picture, float]]:
        with WebPImageFile(BytesIO(data)) as image:
            for number in range(image.n_frames):
                image.seek(number)
                image.load()  # the duration is known only now
                yield _turned(image, image.info.get("exif")), float(image.info.get("duration", 0))

    with WebPImageFile(BytesIO(data)) as image:
        return _Animation(image.n_frames, int(image.info.get("loop", 0)), frames)


def _open_apng(data: bytes) -> _Animation:
    count = png.controlled_frames(data)
    if count != png.frames_of(data):
        raise ValueError(f"{count} of {png.frames_of(data)} frames")

    def frames() -> Iterator[tuple[Picture, float]]:
        with PngImageFile(BytesIO(data)) as image:
            # A first picture without a duration is for programs that do not know animations.
            skipped = 1 if image.default_image else 0
            for number in range(skipped, skipped + count):
                image.seek(number)
                yield _turned(image, png.exif_of(data)), float(image.info.get("duration", 0))

    with PngImageFile(BytesIO(data)) as image:
        return _Animation(count, int(image.info.get("loop", 0)), frames)


def _turned(image: Any, block: bytes | None) -> Picture:
    return upright(from_pillow(image).with_bits(8), exif.from_block(block).orientation)


@dataclass(frozen=True)
class _FrameLayout:
    """The channels of all frames of an animation."""

    gray: bool
    alpha: bool

    def apply(self, picture: Picture, first: Picture) -> Picture:
        """Give a frame these channels, and the metadata of the first frame."""
        colour = picture.with_bits(8).colour
        if self.gray:
            colour = colour[..., :1]
        elif colour.shape[2] == 1:
            colour = np.repeat(colour, 3, axis=2)
        alpha: Samples | None = None
        if self.alpha:
            alpha = picture.with_bits(8).alpha
            alpha = np.full(colour.shape[:2], 255, np.uint8) if alpha is None else alpha
        return replace(first, colour=colour, alpha=alpha)


def _layout(animation: _Animation, first: Picture) -> _FrameLayout:
    """Decode all frames once to find the channels that they need."""
    gray, alpha = True, False
    for picture, _ in animation.frames():
        colour = picture.colour
        gray = gray and (colour.shape[2] == 1 or bool((colour == colour[..., :1]).all()))
        alpha = alpha or (picture.alpha is not None and bool(picture.alpha.min() < 255))
    # Gray samples need a gray profile, and colours one for RGB.
    gray = space(first.icc) == "GRAY" or (gray and first.icc is None)
    return _FrameLayout(gray, alpha)
