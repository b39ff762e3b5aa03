"""What the tiled formats have in common: how a tile is encoded, where it is stored, and how the result is completed."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from srno.errors import SRNOError
from srno.files import replacing
from srno.gigapixel.levels import Cut, Levels
from srno.imaging.formats import Format
from srno.imaging.picture import Picture, Samples

Compression: TypeAlias = Literal["deflate", "zstd", "jpeg", "none"]


class Stored(NamedTuple):
    """A small tile that is encoded; `data` is empty if it has been written to a file of its own."""

    level: int
    row: int
    column: int
    data: bytes


@dataclass(frozen=True, eq=False)
class Container(ABC):
    """A tiled format with its settings: plain data, which workers use too."""

    format: ClassVar[Format]

    levels: Levels
    like: Picture
    """One pixel with the channels, bits and metadata of the result."""
    compression: Compression
    quality: int

    @abstractmethod
    def encode(self, samples: Samples) -> bytes:
        """Encode the samples of a small tile."""

    def store(self, folder: Path, cuts: Iterable[Cut]) -> list[Stored]:  # noqa: ARG002
        """Encode small tiles and, if each has a file of its own, write them."""
        return [Stored(cut.level, cut.row, cut.column, self.encode(cut.samples)) for cut in cuts]

    def collect(self, folder: Path, stored: list[Stored]) -> bytes:  # noqa: ARG002
        """Keep what workers have not written themselves; return what is needed to find it again."""
        return b""

    def discard(self, folder: Path, records: Iterable[bytes]) -> None:  # noqa: B027
        """Remove what no record of `collect` mentions, after an interruption."""

    @abstractmethod
    def finish(self, folder: Path, records: Iterable[bytes], output: Path) -> None:
        """Complete the result and give it its name."""

    def padded(self, samples: Samples) -> Samples:
        """Fill a tile at an edge up to the full size, with its last pixels."""
        tile = self.levels.tile
        missing = [(0, tile - n) for n in samples.shape[:2]]
        return np.pad(samples, [*missing, (0, 0)], mode="edge") if any(m[1] for m in missing) else samples


def write_tile(path: Path, data: bytes) -> None:
    """Write the file of a small tile; a kill leaves it whole or not at all. It is not forced to disk one by one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        stream.write(data)


def check_jpeg(like: Picture, what: str) -> None:
    """Refuse samples that JPEG cannot hold."""
    if like.bits != 8 or like.alpha is not None:
        held = f"{like.bits} bits" + ("" if like.alpha is None else " and alpha")
        raise SRNOError(f"{what}: JPEG holds 8 bits and no alpha, not {held}; choose deflate, or --bit-depth 8")
