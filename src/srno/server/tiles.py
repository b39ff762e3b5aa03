"""Tiles: rectangles of a picture's pixels at one zoom level."""

from dataclasses import dataclass

from PIL import Image

from srno.errors import SRNOError
from srno.field.blocks import BlockField
from srno.field.field import Region
from srno.progress import Progress
from srno.server.opened import Opened
from srno.server.resample import Box, bicubic, bicubic_alpha, nearest

BICUBIC, NEAREST = "bicubic", "nearest"
FILTERS = {BICUBIC: bicubic, NEAREST: nearest}
"""Sources of tiles that are computed without a model."""
LARGEST_ZOOM = 512
LARGEST_TILE_PIXELS = 2048 * 2048
LARGEST_WINDOW_PIXELS = 8192 * 8192
"""Of a window whose inside is shown; its maps are small."""


@dataclass(frozen=True)
class Tile:
    """A rectangle of pixels at a zoom level."""

    source: str
    """A model's name, bicubic or nearest."""
    level: tuple[int, int]
    """(width, height) of the whole picture at this zoom."""
    rect: tuple[int, int, int, int]
    """(left, top, width, height) in pixels of the level."""
    version: int | None = None
    """Version of the kernel integral; the last one unless given."""

    def check(self, size: tuple[int, int], most: int = LARGEST_TILE_PIXELS) -> None:
        """Raise unless the tile is inside the level, and the level within the zoom limits of a picture of `size`."""
        left, top, width, height = self.rect
        if not all(1 <= new <= LARGEST_ZOOM * old for new, old in zip(self.level, size, strict=True)):
            raise SRNOError(f"level {self.level[0]}×{self.level[1]}: between 1 pixel and ×{LARGEST_ZOOM}")
        if min(left, top) < 0 or min(width, height) < 1 or width * height > most:
            raise SRNOError(f"tile {self.rect}: at least 1 pixel and at most {most:,}")
        if left + width > self.level[0] or top + height > self.level[1]:
            raise SRNOError(f"tile {self.rect} is not inside the level {self.level[0]}×{self.level[1]}")

    def is_operator(self, size: tuple[int, int]) -> bool:
        """Whether a model computes this tile; a reduced picture is filtered instead."""
        enlarged = self.level == size or self.level[0] > size[0] or self.level[1] > size[1]
        return enlarged and self.source not in FILTERS

    def box(self, size: tuple[int, int]) -> Box:
        """The tile in pixels of a picture of `size`."""
        (left, top, width, height), x, y = self.rect, size[0] / self.level[0], size[1] / self.level[1]
        return left * x, top * y, min(size[0], (left + width) * x), min(size[1], (top + height) * y)

    def region(self, size: tuple[int, int]) -> Region:
        """The same as the field takes it: (top, left, bottom, right)."""
        left, top, right, bottom = self.box(size)
        return top, left, bottom, right


def evaluate(
    opened: Opened, field: BlockField, box: Box, size: tuple[int, int], version: int | None, progress: Progress
) -> Image.Image:
    """A box of a picture at `size` by the operator. Alpha is bicubic."""
    left, top, right, bottom = box
    rgb = field.render((size[1], size[0]), region=(top, left, bottom, right), version=version, progress=progress)
    image = opened.image(rgb)
    if alpha := bicubic_alpha(opened, box, size):
        image.putalpha(alpha)
    return image
