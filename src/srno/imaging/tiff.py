"""TIFF: 8 or 16 bits, deflated; tiles for large pictures, BigTIFF beyond 4 GB; EXIF in its directories."""

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO, Literal

from srno.imaging import ifd
from srno.imaging.metadata import clean_iptc, from_photoshop
from srno.imaging.picture import Picture

if TYPE_CHECKING:
    import tifffile

_MIN_TILED_PIXELS = 1 << 24
"""Pixels from which a picture is tiled, so that viewers need not inflate whole rows."""
_MAX_CLASSIC_BYTES = 2**32 - 2**25
"""Bytes of samples above which 4-byte offsets may not suffice; incompressible data grows a little."""
_MAX_DESCRIPTION_BYTES = 1 << 24
_NEW_SUBFILE, _TILE_LENGTH, _XMP, _IPTC, _PHOTOSHOP = 254, 323, 700, 33723, 34377
_REDUCED_OR_MASK = 1 | 4
_BYTE, _UNDEFINED = 1, 7


def needs_big(width: int, height: int, channels: int, bits: int) -> bool:
    """Whether a picture of this size needs BigTIFF's 8-byte offsets."""
    return width * height * channels * bits // 8 > _MAX_CLASSIC_BYTES


def page_offsets(stream: BinaryIO) -> dict[int, int]:
    """Numbers and offsets of the directories that are pages: the first, and others but thumbnails and masks."""
    header = ifd.read_header(stream)
    if header is None:
        return {}
    offsets = dict(enumerate(ifd.directory_offsets(stream)))
    return {number: at for number, at in offsets.items() if number == 0 or _is_page(stream, header[0], at)}


def descriptions_of(data: bytes | BinaryIO, page: int | None = None) -> tuple[bytes | None, bytes | None]:
    """Return the XMP packet and the IPTC data of a directory, by default the first."""
    stream = ifd.as_stream(data)
    header = ifd.read_header(stream)
    if header is None:
        return None, None
    tags = (_XMP, _IPTC, _PHOTOSHOP)
    offset = header[1] if page is None else page
    found = ifd.read_directory(
        stream, header[0], offset, lambda _, tag: tag in tags, byte_budget=_MAX_DESCRIPTION_BYTES
    )
    values = {tag: item.value for tag, item in found.items() if isinstance(item, ifd.Entry)}
    return values.get(_XMP), clean_iptc(values.get(_IPTC, b"")) or from_photoshop(values.get(_PHOTOSHOP, b""))


def tile_rows(stream: BinaryIO) -> int:
    """Rows of a tile of the first directory of a TIFF file; 0 if it stores no tiles."""
    header = ifd.read_header(stream)
    if header is None:
        return 0
    entry = ifd.read_directory(stream, *header, lambda _, tag: tag == _TILE_LENGTH, byte_budget=16).get(_TILE_LENGTH)
    return (
        int.from_bytes(entry.value, "little" if header[0].order == "<" else "big")
        if isinstance(entry, ifd.Entry)
        else 0
    )


def write_tiff(picture: Picture, stream: BinaryIO, *, big: bool) -> None:
    """Write to a stream that can seek and be read."""
    write_pages([picture], stream, big=big)


def write_pages(pictures: Iterable[Picture], stream: BinaryIO, *, big: bool) -> None:
    """Write one page for each picture to a stream that can seek and be read."""
    blocks: list[bytes | None] = []
    waiting = iter(pictures)
    picture = next(waiting, None)
    # EXIF values are copied unchanged, so the file uses their byte order.
    order = "<" if picture is None else _byte_order(picture.exif) or "<"
    with _open_writer(stream, big, order) as writer:
        while picture is not None:
            _write_page(picture, writer)
            blocks.append(picture.exif if _byte_order(picture.exif) == order else None)
            picture = next(waiting, None)
    _add_exif(stream, blocks)


def _open_writer(stream: BinaryIO, big: bool, order: Literal["<", ">"]) -> "tifffile.TiffWriter":
    """Begin a file; tifffile calls any failure of the stream one that cannot seek."""
    import tifffile  # here, since its import takes a third of the time of all others at the start of srno

    try:
        return tifffile.TiffWriter(stream, bigtiff=big, byteorder=order)
    except ValueError as error:
        raise (error.__context__ if isinstance(error.__context__, OSError) else error) from None


def _write_page(picture: Picture, writer: "tifffile.TiffWriter") -> None:
    width, height = picture.size
    samples = picture.samples()
    writer.write(
        samples[..., 0] if samples.shape[2] == 1 else samples,
        photometric="minisblack" if picture.colour.shape[2] == 1 else "rgb",
        planarconfig="contig" if samples.shape[2] > 1 else None,
        extrasamples=None if picture.alpha is None else ["unassalpha"],
        tile=(512, 512) if width * height >= _MIN_TILED_PIXELS else None,
        compression="zlib",
        predictor=True,
        iccprofile=picture.icc,
        resolution=picture.dpi,
        resolutionunit=None if picture.dpi is None else "inch",
        software=False,
        metadata=None,
        extratags=[
            (tag, kind, len(value), value, True)
            for tag, kind, value in ((_XMP, _BYTE, picture.xmp), (_IPTC, _UNDEFINED, picture.iptc))
            if value is not None
        ],
    )


def _byte_order(exif: bytes | None) -> Literal["<", ">"] | None:
    header = None if exif is None else ifd.read_header(io.BytesIO(exif))
    return None if header is None else header[0].order


def _add_exif(stream: BinaryIO, blocks: list[bytes | None]) -> None:
    """Add the entries of an EXIF block to the directory of each page: it is replaced by a longer one at the end."""
    header = ifd.read_header(stream)
    if header is None or not any(blocks):
        return
    layout, following = header[0], 0
    # From the last page to the first, as each directory states where the next one is.
    for block, offset in reversed(list(zip(blocks, ifd.directory_offsets(stream), strict=True))):
        if block is None:
            ifd.link(stream, layout, offset, following)
            following = offset
        else:
            following = _append_directory(stream, layout, offset, exif_entries(block), following)
    stream.seek(len(layout.header))
    stream.write(layout.pointer.pack(following))


def _append_directory(stream: BinaryIO, layout: ifd.Layout, offset: int, exif: ifd.Directory, following: int) -> int:
    """Write the directory at `offset` together with the entries of `exif` to the end; return its new offset."""
    end = stream.seek(0, io.SEEK_END)
    own = ifd.read_directory(stream, layout, offset, _want_all, byte_budget=end)
    at, packed = ifd.pack({**exif, **own}, layout, end, following=following)
    stream.seek(end)
    stream.write(packed)
    return at


def exif_entries(block: bytes) -> ifd.Directory:
    stream = io.BytesIO(block)
    header = ifd.read_header(stream)
    assert header is not None
    return ifd.read_directory(stream, *header, _want_all, byte_budget=len(block))


def _is_page(stream: BinaryIO, layout: ifd.Layout, offset: int) -> bool:
    found = ifd.read_directory(stream, layout, offset, lambda _, tag: tag == _NEW_SUBFILE, byte_budget=16)
    entry = found.get(_NEW_SUBFILE)
    value = entry.value if isinstance(entry, ifd.Entry) else b""
    return not int.from_bytes(value, "little" if layout.order == "<" else "big") & _REDUCED_OR_MASK


def _want_all(_parent: int, _tag: int) -> bool:
    return True
