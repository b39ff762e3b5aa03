"""Pictures to show to others: before and after in one PNG, and a zoom into the picture as an animation."""

import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, cast, get_args

from PIL import Image, ImageDraw, ImageFont

from srno.errors import SRNOError
from srno.progress import Progress, part_of
from srno.server.exports import Exported, read_number, read_text
from srno.server.opened import Opened
from srno.server.resample import Box
from srno.server.tiles import LARGEST_TILE_PIXELS, LARGEST_ZOOM, NEAREST

ClipKind: TypeAlias = Literal["pair", "webp", "gif"]
Paint: TypeAlias = Callable[[str, Box, tuple[int, int], Progress], Image.Image]
"""Renders a box of the picture by a source, at a size."""

CLIP_FRAMES = 30
FRAME_MS = 70
LAST_FRAME_MS = 1500
LARGEST_FRAME_PIXELS = 1280 * 800
PAIR_GAP = 8
"""Pixels between the two pictures of a pair."""
LABEL_BAR_HEIGHT = 34
"""Height of the bar with a label."""
LABEL_BACKGROUND, LABEL_COLOUR = (21, 26, 31), (233, 237, 240)


@dataclass(frozen=True, kw_only=True)
class ClipOptions:
    """What to show: a box of the picture at a size, one source or two, as a pair or as the end of a zoom."""

    kind: ClipKind
    sources: tuple[str, ...]
    """The other side first."""
    box: Box
    size: tuple[int, int]
    labels: bool

    @property
    def scale(self) -> float:
        """Pixels of the result per pixel of the picture."""
        return self.size[0] / (self.box[2] - self.box[0])


def parse_clip(fields: Mapping[str, Any], opened: Opened) -> ClipOptions:
    """Parse kind, model, against, box (left, top, right, bottom in pixels of the picture), width, height and labels."""
    kind = read_text(fields, "kind")
    if kind not in get_args(ClipKind):
        raise SRNOError(f"kind {kind!r}: choose {', '.join(get_args(ClipKind))}")
    model, against = read_text(fields, "model") or "", read_text(fields, "against")
    if kind == "pair" and against is None:
        raise SRNOError("a pair needs the other side as `against`")
    size = read_number(fields, "width") or 0, read_number(fields, "height") or 0
    limit = LARGEST_TILE_PIXELS if kind == "pair" else LARGEST_FRAME_PIXELS
    if min(size) < 16 or size[0] * size[1] > limit:
        raise SRNOError(f"{size[0]}×{size[1]} pixels: give at least 16×16 and at most {limit:,}")
    options = ClipOptions(
        kind=cast(ClipKind, kind),
        sources=(model,) if against is None else (against, model),
        box=_box(fields.get("box"), opened.size),
        size=size,
        labels=fields.get("labels") is not False,
    )
    if not 1 <= options.scale <= LARGEST_ZOOM:
        raise SRNOError(
            f"zoom ×{options.scale:.2g}: give one from ×1, below which nothing is enlarged, to ×{LARGEST_ZOOM}"
        )
    return options


def make_clip(opened: Opened, options: ClipOptions, paint: Paint, progress: Progress) -> Exported:
    """Render the pictures and encode the file."""
    stem, zoom = PurePath(opened.name).stem, f"{options.scale:.3g}x"
    if options.kind == "pair":
        image = _pair(options, paint, progress)
        return Exported(f"{stem}_{zoom}_before_after.png", image.size, _encode([image], "PNG"))
    frames = list(_frames(opened, options, paint, progress))
    kind = options.kind.upper()
    return Exported(f"{stem}_zoom_{zoom}.{options.kind}", options.size, _encode(frames, kind))


def clip_bytes(options: ClipOptions) -> int:
    """Memory that the pictures of a clip take."""
    return 3 * options.size[0] * options.size[1] * (4 if options.kind == "pair" else 2 * CLIP_FRAMES)


def name_of(source: str) -> str:
    """A source as people read it; the page uses the same words."""
    filters = {"bicubic": "bicubic", NEAREST: "nearest neighbour"}
    return filters.get(source, "srno · " + re.sub(r"@([\d.]+)$", r", clean \1", source))


def zoom_of(scale: float) -> str:
    """A zoom as text; Pillow's font has no ×."""
    return f"{scale:.3g}x"


def _pair(options: ClipOptions, paint: Paint, progress: Progress) -> Image.Image:
    """Both sides, beside each other or, if they are wide, one above the other."""
    (width, height), bar = options.size, LABEL_BAR_HEIGHT if options.labels else 0
    wide = width > 1.5 * height
    step = (0, height + bar + PAIR_GAP) if wide else (width + PAIR_GAP, 0)
    sheet = Image.new("RGB", (width + step[0], height + bar + step[1]), LABEL_BACKGROUND)
    for i, source in enumerate(options.sources):
        image = paint(source, options.box, options.size, part_of(progress, i, 2) or progress)
        x, y = i * step[0], i * step[1]
        sheet.paste(_flat(image), (x, y + bar))
        if options.labels:
            _write(sheet, f"{name_of(source)}  {zoom_of(options.scale)}", (x + 10, y + LABEL_BAR_HEIGHT // 2))
    return sheet


def _frames(opened: Opened, options: ClipOptions, paint: Paint, progress: Progress) -> Iterator[Image.Image]:
    """From the whole picture to the box; with two sources the other side is on the left."""
    for i, box in enumerate(_journey(opened.size, options)):
        report = part_of(progress, i, CLIP_FRAMES) or progress
        sources = options.sources
        images = [
            _flat(paint(one, box, options.size, part_of(report, j, len(sources)) or report))
            for j, one in enumerate(sources)
        ]
        frame = images[-1]
        if len(images) == 2:
            middle = options.size[0] // 2
            frame.paste(images[0].crop((0, 0, middle, options.size[1])), (0, 0))
            frame.paste((255, 255, 255), (middle - 1, 0, middle + 1, options.size[1]))
        if options.labels:
            _label_frame(frame, options, options.size[0] / (box[2] - box[0]))
        yield frame


def _journey(size: tuple[int, int], options: ClipOptions) -> Iterator[Box]:
    """Boxes from the largest of the same shape in the picture to the last one; each zooms by the same factor."""
    left, top, right, bottom = options.box
    width, height = right - left, bottom - top
    largest = min(size[0] / width, size[1] / height)
    start = (_start(left, width, largest, size[0]), _start(top, height, largest, size[1]))
    for i in range(CLIP_FRAMES):
        grown = largest ** (1 - i / (CLIP_FRAMES - 1))
        share = (grown - 1) / (largest - 1) if largest > 1 else 0.0
        x, y = left + (start[0] - left) * share, top + (start[1] - top) * share
        yield x, y, min(size[0], x + width * grown), min(size[1], y + height * grown)


def _start(low: float, length: float, factor: float, limit: int) -> float:
    """Where an interval begins after it has grown around its centre, moved so that it lies in 0 … limit."""
    return min(max(0.0, low + length * (1 - factor) / 2), max(0.0, limit - length * factor))


def _label_frame(frame: Image.Image, options: ClipOptions, scale: float) -> None:
    """Zoom at the bottom left; below ×1 both sides are bicubic, and only that is written."""
    names = [name_of(source) for source in options.sources] if scale >= 1 else ["bicubic"]
    _write(frame, zoom_of(scale), (12, frame.height - 18), shade=True)
    _write(frame, names[-1], (frame.width - 12, 18), anchor="rm", shade=True)
    if len(names) == 2:
        _write(frame, names[0], (12, 18), shade=True)


def _write(image: Image.Image, text: str, place: tuple[int, int], *, anchor: str = "lm", shade: bool = False) -> None:
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(16)
    if shade:
        left, top, right, bottom = draw.textbbox(place, text, font=font, anchor=anchor)
        draw.rounded_rectangle((left - 6, top - 5, right + 6, bottom + 5), 6, fill=LABEL_BACKGROUND)
    draw.text(place, text, fill=LABEL_COLOUR, font=font, anchor=anchor)


def _flat(image: Image.Image) -> Image.Image:
    """Over white, without alpha."""
    if image.mode != "RGBA":
        return image.copy()
    white = Image.new("RGB", image.size, (255, 255, 255))
    white.paste(image, mask=image.getchannel("A"))
    return white


def _encode(frames: list[Image.Image], kind: str) -> bytes:
    stream = io.BytesIO()
    if len(frames) == 1:
        frames[0].save(stream, kind)
        return stream.getvalue()
    times = [FRAME_MS] * (len(frames) - 1) + [LAST_FRAME_MS]
    options: dict[str, Any] = {"quality": 85, "method": 4} if kind == "WEBP" else {}
    if kind == "GIF":
        frames = [_with_palette(frame) for frame in frames]
    frames[0].save(stream, kind, save_all=True, append_images=frames[1:], duration=times, loop=0, **options)
    return stream.getvalue()


def _with_palette(frame: Image.Image) -> Image.Image:
    """256 colours that reach all hues of a frame, dithered; those of the median cut leave out rare ones."""
    palette = frame.quantize(256, Image.Quantize.MAXCOVERAGE)
    return frame.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)


def _box(value: object, size: tuple[int, int]) -> Box:
    """Four numbers inside the picture."""
    numbers = cast(list[Any], value) if isinstance(value, list) else []
    if len(numbers) != 4 or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
        raise SRNOError("box: give four numbers, left, top, right and bottom in pixels of the picture")
    left, top, right, bottom = (float(one) for one in numbers)
    if not (0 <= left < right <= size[0] and 0 <= top < bottom <= size[1]):
        raise SRNOError(f"box: give a part of the picture's {size[0]}×{size[1]} pixels")
    return left, top, right, bottom
