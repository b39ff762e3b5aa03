"""Path and format of a result: beside its source, in a folder, by a template, or one file."""

import re
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from srno.errors import SRNOError
from srno.imaging.formats import (
    CAPABILITIES,
    LARGE_CAPABILITIES,
    READ_SUFFIXES,
    Capability,
    Format,
    check_codec,
    is_zarr,
)
from srno.upscaling.sizes import Target
from srno.upscaling.sources import Source

BESIDE_SOURCE_TEMPLATE = "{stem}_{scale}x.{ext}"
"""Names of results beside their sources."""
IN_FOLDER_TEMPLATE = "{stem}.{ext}"
KEPT_FORMATS: frozenset[Format] = frozenset({"PNG", "JPEG", "TIFF", "ZARR"})
"""Formats that a result keeps unless one is given. The others become PNG: GIF has 256 colours, WebP halves the
resolution of colour, AVIF and JPEG XL are written with 8 bits only, HEIC is not written, and BMP has no alpha."""
KEPT_ANIMATIONS: frozenset[Format] = KEPT_FORMATS.union(("GIF", "WEBP"))
"""The same for animations and pages: few programs show an animated PNG, and it is many times as large."""
TEMPLATE_FIELDS = {"stem": r".+", "scale": r"[\d.]+(?:x[\d.]+)?", "width": r"\d+", "height": r"\d+", "ext": r"\w+"}
"""Fields of a template, and the pattern that each matches."""

Frames: TypeAlias = Literal["all", "first"]
"""Frames of animations and pages to enlarge."""

_WRITTEN_FORMATS: dict[Format, Capability] = {**CAPABILITIES, **LARGE_CAPABILITIES}
_BY_SUFFIX: dict[str, Format] = {suffix: name for name, known in _WRITTEN_FORMATS.items() for suffix in known.suffixes}


@dataclass(frozen=True)
class Naming:
    """Rules for the names of results."""

    folder: Path | None = None
    """None is the folder of each source; otherwise the tree below it is that of the sources."""
    template: str = BESIDE_SOURCE_TEMPLATE
    format: Format | None = None
    """None lets the template's suffix decide, or else the source's format."""
    bits: int | None = None
    """Requested bits per channel."""
    stdout: bool = False
    """Write to standard output, not to files."""
    frames: Frames = "all"

    def format_of(self, kind: Format, frames: int = 1) -> Format:
        """The format of the result for a source of format `kind` with so many frames or pages."""
        fixed = self.format or _BY_SUFFIX.get(Path(self.template).suffix.lower())
        if fixed is not None:
            return fixed
        kept = KEPT_ANIMATIONS if frames > 1 and self.frames == "all" else KEPT_FORMATS
        return kind if kind in kept and (self.bits or 8) in _WRITTEN_FORMATS[kind].bits else "PNG"

    def kept_frames(self, kind: Format, frames: int) -> int:
        """The number of frames or pages of the result for such a source."""
        held = _WRITTEN_FORMATS[self.format_of(kind, frames)].sequence
        known = _WRITTEN_FORMATS.get(kind)
        return frames if self.frames == "all" and known and held and known.sequence == held else 1

    def output(self, source: Source, kind: Format, target: Target, frames: int = 1) -> Path | None:
        """The file for the result of one source of format `kind` with so many frames; None is standard output."""
        if self.stdout:
            return None
        values = {
            "stem": source.relative.stem,
            "scale": target.label,
            "width": target.size[0],
            "height": target.size[1],
            "ext": _extension(source, kind, self.format_of(kind, frames)),
        }
        return self.folder_of(source) / self.template.format_map(values)

    def folder_of(self, source: Source) -> Path:
        """The folder for the result of one source."""
        if self.folder is not None:
            return self.folder / source.relative.parent
        return Path() if source.path is None else source.path.parent

    def source_stem(self, name: str) -> str | None:
        """The stem of the source whose result could have this name at any scale, or None."""
        pattern, seen = "", set[str]()
        for literal, field, _, _ in string.Formatter().parse(self.template):
            pattern += re.escape(literal)
            if field:
                pattern += f"(?P={field})" if field in seen else f"(?P<{field}>{TEMPLATE_FIELDS[field]})"
                seen.add(field)
        match = re.fullmatch(pattern, name, re.DOTALL)
        return match["stem"] if match and "stem" in seen else None


def parse_output(text: str | None, format_name: str | None, bits: int | None, inputs: list[str]) -> Naming:
    """Parse `-o`: nothing, `-`, a template with braces, one file, or a folder."""
    kind = None if format_name is None else parse_format(format_name)
    if text == "-" or (text is None and inputs == ["-"]):
        return Naming(format=kind, bits=bits, stdout=True)
    if text is None:
        return Naming(format=kind, bits=bits)
    if not text:
        raise SRNOError("--output is empty; give a file or a folder")
    path = Path(text)
    if "{" in text:
        return _template(text, kind, bits)
    suffix = path.suffix.lower()
    folder = path.is_dir() and suffix not in LARGE_CAPABILITIES["ZARR"].suffixes
    if folder or text.endswith(("/", "\\")) or not re.fullmatch(r"\.[a-z]\w{1,4}", suffix):
        return Naming(path, IN_FOLDER_TEMPLATE, kind, bits)
    _check_suffix(text, suffix, kind)
    if len(inputs) > 1 or (Path(inputs[0]).is_dir() and not is_zarr(Path(inputs[0]))):
        raise SRNOError(f"--output {text}: several pictures cannot become one file; give a folder such as {path.stem}/")
    return Naming(path.parent, path.name.replace("}", "}}"), kind, bits)


def parse_format(name: str) -> Format:
    """png, jpg, tiff … → PNG, JPEG, TIFF …"""
    for known, capability in _WRITTEN_FORMATS.items():
        if name.lower() == known.lower() or f".{name.lower().lstrip('.')}" in capability.suffixes:
            check_codec(known)
            return known
    raise SRNOError(f"--format {name!r}: choose {', '.join(known.lower() for known in _WRITTEN_FORMATS)}")


def _template(text: str, kind: Format | None, bits: int | None) -> Naming:
    head, slash, name = text.rpartition("/")
    try:
        used = {field for _, field, _, _ in string.Formatter().parse(text) if field is not None}
        unknown = ", ".join("{" + field + "}" for field in sorted(used - TEMPLATE_FIELDS.keys()))
        if unknown:
            raise ValueError(f"unknown {unknown}")
        name.format_map({field: 1 if field in ("width", "height") else "x" for field in TEMPLATE_FIELDS})
    except (ValueError, KeyError) as error:
        fields = ", ".join("{" + field + "}" for field in TEMPLATE_FIELDS)
        raise SRNOError(f"--output {text!r} is not a template ({error}); it may use {fields}") from None
    if not name.endswith(".{ext}"):
        _check_suffix(text, Path(name).suffix.lower(), kind)
    if any(field in head for field in ("{", "}")):
        raise SRNOError(f"--output {text!r}: only the name may be a template, not its folder")
    return Naming(Path(head or "/") if slash else None, name, kind, bits)


def _check_suffix(text: str, suffix: str, kind: Format | None) -> None:
    if suffix not in _BY_SUFFIX:
        what = "is read but not written" if suffix in READ_SUFFIXES else "is not a known format"
        raise SRNOError(f"--output {text}: {suffix or 'no suffix'} {what}; use {', '.join(_BY_SUFFIX)}")
    check_codec(_BY_SUFFIX[suffix])
    if kind is not None and _BY_SUFFIX[suffix] != kind:
        raise SRNOError(f"--output {text} and --format {kind.lower()} contradict each other; leave one out")


def _extension(source: Source, kind: Format, written: Format) -> str:
    """The source's suffix if the format is kept, so that Photo.JPEG stays .JPEG; otherwise the format's."""
    own = source.relative.suffix
    suffixes = _WRITTEN_FORMATS[written].suffixes
    return (own if written == kind and own.lower() in suffixes else suffixes[0]).removeprefix(".")
