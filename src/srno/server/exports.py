"""Exports: the request that `srno upscale` takes, as JSON, and the file that it would write."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, cast

from srno.errors import SRNOError
from srno.imaging.formats import CAPABILITIES, Format, check_limits
from srno.imaging.picture import Picture
from srno.imaging.write import write
from srno.operator.model import Model
from srno.progress import Progress
from srno.server.opened import Opened
from srno.upscaling.enlarge import enlarge_picture
from srno.upscaling.sizes import Fit, Target, make_request
from srno.upscaling.upscaler import Upscaler

DEPTHS = {"keep": None, "8": 8, "16": 16}


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be written."""

    target: Target
    format: Format
    bits: int
    quality: int | None
    ensemble: bool
    metadata: bool

    def file_name(self, stem: str) -> str:
        """As `srno upscale` names it."""
        return f"{stem}_{self.target.label}x{CAPABILITIES[self.format].suffixes[0]}"


@dataclass(frozen=True)
class Exported:
    """A finished file."""

    name: str
    size: tuple[int, int]
    data: bytes
    notes: tuple[str, ...]
    """What the format could not hold."""


def read_order(given: Mapping[str, Any], picture: Picture) -> Order:
    """Check what the page asks for: scale, size with fit, width or height; format, depth, quality, ensemble, metadata.

    Nothing is computed for a file that its format cannot hold.
    """
    request = make_request(
        scale=_text(given, "scale"),
        size=_text(given, "size"),
        width=_number(given, "width"),
        height=_number(given, "height"),
        fit=cast(Fit | None, _text(given, "fit")),
    )
    kind = _format(_text(given, "format") or "PNG")
    depth = _text(given, "depth") or "keep"
    if depth not in DEPTHS:
        raise SRNOError(f"depth {depth!r}: choose {', '.join(DEPTHS)}")
    quality = _number(given, "quality")
    if quality is not None and not 1 <= quality <= 100:
        raise SRNOError(f"quality {quality} is not between 1 and 100")
    order = Order(
        target=request.target(picture.size),
        format=kind,
        bits=DEPTHS[depth] or picture.bits,
        quality=quality,
        ensemble=given.get("ensemble") is True,
        metadata=given.get("metadata") is not False,
    )
    check_limits(kind, *order.target.size, picture.channels, order.bits)
    return order


def export(opened: Opened, model: Model, order: Order, progress: Progress) -> Exported:
    """Enlarge a picture and encode it, by the functions behind `srno upscale`."""
    upscaler = Upscaler(model=model, ensemble=order.ensemble)
    large = enlarge_picture(opened.picture, order.target, upscaler, order.bits, progress)
    progress(1.0)
    stream = io.BytesIO()
    notes = write(large, stream, format=order.format, quality=order.quality, metadata=order.metadata).notes
    return Exported(order.file_name(PurePath(opened.name).stem), order.target.size, stream.getvalue(), notes)


def _format(name: str) -> Format:
    for known in CAPABILITIES:
        if known == name.upper():
            return known
    raise SRNOError(f"format {name!r} is unknown; these are written: {', '.join(CAPABILITIES)}")


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float) or len(str(value)) > 40:
        raise SRNOError(f"{name} must be a short text or a number")
    return str(value)


def _number(given: Mapping[str, Any], name: str) -> int | None:
    text = _text(given, name)
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,10}", text):
        raise SRNOError(f"{name} {text!r} is no whole number")
    return int(text)
