"""IPTC-IIM, the captions and keywords of press pictures: alone in TIFF, inside a Photoshop block in JPEG."""

import struct

PHOTOSHOP_PREFIX = b"Photoshop 3.0\0"
"""Precedes the block in JPEG."""

_RESOURCE = b"8BIM"
_IPTC_RESOURCE = 0x0404
_MARKER = 0x1C
_DESCRIPTIVE_RECORDS = (1, 2)
"""The envelope and the description; other records hold the size and samples of a picture."""
_PREVIEW_DATASETS = range(200, 203)
"""Of the second record: a small copy of the picture."""


def from_photoshop(block: bytes) -> bytes | None:
    """Return the IPTC data of a Photoshop block without its prefix: resources with number, name, size and content."""
    at = 0
    while block[at : at + 4] == _RESOURCE and at + 8 <= len(block):
        number = struct.unpack_from(">H", block, at + 4)[0]
        name = block[at + 6] + 1
        at += 6 + name + name % 2
        if at + 4 > len(block):
            return None
        size = struct.unpack_from(">I", block, at)[0]
        if number == _IPTC_RESOURCE:
            return clean(block[at + 4 : at + 4 + size])
        at += 4 + size + size % 2
    return None


def to_photoshop(iptc: bytes) -> bytes:
    """Return a Photoshop block without its prefix that holds only IPTC data."""
    return _RESOURCE + struct.pack(">HHI", _IPTC_RESOURCE, 0, len(iptc)) + iptc + bytes(len(iptc) % 2)


def clean(iptc: bytes) -> bytes | None:
    """Return the datasets that describe a picture, up to the first damaged one; None if there are none."""
    kept, at = b"", 0
    while at + 5 <= len(iptc) and iptc[at] == _MARKER:
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
