"""Deep Zoom: a descriptor, and a folder of JPEG or PNG files for each level, the smallest of one pixel."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from srno.files import write_atomically
from srno.gigapixel.coding import encode_jpeg, encode_png
from srno.gigapixel.container import Container, Stored, write_tile
from srno.gigapixel.levels import Cut
from srno.imaging.formats import Format
from srno.imaging.picture import Samples

_DESCRIPTOR = """<?xml version="1.0" encoding="UTF-8"?>
<Image xmlns="http://schemas.microsoft.com/deepzoom/2008" Format="{suffix}" Overlap="0" TileSize="{tile}">
  <Size Width="{width}" Height="{height}"/>
</Image>
"""


@dataclass(frozen=True, eq=False)
class DeepZoom(Container):
    """NAME.dzi and NAME_files; workers write the tiles."""

    format: ClassVar[Format] = "DZI"

    @property
    def suffix(self) -> str:
        return "jpg" if self.compression == "jpeg" else "png"

    def encode(self, samples: Samples) -> bytes:
        if self.compression == "jpeg":
            return encode_jpeg(samples, self.quality, self.like.icc)
        return encode_png(samples, self.like.icc)

    def store(self, folder: Path, cuts: Iterable[Cut]) -> list[Stored]:
        stored: list[Stored] = []
        for cut in cuts:
            level = self.levels.count - 1 - cut.level  # numbered from the smallest
            path = _part(folder) / str(level) / f"{cut.column}_{cut.row}.{self.suffix}"
            write_tile(path, self.encode(cut.samples))
            stored.append(Stored(cut.level, cut.row, cut.column, b""))
        return stored

    def finish(self, folder: Path, records: Iterable[bytes], output: Path) -> None:  # noqa: ARG002
        height, width = self.levels.size
        text = _DESCRIPTOR.format(suffix=self.suffix, tile=self.levels.tile, width=width, height=height)
        tiles = output.with_name(f"{output.stem}_files")
        output.unlink(missing_ok=True)
        if _part(folder).exists():  # unless a kill came after this and before the next step
            shutil.rmtree(tiles, ignore_errors=True)
            _part(folder).replace(tiles)
        write_atomically(output, text.encode())  # the last step: without a descriptor there is no result


def _part(folder: Path) -> Path:
    return folder / "result_files"
