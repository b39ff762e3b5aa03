"""Exports: the options of `srno upscale` as JSON, what they cost, and the file that the command would write."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, TypeAlias, cast

import numpy as np

from srno.errors import SRNOError
from srno.field.blocks import BlockField
from srno.imaging.formats import CAPABILITIES, Format, check_limits
from srno.imaging.picture import Picture, from_float, to_float
from srno.imaging.resize import matlab_bicubic_float
from srno.imaging.write import write
from srno.operator.encoder import channels
from srno.operator.model import Model
from srno.progress import Progress
from srno.server.opened import Opened
from srno.server.resample import alpha_values
from srno.upscaling.enlarge import enlarge_picture
from srno.upscaling.sizes import Fit, Target, make_request
from srno.upscaling.upscaler import Upscaler

BIT_DEPTHS = {"keep": None, "8": 8, "16": 16}
SMALLEST_ENGINE_MEMORY = 128_000_000
"""Bytes for the encoder's activations and the chunks of a render."""
PROBE_SIDE = 256
"""Pixels along a side of the samples from which the size of a file is estimated."""
PROBES_PER_AXIS = 3
"""Samples along each axis of the picture."""


Part: TypeAlias = tuple[int, int, int, int]
"""(left, top, right, bottom) in pixels of the picture."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Part, size, format and quality of the file to write."""

    target: Target
    format: Format
    bits: int
    quality: int | None
    ensemble: bool
    metadata: bool
    part: Part | None = None
    """The part of the picture to enlarge; None for all of it."""

    def file_name(self, stem: str) -> str:
        """The name that `srno upscale` gives the file; that of a part says where it is."""
        place = "" if self.part is None else f"_at_{self.part[0]}_{self.part[1]}"
        return f"{stem}{place}_{self.target.label}x{CAPABILITIES[self.format].suffixes[0]}"


@dataclass(frozen=True)
class Exported:
    """A finished file."""

    name: str
    size: tuple[int, int]
    data: bytes
    notes: tuple[str, ...] = ()
    """What the format could not store."""


def parse_options(fields: Mapping[str, Any], picture: Picture) -> ExportOptions:
    """Parse scale, size with fit, width or height; part, format, depth, quality, ensemble, metadata.

    Raises before anything is computed if the format cannot store the file.
    """
    request = make_request(
        scale=read_text(fields, "scale"),
        size=read_text(fields, "size"),
        width=read_number(fields, "width"),
        height=read_number(fields, "height"),
        fit=cast(Fit | None, read_text(fields, "fit")),
    )
    kind = _format(read_text(fields, "format") or "PNG")
    depth = read_text(fields, "depth") or "keep"
    if depth not in BIT_DEPTHS:
        raise SRNOError(f"depth {depth!r}: choose {', '.join(BIT_DEPTHS)}")
    quality = read_number(fields, "quality")
    if quality is not None and not 1 <= quality <= 100:
        raise SRNOError(f"quality {quality} is not between 1 and 100")
    part = _part(fields.get("part"), picture.size)
    target = request.target(picture.size if part is None else (part[2] - part[0], part[3] - part[1]))
    if part is not None and min(target.scale) < 1:
        raise SRNOError(f"scale {target.label}: a part is enlarged; give a scale of at least 1")
    options = ExportOptions(
        target=target,
        part=part,
        format=kind,
        bits=BIT_DEPTHS[depth] or picture.bits,
        quality=quality,
        ensemble=part is None and fields.get("ensemble") is True,
        metadata=fields.get("metadata") is not False,
    )
    check_limits(kind, *options.target.size, picture.channels, options.bits)
    return options


def export(opened: Opened, model: Model, options: ExportOptions, memory: int, progress: Progress) -> Exported:
    """Enlarge a picture and encode it, with the functions behind `srno upscale`; the engine may use `memory` bytes."""
    upscaler = Upscaler(model=model, ensemble=options.ensemble, memory=memory)
    large = enlarge_picture(opened.picture, options.target, upscaler, options.bits, progress)
    progress(1.0)
    return _encode(opened, large, options)


def export_part(opened: Opened, field: BlockField, options: ExportOptions, progress: Progress) -> Exported:
    """Enlarge a part of a picture as the page does, with the most accurate integral, and encode it."""
    assert options.part is not None
    (left, top, right, bottom), target = options.part, options.target
    rgb = field.render((target.whole[1], target.whole[0]), region=(top, left, bottom, right), progress=progress)
    (x, y), (width, height) = target.origin, target.size
    values = (rgb[:, y : y + height, x : x + width].permute(1, 2, 0).float() * 0.5 + 0.5).cpu().numpy()
    if opened.picture.colour.shape[2] == 1:
        values = values.mean(axis=2, keepdims=True)
    alpha = alpha_values(opened, options.part, target.whole)
    large = replace(
        opened.picture,
        colour=from_float(values, options.bits),
        alpha=None if alpha is None else from_float(alpha[y : y + height, x : x + width], options.bits),
    )
    return _encode(opened, large, options)


def _encode(opened: Opened, large: Picture, options: ExportOptions) -> Exported:
    stream = io.BytesIO()
    notes = write(large, stream, format=options.format, quality=options.quality, metadata=options.metadata).notes
    return Exported(options.file_name(PurePath(opened.name).stem), options.target.size, stream.getvalue(), notes)


def memory_needed(opened: Opened, model: Model, options: ExportOptions) -> int:
    """Bytes that an export takes besides those of the engine: the lifted picture, the output, and the file."""
    lifted = 0 if options.part else opened.pixels * 4 * (2 * 3 + channels(model.encoder))
    whole, size = (width * height for width, height in (options.target.whole, options.target.size))
    rendered = whole * 12 * (2 if options.ensemble or options.part else 1)
    file = size * opened.picture.channels * options.bits // 8
    return lifted + rendered + 2 * file


def estimate_bytes(opened: Opened, options: ExportOptions) -> int:
    """Estimate the size of the file: samples of the picture are enlarged by a bicubic filter and encoded."""
    picture, (x, y) = opened.picture, options.target.scale
    start_x, start_y, *end = options.part or (0, 0, *picture.size)
    width, height = end[0] - start_x, end[1] - start_y
    side = max(1, min(width, int(PROBE_SIDE / x))), max(1, min(height, int(PROBE_SIDE / y)))
    encoded = pixels = 0
    for i in range(PROBES_PER_AXIS * PROBES_PER_AXIS):
        left = start_x + (width - side[0]) * (i % PROBES_PER_AXIS) // (PROBES_PER_AXIS - 1)
        top = start_y + (height - side[1]) * (i // PROBES_PER_AXIS) // (PROBES_PER_AXIS - 1)
        part = _enlarged(picture, slice(top, top + side[1]), slice(left, left + side[0]), options)
        stream = io.BytesIO()
        write(part, stream, format=options.format, quality=options.quality, metadata=False)
        encoded += len(stream.getvalue())
        pixels += part.size[0] * part.size[1]
    return encoded * options.target.size[0] * options.target.size[1] // pixels


def _enlarged(picture: Picture, rows: slice, columns: slice, options: ExportOptions) -> Picture:
    """A part of a picture, without its metadata, at the scale and depth of an export."""
    x, y = options.target.scale

    def enlarge(samples: Any) -> Any:
        part = to_float(samples[rows, columns])
        size = max(1, round(part.shape[0] * y)), max(1, round(part.shape[1] * x))
        return from_float(matlab_bicubic_float(part, size), options.bits)

    alpha = None if picture.alpha is None else enlarge(picture.alpha)
    return replace(Picture(colour=np.atleast_3d(enlarge(picture.colour))), alpha=alpha)


def _part(value: object, size: tuple[int, int]) -> Part | None:
    """Four whole numbers inside the picture."""
    if value is None:
        return None
    numbers = cast(list[Any], value) if isinstance(value, list) else []
    if len(numbers) != 4 or not all(isinstance(one, int) and not isinstance(one, bool) for one in numbers):
        raise SRNOError("part: give four whole numbers, left, top, right and bottom in pixels of the picture")
    left, top, right, bottom = numbers
    if not (0 <= left < right <= size[0] and 0 <= top < bottom <= size[1]):
        raise SRNOError(f"part: give a part of the picture's {size[0]}×{size[1]} pixels")
    return left, top, right, bottom


def _format(name: str) -> Format:
    for known in CAPABILITIES:
        if known == name.upper():
            return known
    raise SRNOError(f"format {name!r} is unknown; choose {', '.join(CAPABILITIES)}")


def read_text(fields: Mapping[str, Any], name: str) -> str | None:
    """A short text or number of a JSON object as text; None if it is missing or empty."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float) or len(str(value)) > 40:
        raise SRNOError(f"{name} must be a short string or a number")
    return str(value)


def read_number(fields: Mapping[str, Any], name: str) -> int | None:
    """A whole number of a JSON object; None if it is missing or empty."""
    text = read_text(fields, name)
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,10}", text):
        raise SRNOError(f"{name} {text!r} is not a whole number")
    return int(text)
