"""Draw the paper's visual comparisons: an overview with boxes, and every method's close-ups beside it.

Each function returns a picture, which is composed of smaller ones side by side or one below the other.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from srno.errors import SRNOError
from srno.evaluation.datasets import SetPicture, reason_to_skip
from srno.evaluation.evaluate import Upscale
from srno.evaluation.protocols import Protocol, Scale
from srno.reproduce.exhibit import CLOSE_UP_SIDE, CloseUpBox, Exhibit, MethodTile, cut, make_exhibit

Overview: TypeAlias = Literal["truth", "lr", "none"]
"""What is drawn at the left of an exhibit, with the boxes in it."""
Font: TypeAlias = ImageFont.FreeTypeFont | ImageFont.ImageFont

GAP_PIXELS = 10
FRAME_PIXELS = 3
BOX_COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b")
"""Colours of the boxes, in order."""
TEXT_COLOUR, CAPTION_COLOUR, BACKGROUND_COLOUR = "#111111", "#666666", "#ffffff"
BASIC_CHARACTERS = str.maketrans({"×": "x", "²": "^2", "–": "-", "σ": "sigma ", "·": "-", "…": "..."})
"""Replacements for characters that Pillow's built-in font lacks."""


def draw_panel(exhibits: Sequence[Exhibit], *, overview: Overview = "truth", columns: int | None = None) -> Image.Image:
    """Draw exhibits one below the other, each with a row of close-ups per box, wrapped after `columns` if given."""
    grids = [_draw_grid(exhibit, columns) for exhibit in exhibits]
    if overview == "none":
        parts = [_below([_title(exhibit), grid]) for exhibit, grid in zip(exhibits, grids, strict=True)]
    else:
        wholes = [_draw_overview(exhibit, overview, grid.height) for exhibit, grid in zip(exhibits, grids, strict=True)]
        column = max(whole.width for whole in wholes)
        parts = [_beside([_widen(whole, column), grid]) for whole, grid in zip(wholes, grids, strict=True)]
    caption = _caption(exhibits[0], max(part.width for part in parts))
    return _frame(_below([*parts, caption], gap=2 * GAP_PIXELS, centred=False), 2 * GAP_PIXELS, BACKGROUND_COLOUR)


def _draw_grid(exhibit: Exhibit, columns: int | None) -> Image.Image:
    """Draw every method's close-ups, box by box."""
    rows: list[Image.Image] = []
    for box, colour in _coloured(exhibit.boxes):
        numbers = [exhibit.crop_psnr(tile, box) for tile in exhibit.tiles[:-1]]
        tiles = [
            _draw_tile(exhibit, tile, box, colour, f"{number:.2f}" == f"{max(numbers):.2f}")
            for tile, number in zip(exhibit.tiles, [*numbers, float("-inf")], strict=True)
        ]
        step = columns or len(tiles)
        rows += [_beside(tiles[start : start + step]) for start in range(0, len(tiles), step)]
    return _below(rows, centred=False)


def _draw_overview(exhibit: Exhibit, overview: Overview, height: int) -> Image.Image:
    """Draw the whole picture with its boxes and labels at this total height, or lower if it is very wide."""
    words = "truth, with the boxes" if overview == "truth" else f"low resolution, {_size(exhibit.lr)}"
    labels = [_title(exhibit), _text(words, 14, CAPTION_COLOUR)]
    truth = exhibit.truth
    available = height - sum(label.height + GAP_PIXELS // 2 for label in labels)
    factor = min(available / truth.shape[0], 2.5 * CLOSE_UP_SIDE / truth.shape[1])
    size = (round(truth.shape[1] * factor), round(truth.shape[0] * factor))
    if overview == "truth":
        whole = _image(truth).resize(size, Image.Resampling.LANCZOS)
    else:
        whole = _image(exhibit.lr).resize(size, Image.Resampling.NEAREST)
    drawing = ImageDraw.Draw(whole)
    for (left, top, box_width, box_height), colour in _coloured(exhibit.boxes):
        corners = (left, top, left + box_width, top + box_height)
        drawing.rectangle([round(value * factor) for value in corners], outline=colour, width=FRAME_PIXELS)
    return _below([whole, *labels], gap=GAP_PIXELS // 2)


def _title(exhibit: Exhibit) -> Image.Image:
    return _text(exhibit.title, 17, bold=True)


def _draw_tile(exhibit: Exhibit, tile: MethodTile, box: CloseUpBox, colour: str, best: bool) -> Image.Image:
    crop = _image(cut(tile.pixels, box))
    longer = max(crop.size)
    if longer <= CLOSE_UP_SIDE:
        # integer factors without smoothing show the method's own pixels
        zoom = max(1, round(CLOSE_UP_SIDE / longer))
        crop = crop.resize((crop.width * zoom, crop.height * zoom), Image.Resampling.NEAREST)
    else:
        crop.thumbnail((CLOSE_UP_SIDE, CLOSE_UP_SIDE), Image.Resampling.LANCZOS)
    crop = _frame(crop, FRAME_PIXELS, colour)
    name = _text(_shorten(tile.name, crop.width, 17), 17)
    if tile.psnr is None:
        numbers = _text("crop / whole, dB", 14, CAPTION_COLOUR)
    else:
        numbers = _text(f"{exhibit.crop_psnr(tile, box):.2f} / {tile.psnr:.2f}", 15, bold=best)
    drawn = _below([crop, name, numbers], gap=GAP_PIXELS // 2)
    return _widen(drawn, max(drawn.width, CLOSE_UP_SIDE + 2 * FRAME_PIXELS))


def _caption(exhibit: Exhibit, width: int) -> Image.Image:
    """Draw the explanation of the numbers."""
    channel = "Y" if exhibit.protocol.channel == "y" else "RGB"
    words = f"PSNR on {channel} of the close-up / of the whole picture, the best close-up in bold. "
    words += f"Protocol {exhibit.protocol}"
    lines = textwrap.wrap(words, max(20, round(0.97 * width * len(words) / _font(13).getlength(words))))
    return _below([_text(line, 13, CAPTION_COLOUR) for line in lines], gap=3, centred=False)


def _coloured(boxes: Sequence[CloseUpBox]) -> list[tuple[CloseUpBox, str]]:
    return [(box, BOX_COLOURS[number % len(BOX_COLOURS)]) for number, box in enumerate(boxes)]


def _image(pixels: NDArray[np.float32]) -> Image.Image:
    return Image.fromarray((pixels.clip(0, 1) * 255 + 0.5).astype(np.uint8))


def _size(pixels: NDArray[np.float32]) -> str:
    return f"{pixels.shape[1]}×{pixels.shape[0]}"


def _beside(parts: Sequence[Image.Image], gap: int = GAP_PIXELS) -> Image.Image:
    width, height = sum(part.width + gap for part in parts) - gap, max(part.height for part in parts)
    canvas = Image.new("RGB", (width, height), BACKGROUND_COLOUR)
    left = 0
    for part in parts:
        canvas.paste(part, (left, 0))
        left += part.width + gap
    return canvas


def _below(parts: Sequence[Image.Image], gap: int = GAP_PIXELS, *, centred: bool = True) -> Image.Image:
    width = max(part.width for part in parts)
    canvas = Image.new("RGB", (width, sum(part.height + gap for part in parts) - gap), BACKGROUND_COLOUR)
    top = 0
    for part in parts:
        canvas.paste(part, ((width - part.width) // 2 if centred else 0, top))
        top += part.height + gap
    return canvas


def _widen(part: Image.Image, width: int) -> Image.Image:
    canvas = Image.new("RGB", (width, part.height), BACKGROUND_COLOUR)
    canvas.paste(part, ((width - part.width) // 2, 0))
    return canvas


def _frame(part: Image.Image, thickness: int, colour: str) -> Image.Image:
    canvas = Image.new("RGB", (part.width + 2 * thickness, part.height + 2 * thickness), colour)
    canvas.paste(part, (thickness, thickness))
    return canvas


def _text(words: str, size: int, colour: str = TEXT_COLOUR, *, bold: bool = False) -> Image.Image:
    font = _font(size, bold=bold)
    words = words if _has_all_characters(font) else words.translate(BASIC_CHARACTERS)
    _, _, right, bottom = font.getbbox(words)
    canvas = Image.new("RGB", (max(1, round(right)), max(round(bottom), round(1.2 * size))), BACKGROUND_COLOUR)
    ImageDraw.Draw(canvas).text((0, 0), words, fill=colour, font=font)
    return canvas


def _shorten(words: str, width: int, size: int) -> str:
    font = _font(size)
    while len(words) > 2 and font.getlength(words) > width:
        words = words[:-2] + "…"
    return words


def _font(size: int, *, bold: bool = False) -> Font:
    """DejaVu if the system has it, otherwise Pillow's built-in font."""
    try:
        return ImageFont.truetype("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)


def _has_all_characters(font: Font) -> bool:
    return isinstance(font, ImageFont.FreeTypeFont) and (font.getname()[0] or "").startswith("DejaVu")


@dataclass(frozen=True)
class Figure:
    """A figure of the paper."""

    title: str
    scales: tuple[str, ...]
    methods: tuple[str, ...]
    """methods that the paper shows, besides the truth"""
    overview: Overview = "none"
    columns: int | None = None


FIGURES = {
    "fig-zero-shot": Figure("Scales far beyond training.", ("12", "8"), ("Bicubic", "LIIF", "LTE", "SRNO"), "lr"),
    "fig-fractional": Figure("Fractional scales.", ("6.6", "8.8"), ("Bicubic", "LIIF", "LTE", "SRNO")),
    "fig-sampling": Figure(
        "More supervision points in training.",
        ("8",),
        ("Bicubic", "SRNO (48²)", "SRNO (64²)", "SRNO (96²)", "SRNO (128²)"),
        columns=3,
    ),
    "fig-lifting": Figure(
        "Interpolation-free lifting against the nearest pixel (-i).", ("8",), ("LTE", "SRNO (-i)", "SRNO"), columns=2
    ),
    "fig-sequential": Figure("Random against sequential sampling (-s).", ("4",), ("SRNO (-s)", "SRNO")),
    "fig-comparison": Figure(
        "The supplement's comparison: six pairs of a picture and a scale.",
        ("8", "4", "8", "4", "2.3", "7.5"),
        ("Bicubic", "LIIF", "LTE", "SRNO"),
        "lr",
    ),
}


def parse_rows(text: str) -> tuple[Scale, ...]:
    """Parse `"8,4,8"` into a scale per row; a scale may occur several times, with different pictures."""
    return tuple(Scale.parse(part) for part in text.split(","))


def draw_figure(
    figure: Figure,
    methods: Sequence[tuple[str, Upscale]],
    pictures: Sequence[SetPicture],
    scales: Sequence[Scale],
    protocol: Protocol,
    boxes: Sequence[CloseUpBox] = (),
) -> Image.Image:
    """Draw a row per scale, with one picture per scale or one for all; boxes likewise."""
    for what, given in (("--picture", pictures), ("--boxes", boxes)):
        if len(given) not in (1, len(scales)) and not (what == "--boxes" and not given):
            raise SRNOError(f"{what}: give one, or one for each of the {len(scales)} scales")
    exhibits = []
    for row, scale in enumerate(scales):
        picture = pictures[row % len(pictures)]
        if reason := reason_to_skip(picture, scale, protocol):
            raise SRNOError(f"--picture {picture.path} at ×{scale}: {reason}")
        row_boxes = [boxes[row % len(boxes)]] if boxes else []
        exhibits.append(make_exhibit(methods, picture, scale, protocol, row_boxes, count=1))
    return draw_panel(exhibits, overview=figure.overview, columns=figure.columns)
