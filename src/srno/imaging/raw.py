"""Detection of camera RAW files, which are refused: they hold a sensor's values, and often a small preview as TIFF."""

import io
import re
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import BinaryIO

from srno.imaging import ifd
from srno.imaging.formats import sniff

RAW_SUFFIXES: Mapping[str, str] = MappingProxyType(
    {
        f".{name.lower()}": name
        for name in (
            *("3FR", "ARW", "CR2", "CR3", "CRW", "DCR", "DNG", "ERF", "FFF", "GPR", "IIQ", "KDC", "MEF", "MOS", "MRW"),
            *("NEF", "NRW", "ORF", "PEF", "RAF", "RAW", "RW2", "RWL", "SR2", "SRF", "SRW", "X3F"),
        )
    }
)
"""Suffixes of RAW files, and the names of their formats."""

ADVICE = "convert it to TIFF with the camera's software, darktable or RawTherapee"

_MAGIC: Mapping[str, re.Pattern[bytes]] = MappingProxyType(
    {
        name: re.compile(pattern, re.DOTALL)
        for name, pattern in (
            ("CR2", rb"II\*\0.{4}CR\x02\0"),
            ("CR3", rb".{4}ftypcrx "),
            ("CRW", rb"II.{4}HEAPCCDR"),
            ("IIQ", rb"(?:II\*\0|MM\0\*).{4}IIII"),
            ("MRW", rb"\0MRM"),
            ("ORF", rb"IIR[OS]|MMOR"),
            ("RAF", rb"FUJIFILMCCD-RAW"),
            ("RW2", rb"IIU\0"),
            ("X3F", rb"FOVb"),
        )
    }
)
"""How the files of a format start, if no other format starts so."""
_MAKERS: Mapping[bytes, str] = MappingProxyType(
    {b"NIKON": "NEF", b"SONY": "ARW", b"PENTAX": "PEF", b"RICOH": "PEF", b"SAMSUNG": "SRW", b"CANON": "CR2"}
)
_PHOTOMETRIC, _MAKE, _SUB_DIRECTORIES, _DNG_VERSION = 262, 271, 330, 50706
_SENSOR_VALUES = (32803, 34892)
"""Photometric codes of a colour filter array, and of the same after interpolation."""
_MAX_DIRECTORY_BYTES = 1 << 16
_MAX_SUB_DIRECTORIES = 16


def raw_name(stream: BinaryIO, suffix: str) -> str | None:
    """Return the name of the RAW format of a file, by content or else by suffix; None if it is another file."""
    stream.seek(0)
    start = stream.read(64)
    name = next((name for name, magic in _MAGIC.items() if magic.match(start)), None)
    if name is not None:
        return name
    kind = sniff(start)
    if kind == "TIFF" and (name := _name_in_tiff(stream)):
        return RAW_SUFFIXES.get(suffix.lower(), name)
    # A JPEG or PNG stays one under any name; a TIFF structure may be that of a camera that is not known here.
    return RAW_SUFFIXES.get(suffix.lower()) if kind in (None, "TIFF", "TGA") else None


def raw_name_of(data: bytes, suffix: str) -> str | None:
    """The same for the content of a file."""
    return raw_name(io.BytesIO(data), suffix)


def _name_in_tiff(stream: BinaryIO) -> str | None:
    header = ifd.read_header(stream)
    if header is None:
        return None
    layout = header[0]
    waiting = ifd.directory_offsets(stream, _MAX_SUB_DIRECTORIES)
    maker, sensor = b"", False
    for number, offset in enumerate(waiting):
        directory = _read(stream, layout, offset)
        if _DNG_VERSION in directory:
            return "DNG"
        sensor |= bool(set(_numbers(directory.get(_PHOTOMETRIC), layout)) & set(_SENSOR_VALUES))
        maker = maker or _bytes(directory.get(_MAKE))
        if number < _MAX_SUB_DIRECTORIES:  # a damaged file may link in circles
            waiting += _numbers(directory.get(_SUB_DIRECTORIES), layout)[:_MAX_SUB_DIRECTORIES]
    if not sensor:
        return None
    return next((name for prefix, name in _MAKERS.items() if maker.upper().startswith(prefix)), "RAW")


def _read(stream: BinaryIO, layout: ifd.Layout, offset: int) -> ifd.Directory:
    tags = (_PHOTOMETRIC, _MAKE, _SUB_DIRECTORIES, _DNG_VERSION)
    return ifd.read_directory(stream, layout, offset, lambda _, tag: tag in tags, byte_budget=_MAX_DIRECTORY_BYTES)


def _bytes(item: ifd.Entry | ifd.Directory | None) -> bytes:
    return item.value if isinstance(item, ifd.Entry) else b""


def _numbers(item: ifd.Entry | ifd.Directory | None, layout: ifd.Layout) -> list[int]:
    """Read an entry of integers with 2, 4 or 8 bytes each."""
    if not isinstance(item, ifd.Entry) or not item.count:
        return []
    code = {2: "H", 4: "I", 8: "Q"}.get(len(item.value) // item.count)
    return [] if code is None else list(struct.unpack(f"{layout.order}{item.count}{code}", item.value))
