"""Figures drawn with matplotlib, which comes with the extra `plot`."""

import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from srno.errors import SRNOError, require

DOTS_PER_INCH = 110
CAPTION_CHARACTERS_PER_INCH = 17.0
"""At the caption's font size."""


def new_figure(width: float, height: float, caption: str) -> Any:
    """Make a figure of this size in inches, with the definitions of what it shows at its foot."""
    figure = require("matplotlib.figure", "plot").Figure(figsize=(width, height), layout="constrained")
    lines = textwrap.wrap(caption, round(width * CAPTION_CHARACTERS_PER_INCH))
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8, color="#555555")
    return figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG."""
    save_png(path, partial(figure.savefig, dpi=DOTS_PER_INCH))


def save_png(path: Path, save: Callable[[Path], object]) -> None:
    """Write a PNG by a function that takes the path, and create its folder."""
    if path.suffix.lower() != ".png":
        raise SRNOError(f"{path}: figures are written as .png")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path)
    except OSError as error:
        raise SRNOError(f"{path}: cannot be written ({error.strerror})") from None


def style(axes: Any, title: str, x: str = "", y: str = "") -> None:
    """Set the labels of a plot, with a light grid."""
    axes.set_title(title, loc="left", fontsize="medium")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def show_map(axes: Any, values: Any, title: str = "", **options: Any) -> Any:
    """Show an array as a picture without ticks."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, fontsize=8, pad=3)
    return axes.imshow(values, **options)
