"""Windows of pictures that are larger than memory.

Tiled TIFF files and Zarr arrays are read in place. Other files can only be read from top to bottom, so one sequential
pass copies their samples to a scratch file first. A `WindowFile` says where windows are read from; it is plain data,
and several processes may open it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyvips

from srno.errors import SRNOError
from srno.files import replacing
from srno.imaging import exif
from srno.imaging.formats import Format, check_claimed_size, is_zarr, sniff
from srno.imaging.head import compression_of
from srno.imaging.icc import cmyk_to_srgb, match_profile, srgb
from srno.imaging.metadata import Blocks, described
from srno.imaging.picture import Picture, Samples
from srno.imaging.read import DECODER_ERRORS, explain, read
from srno.imaging.tiff import descriptions_of, tile_rows
from srno.imaging.vips import check_colour_space, check_samples, dpi_of, field_of, rotate, split_bands
from srno.imaging.zarr_source import ZarrPicture

Storage: TypeAlias = Literal["tiff", "raw", "zarr", "stream"]
"""How samples are read: in windows from a TIFF file, a raw file or a Zarr array, or from top to bottom only."""
MAX_LARGE_PIXELS = 2**46
"""Pixels of a picture that is read in windows: 70 terapixels; more is a damaged header."""
_SEQUENTIAL_FORMATS: frozenset[Format] = frozenset({"PNG", "JPEG", "TIFF", "WEBP"})
"""Formats that libvips reads from top to bottom in little memory; others are decoded at once."""
_HEADER_BYTES = 1 << 22
"""Enough for the quantisation tables of a JPEG file, which follow its metadata."""


@dataclass(frozen=True, eq=False)
class WindowFile:
    """A picture on disk, and what is known of it without reading its samples."""

    path: Path
    storage: Storage
    stored: tuple[int, int, int]
    """Rows, columns and channels as stored, before the picture is turned upright."""
    like: Picture
    """One pixel with the channels, bits and metadata of the picture."""
    interpretation: str = "srgb"
    """As libvips calls it."""
    icc: bytes | None = None
    """Profile of the stored samples."""
    orientation: int = 1
    tile_rows: int = 0
    """Rows of a tile of a TIFF file in tiles."""

    @property
    def size(self) -> tuple[int, int]:
        """(height, width), upright."""
        rows, columns = self.stored[:2]
        return (columns, rows) if self.orientation >= 5 else (rows, columns)

    @property
    def sample_bytes(self) -> int:
        """Bytes of all samples."""
        rows, columns, channels = self.stored
        return rows * columns * channels * self.like.bits // 8

    @property
    def cache_bytes(self) -> int:
        """Bytes that libvips keeps of a TIFF file in tiles: two rows of them, which take up to 5.4 times one row."""
        return int(5.4 * self.tile_rows * self.sample_bytes / self.stored[0])

    def open(self) -> "Windows":
        """Open the file for reading."""
        return Windows(self)


class Windows:
    """An open picture of which windows are read."""

    def __init__(self, file: WindowFile) -> None:
        self.file = file
        self._fetch = _FETCHERS[file.storage](file)

    def read(self, rows: slice, columns: slice) -> Picture:
        """Return a window of the upright picture."""
        turned = self.file.orientation
        samples = self._fetch(*(_stored_window(self.file, rows, columns) if turned != 1 else (rows, columns)))
        samples = rotate(samples, turned) if turned != 1 else samples
        colour, alpha = split_bands(samples, self.file.interpretation)
        return replace(self.file.like, colour=_convert(colour, self.file), alpha=alpha)


def inspect(path: Path) -> WindowFile:
    """Read the header of a picture."""
    try:
        if is_zarr(path):
            return _inspect_zarr(path)
        with path.open("rb") as stream:
            kind = sniff(stream.read(1 << 16))
        return _inspect_whole(path) if kind not in _SEQUENTIAL_FORMATS else _inspect_by_vips(path, kind)
    except (*DECODER_ERRORS, OSError) as error:
        raise SRNOError(f"{path}: {explain(error)}") from None


def read_zarr(path: Path) -> Picture:
    """Read a whole picture from a Zarr array."""
    file = inspect(path)
    height, width = file.size
    return file.open().read(slice(0, height), slice(0, width))


def with_windows(file: WindowFile, scratch: Path) -> WindowFile:
    """Return a file whose windows can be read; if needed, copy the samples to the file `scratch`."""
    if file.storage != "stream":
        return file
    raw = replace(file, path=scratch, storage="raw")
    if not scratch.exists():
        _copy_samples(file, scratch)
    if file.interpretation == "picture":  # decoded by another library: upright and converted already
        return replace(raw, interpretation="srgb", orientation=1)
    return raw


def _copy_samples(file: WindowFile, scratch: Path) -> None:
    try:
        with replacing(scratch, sync=True) as stream:
            if file.interpretation == "picture":
                stream.write(np.ascontiguousarray(read(file.path).samples()).data)
                return
            image = _open_vips(file.path, "sequential")
            image.rawsave_target(pyvips.Target.new_to_descriptor(stream.fileno()))
    except pyvips.Error as error:
        raise SRNOError(explain(error)) from None


def _open_vips(path: Path, access: str) -> Any:
    # Not by its name: libvips parses brackets in names as options.
    source = pyvips.Source.new_from_file(str(path))
    with path.open("rb") as stream:
        kind = sniff(stream.read(16))
    # Of a TIFF file in tiles, libvips reports nothing less than warnings: missing tiles would be black.
    return pyvips.Image.new_from_source(source, "", access=access, fail_on="warning" if kind == "TIFF" else "truncated")


def _inspect_by_vips(path: Path, kind: Format) -> WindowFile:
    image = _open_vips(path, "sequential")
    check_claimed_size(image.width, image.height, MAX_LARGE_PIXELS)
    check_samples(image)
    icc = field_of(image, "icc-profile-data")
    dtype = np.uint16 if image.format == "ushort" else np.uint8
    colour, alpha = split_bands(np.zeros((1, 1, image.bands), dtype), image.interpretation)
    stored = image.height, image.width, image.bands
    file = WindowFile(path, "stream", stored, Picture(colour=np.zeros((1, 1, 3), dtype)), image.interpretation, icc)
    notes = ("CMYK converted to sRGB",) if image.interpretation == "cmyk" else ()
    converted, kept = (cmyk_to_srgb(colour, icc), srgb()) if notes else match_profile(colour, icc)
    like = Picture(colour=converted, alpha=alpha, icc=kept, dpi=dpi_of(image), format=kind, notes=notes)
    if kind == "TIFF":
        return _described_tiff(replace(file, like=like))
    with path.open("rb") as stream:
        start = stream.read(_HEADER_BYTES) if kind == "JPEG" else stream.read() if kind == "WEBP" else b""
    like = replace(like, compression=compression_of(start, kind, (image.width, image.height)))
    block = field_of(image, "exif-data")
    blocks = Blocks(exif=block, xmp=field_of(image, "xmp-data"), iptc=field_of(image, "iptc-data"))
    return _turned(replace(file, like=described(like, blocks)), exif.from_block(block).orientation)


def _described_tiff(file: WindowFile) -> WindowFile:
    with file.path.open("rb") as stream:
        check_colour_space(exif.tiff_layout(stream))
        facts = exif.from_tiff(stream)
        xmp, iptc = descriptions_of(stream)
        rows = tile_rows(stream)
    like = replace(described(file.like, Blocks(xmp=xmp, iptc=iptc)), exif=facts.block)
    return _turned(replace(file, storage="tiff" if rows else "stream", like=like, tile_rows=rows), facts.orientation)


def _turned(file: WindowFile, orientation: int) -> WindowFile:
    dpi = file.like.dpi
    like = replace(file.like, dpi=dpi[::-1] if dpi and orientation >= 5 else dpi)
    return replace(file, orientation=orientation, like=like)


def _inspect_whole(path: Path) -> WindowFile:
    """A format of which only whole pictures are decoded; none of them is larger than memory."""
    picture = read(path)
    width, height = picture.size
    return WindowFile(path, "stream", (height, width, picture.channels), picture.crop((0, 0, 1, 1)), "picture")


def _inspect_zarr(path: Path) -> WindowFile:
    stored = ZarrPicture(path)
    colour, alpha = split_bands(np.zeros((1, 1, stored.shape[2]), stored.dtype), "srgb")
    like = Picture(colour=colour, alpha=alpha, icc=stored.icc, dpi=stored.dpi, format="ZARR")
    return WindowFile(path, "zarr", stored.shape, like)


def _convert(colour: Samples, file: WindowFile) -> Samples:
    """Colour as stored → gray or RGB of the picture's profile."""
    if file.interpretation == "cmyk":
        return cmyk_to_srgb(colour, file.icc)
    return np.repeat(colour, 3, axis=2) if colour.shape[2] < file.like.colour.shape[2] else colour


def _stored_window(file: WindowFile, rows: slice, columns: slice) -> tuple[slice, slice]:
    """The window of the stored picture that becomes this one when it is turned upright."""
    height, width = file.size
    mirrored, flipped = file.orientation in (2, 3, 6, 7), file.orientation in (3, 4, 7, 8)
    y = slice(height - rows.stop, height - rows.start) if flipped else rows
    x = slice(width - columns.stop, width - columns.start) if mirrored else columns
    return (x, y) if file.orientation >= 5 else (y, x)


_Fetch: TypeAlias = Callable[[slice, slice], Samples]


def _tiff_fetcher(file: WindowFile) -> _Fetch:
    region = pyvips.Region.new(_open_vips(file.path, "random"))

    def fetch(rows: slice, columns: slice) -> Samples:
        height, width = rows.stop - rows.start, columns.stop - columns.start
        try:
            data = region.fetch(columns.start, rows.start, width, height)
        except pyvips.Error as error:
            raise SRNOError(explain(error)) from None
        return np.frombuffer(data, file.like.colour.dtype).reshape(height, width, -1)

    return fetch


def _raw_fetcher(file: WindowFile) -> _Fetch:
    """Read by offset, not by a memory map: pages of a map count as memory of the process."""
    _, width, channels = file.stored
    dtype = file.like.colour.dtype
    pixel = channels * dtype.itemsize
    stream = file.path.open("rb", buffering=0)

    def fetch(rows: slice, columns: slice) -> Samples:
        count = columns.stop - columns.start
        out = np.empty((rows.stop - rows.start, count, channels), dtype)
        for i, row in enumerate(range(rows.start, rows.stop)):
            stream.seek((row * width + columns.start) * pixel)
            part = stream.read(count * pixel)
            if len(part) != count * pixel:
                raise SRNOError(f"{file.path}: cut short; delete its folder and start again")
            out[i] = np.frombuffer(part, dtype).reshape(count, channels)
        return out

    return fetch


_FETCHERS: dict[str, Callable[[WindowFile], _Fetch]] = {
    "tiff": _tiff_fetcher,
    "raw": _raw_fetcher,
    "zarr": lambda file: ZarrPicture(file.path).read,
}
