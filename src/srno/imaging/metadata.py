"""Metadata as stored in a file, and the part of it that stays true for the enlarged picture."""

from dataclasses import dataclass, replace

from srno.imaging import exif, xmp
from srno.imaging.picture import Picture, Text


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
    packet = None if blocks.xmp is None else xmp.clean(blocks.xmp)
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
