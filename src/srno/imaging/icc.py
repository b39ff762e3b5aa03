"""ICC profiles: which samples they describe, and conversion to sRGB if a profile cannot be kept."""

import struct
from functools import lru_cache
from typing import Any, Literal, cast

import numpy as np
import pyvips

from srno.imaging.picture import Samples

Space = Literal["RGB", "GRAY", "CMYK"]

_HEADER = 128
_SPACES: dict[bytes, Space] = {b"RGB ": "RGB", b"GRAY": "GRAY", b"CMYK": "CMYK"}


def srgb() -> bytes:
    """The profile of sRGB."""
    return pyvips.Image.profile_load("srgb")


def space(icc: bytes | None) -> Space | None:
    """Return the kind of samples that a profile describes; None if there is no usable profile."""
    if icc is None or len(icc) <= _HEADER or icc[36:40] != b"acsp":
        return None
    return _SPACES.get(icc[16:20])


def match_profile(colour: Samples, icc: bytes | None) -> tuple[Samples, bytes | None]:
    """Return colour (h, w, 1|3) and a fitting profile; convert an RGB profile of gray, drop any other mismatch."""
    kind = space(icc)
    if kind == ("GRAY" if colour.shape[2] == 1 else "RGB"):
        return colour, icc
    if icc is None or kind != "RGB":
        return colour, None
    gray = gray_of(icc)
    # A table-based profile may map equal channels to a colour that is not neutral, so all three channels are kept.
    return (colour, gray) if gray else (np.repeat(colour, 3, axis=2), icc)


def collapse_gray(colour: Samples, icc: bytes | None) -> Samples:
    """Return gray (h, w, 1) if the channels of (h, w, 3) are equal and the profile does not need all three.

    For formats without gray samples, so that gray stays gray.
    """
    if colour.shape[2] != 3 or (icc is not None and space(icc) == "RGB" and gray_of(icc) is None):
        return colour
    first = colour[..., 0]
    equal = np.array_equal(first, colour[..., 1]) and np.array_equal(first, colour[..., 2])
    return colour[..., :1] if equal else colour


def gray_of(icc: bytes) -> bytes | None:
    """Return a gray profile with the tone curve of an RGB profile; None if its channels differ or it uses tables."""
    tags = _tags(icc)
    curves = {tags.get(name) for name in (b"rTRC", b"gTRC", b"bTRC")}
    if len(curves) != 1 or None in curves or b"A2B0" in tags or b"wtpt" not in tags:
        return None
    kept = {name: tags[name] for name in (b"desc", b"cprt", b"wtpt", b"chad") if name in tags}
    return _profile(icc[:_HEADER], b"GRAY", {**kept, b"kTRC": tags[b"gTRC"]})


def _rgb_of(icc: bytes) -> bytes:
    """Return an RGB profile with the primaries of sRGB and the curve of a gray profile; `icc` if it has no curve.

    The colour engine samples a gray profile at 33 points, up to ten levels off; it applies the curves of an RGB one.
    """
    curve = _tags(icc).get(b"kTRC")
    if curve is None:
        return icc
    standard = srgb()
    return _profile(standard[:_HEADER], b"RGB ", {**_tags(standard), b"rTRC": curve, b"gTRC": curve, b"bTRC": curve})


def to_srgb(colour: Samples, icc: bytes) -> Samples:
    """Convert colour (h, w, 1|3) from a gray or RGB profile to sRGB, with the same bits.

    Colours are unchanged if the profile is within one 8-bit level of sRGB, or cannot be used.
    """
    return _transform(colour, icc) if _changes_colours(icc, colour.shape[2]) else colour


def is_srgb(icc: bytes, channels: int) -> bool:
    """Whether a profile of gray or RGB samples is within one 8-bit level of sRGB, or cannot be used."""
    return not _changes_colours(icc, channels)


@lru_cache(maxsize=16)
def _changes_colours(icc: bytes, channels: int) -> bool:
    """Whether a profile can be used and differs from sRGB; cached, since it is the same for all tiles of a picture."""
    probe = _probe(channels)
    try:
        moved = _transform(probe, icc)
    except pyvips.Error:
        return False
    return bool(np.abs(moved.astype(np.int16) - probe).max() > 1)


def cmyk_to_srgb(ink: Samples, icc: bytes | None) -> Samples:
    """Convert ink (h, w, 4) to sRGB (h, w, 3); without a usable profile, with libvips's profile for offset printing."""
    if icc is not None and space(icc) == "CMYK":
        try:
            return _transform(ink, icc)
        except pyvips.Error:
            pass
    return _transform(ink, pyvips.Image.profile_load("cmyk"))


def _transform(colour: Samples, icc: bytes) -> Samples:
    """Convert colour (h, w, 1|3|4) from its profile to sRGB (h, w, 1|3)."""
    if colour.shape[2] == 1 and (as_rgb := _rgb_of(icc)) is not icc:
        return _transform(np.repeat(colour, 3, axis=2), as_rgb)[..., 1:2]
    bits = colour.dtype.itemsize * 8
    names = {1: "b-w" if bits == 8 else "grey16", 3: "srgb" if bits == 8 else "rgb16", 4: "cmyk"}
    image = pyvips.Image.new_from_array(np.ascontiguousarray(colour), interpretation=names[colour.shape[2]]).copy()
    # The annotation in pyvips does not allow bytes for a blob.
    image.set_type(pyvips.GValue.blob_type, "icc-profile-data", cast(Any, icc))
    moved = image.icc_transform(
        "srgb", embedded=True, intent="relative", black_point_compensation=True, depth=bits
    ).numpy()
    return moved[..., 1:2] if colour.shape[2] == 1 else moved


def _probe(channels: int) -> Samples:
    """Return all grays, or 17³ colours, as a picture."""
    if channels == 1:
        return np.arange(256, dtype=np.uint8).reshape(1, 256, 1)
    levels = np.linspace(0, 255, 17).round().astype(np.uint8)
    return np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1).reshape(17, 17 * 17, 3)


def _tags(icc: bytes) -> dict[bytes, bytes]:
    """The data of each tag; the table holds name, offset and size."""
    count = min(struct.unpack_from(">I", icc, _HEADER)[0], 100) if len(icc) >= _HEADER + 4 else 0
    table = icc[_HEADER + 4 : _HEADER + 4 + 12 * count]
    whole = table[: len(table) - len(table) % 12]
    return {name: icc[at : at + size] for name, at, size in struct.iter_unpack(">4sII", whole)}


def _profile(header: bytes, kind: bytes, tags: dict[bytes, bytes]) -> bytes:
    """A profile for another kind of samples, from the header of an existing one and the data of its tags."""
    at = _HEADER + 4 + 12 * len(tags)
    table, body = struct.pack(">I", len(tags)), b""
    for name, data in tags.items():
        padded = data + bytes(-len(data) % 4)
        table += struct.pack(">4sII", name, at + len(body), len(data))
        body += padded
    size = struct.pack(">I", at + len(body))
    # The profile ID at byte 84 is no longer valid; zeros mean that there is none.
    return size + header[4:16] + kind + header[20:84] + bytes(16) + header[100:_HEADER] + table + body
