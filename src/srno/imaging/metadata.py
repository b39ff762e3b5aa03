"""Metadata of a file, and the part of it that stays true for the enlarged picture: EXIF, XMP, IPTC, comments.

XMP is kept byte for byte, except properties that become false when a picture is rotated upright and resized: the parser
only finds where a property begins and ends, and the packet is never written again from a tree. IPTC-IIM, the captions
and keywords of press pictures, is alone in TIFF and inside a Photoshop block in JPEG.
"""

import re
import struct
from dataclasses import dataclass, field, replace
from xml.parsers import expat

from srno.imaging import exif
from srno.imaging.picture import Picture, Text

PHOTOSHOP_PREFIX = b"Photoshop 3.0\0"
"""Precedes the block in JPEG."""

_PHOTOSHOP_RESOURCE = b"8BIM"
_IPTC_RESOURCE = 0x0404
_IPTC_MARKER = 0x1C
_DESCRIPTIVE_RECORDS = (1, 2)
"""The envelope and the description; other records hold the size and samples of a picture."""
_PREVIEW_DATASETS = range(200, 203)
"""Of the second record: a small copy of the picture."""

_TIFF_NAMESPACE = "http://ns.adobe.com/tiff/1.0/"
_EXIF_NAMESPACE = "http://ns.adobe.com/exif/1.0/"
_STALE_PROPERTIES: dict[str, frozenset[str] | None] = {
    # How the samples are stored: orientation, size, layout.
    _TIFF_NAMESPACE: frozenset(
        {"Orientation", "ImageWidth", "ImageLength", "BitsPerSample", "SamplesPerPixel", "Compression"}
        | {"PhotometricInterpretation", "PlanarConfiguration", "YCbCrSubSampling", "YCbCrPositioning"}
    ),
    _EXIF_NAMESPACE: frozenset(
        {"PixelXDimension", "PixelYDimension", "ImageWidth", "ImageLength", "Orientation"}
        | {"ComponentsConfiguration", "CompressedBitsPerPixel"}
    ),
    "http://ns.adobe.com/photoshop/1.0/": frozenset({"ColorMode", "ICCProfile"}),
    # A small copy of the picture.
    "http://ns.adobe.com/xap/1.0/": frozenset({"Thumbnails"}),
    # Data in other parts of the file, which are not copied: the rest of a long packet, a film, a gain map.
    "http://ns.adobe.com/xmp/note/": None,
    "http://ns.google.com/photos/1.0/camera/": None,
    "http://ns.google.com/photos/1.0/container/": None,
    "http://ns.adobe.com/hdr-gain-map/1.0/": None,
}
"""Properties to drop by namespace; None is all of them."""
_XML_TAG = re.compile(rb"""<[^"'>]*(?:"[^"]*"[^"'>]*|'[^']*'[^"'>]*)*>""")
_NAME_SEPARATOR = "\n"  # cannot occur in a name


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Metadata of a file; XMP is the packet as stored."""

    exif: bytes | None = None
    xmp: bytes | None = None
    iptc: bytes | None = None
    comments: tuple[bytes, ...] = ()
    texts: tuple[Text, ...] = ()


def described(picture: Picture, blocks: Blocks) -> Picture:
    """Add metadata to a picture, without what becomes false when it is rotated upright and resized."""
    packet = None if blocks.xmp is None else clean_xmp(blocks.xmp)
    notes = ("XMP left out: it is damaged",) if packet is None and blocks.xmp is not None else ()
    return replace(
        picture,
        exif=exif.from_block(blocks.exif).block,
        xmp=packet,
        iptc=blocks.iptc,
        comments=blocks.comments,
        texts=blocks.texts,
        notes=picture.notes + notes,
    )


def from_photoshop(block: bytes) -> bytes | None:
    """Return the IPTC data of a Photoshop block without its prefix: resources with number, name, size and content."""
    at = 0
    while block[at : at + 4] == _PHOTOSHOP_RESOURCE and at + 8 <= len(block):
        number = struct.unpack_from(">H", block, at + 4)[0]
        name = block[at + 6] + 1
        at += 6 + name + name % 2
        if at + 4 > len(block):
            return None
        size = struct.unpack_from(">I", block, at)[0]
        if number == _IPTC_RESOURCE:
            return clean_iptc(block[at + 4 : at + 4 + size])
        at += 4 + size + size % 2
    return None


def to_photoshop(iptc: bytes) -> bytes:
    """Return a Photoshop block without its prefix that holds only IPTC data."""
    return _PHOTOSHOP_RESOURCE + struct.pack(">HHI", _IPTC_RESOURCE, 0, len(iptc)) + iptc + bytes(len(iptc) % 2)


def clean_iptc(iptc: bytes) -> bytes | None:
    """Return the datasets that describe a picture, up to the first damaged one; None if there are none."""
    kept, at = b"", 0
    while at + 5 <= len(iptc) and iptc[at] == _IPTC_MARKER:
        record, dataset = iptc[at + 1], iptc[at + 2]
        size, header = struct.unpack_from(">H", iptc, at + 3)[0], 5
        if size & 0x8000:  # the size has this many bytes itself
            header += size & 0x7FFF
            size = int.from_bytes(iptc[at + 5 : at + header], "big")
        end = at + header + size
        if end > len(iptc):
            break
        if record in _DESCRIPTIVE_RECORDS and not (record == 2 and dataset in _PREVIEW_DATASETS):
            kept += iptc[at:end]
        at = end
    return kept or None


class _RefusedError(Exception):
    pass


@dataclass
class _Cuts:
    """Finds the byte ranges to drop while the parser walks through a packet."""

    packet: bytes
    parser: expat.XMLParserType
    ranges: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    depth: int = 0
    dropped_from: tuple[int, int, bool] | None = None
    """Depth and offset of the property that is being dropped, and whether it is an empty tag."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.dropped_from is None:
            at = self.parser.CurrentByteIndex
            tag = self._tag(at)
            if _is_false(name):
                self.dropped_from = self.depth, at, tag.endswith(b"/>")
            else:
                self.ranges += _attribute_ranges(tag, at, [name for name in attributes if _is_false(name)])

    def end(self, _name: str) -> None:
        if self.dropped_from is not None and self.dropped_from[0] == self.depth:
            _, first, empty = self.dropped_from
            last = first if empty else self.parser.CurrentByteIndex
            self.ranges.append((first, last + len(self._tag(last))))
            self.dropped_from = None
        self.depth -= 1

    def _tag(self, at: int) -> bytes:
        found = _XML_TAG.match(self.packet, at)
        if found is None:
            raise _RefusedError
        return found[0]


def clean_xmp(packet: bytes) -> bytes | None:
    """Return a packet without properties that become false; None if it is damaged."""
    packet = packet.rstrip(b"\0")
    parser = expat.ParserCreate(namespace_separator=_NAME_SEPARATOR)
    parser.namespace_prefixes = True
    cuts = _Cuts(packet, parser)
    parser.StartElementHandler = cuts.start
    parser.EndElementHandler = cuts.end
    # XMP has no document type; entities that it declares could expand without limit.
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(packet, True)
    except (expat.ExpatError, _RefusedError, ValueError):
        return None
    return _without(packet, cuts.ranges)


def _refuse(*_declaration: object) -> None:
    raise _RefusedError


def _is_false(name: str) -> bool:
    """Whether a property is dropped; `name` is namespace, local name and prefix."""
    space, _, rest = name.partition(_NAME_SEPARATOR)
    properties = _STALE_PROPERTIES.get(space, frozenset())
    return properties is None or rest.partition(_NAME_SEPARATOR)[0] in properties


def _attribute_ranges(tag: bytes, at: int, names: list[str]) -> list[tuple[int, int]]:
    """Find attributes in a tag at offset `at`, each with the space before it."""
    ranges: list[tuple[int, int]] = []
    for name in names:
        _, local, prefix = name.split(_NAME_SEPARATOR)
        pattern = rb"""\s+%s\s*=\s*("[^"]*"|'[^']*')""" % re.escape(f"{prefix}:{local}".encode())
        found = re.search(pattern, tag)
        if found is None:
            raise _RefusedError
        ranges.append((at + found.start(), at + found.end()))
    return ranges


def _without(packet: bytes, ranges: list[tuple[int, int]]) -> bytes:
    kept, at = b"", 0
    for first, last in sorted(ranges):
        kept += packet[at:first]
        at = last
    return kept + packet[at:]
