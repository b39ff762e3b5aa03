"""The paper's visual comparisons: scales, methods and layout of each figure."""

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from srno.errors import SRNOError
from srno.evaluation.datasets import SetPicture, reason_to_skip
from srno.evaluation.evaluate import Upscale
from srno.evaluation.protocols import Protocol, Scale
from srno.reproduce.exhibit import Box, make_exhibit
from srno.reproduce.panel import Overview, draw_panel


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
    boxes: Sequence[Box] = (),
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
