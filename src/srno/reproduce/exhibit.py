"""Content of a visual comparison: one picture at one scale, every method's result, and the boxes to enlarge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from srno.errors import SRNOError
from srno.evaluation.datasets import SetPicture, load_pair
from srno.evaluation.evaluate import Upscale
from srno.evaluation.metrics import psnr
from srno.evaluation.protocols import Protocol, Scale

CloseUpBox: TypeAlias = tuple[int, int, int, int]
"""(left, top, width, height) in pixels of the truth."""
BOX_SIDE_SHARE = 1 / 6
"""Approximate side of an automatic box, as a share of the picture's shorter side."""
CLOSE_UP_SIDE = 224
"""Approximate side of an enlarged close-up in pixels."""


@dataclass(frozen=True)
class MethodTile:
    """One method's result."""

    name: str
    pixels: NDArray[np.float32]
    """(H, W, 3) in [0, 1]"""
    psnr: float | None
    """dB of the whole picture under the protocol; None for the truth itself"""


@dataclass(frozen=True)
class Exhibit:
    """A picture at a scale, with the methods' results; the last tile is the truth."""

    title: str
    lr: NDArray[np.float32]
    """(h, w, 3)"""
    tiles: tuple[MethodTile, ...]
    boxes: tuple[CloseUpBox, ...]
    protocol: Protocol

    @property
    def truth(self) -> NDArray[np.float32]:
        return self.tiles[-1].pixels

    def crop_psnr(self, tile: MethodTile, box: CloseUpBox) -> float:
        """PSNR in dB within a box, on the protocol's channel."""
        ours, truth = (cut(pixels, box) for pixels in (tile.pixels, self.truth))
        return psnr(ours, truth, self.protocol.channel, (0, 0))


def make_exhibit(
    methods: Sequence[tuple[str, Upscale]],
    picture: SetPicture,
    scale: Scale,
    protocol: Protocol,
    boxes: Sequence[CloseUpBox] = (),
    *,
    count: int = 2,
) -> Exhibit:
    """Run the methods, given with their names, on a picture. Without boxes, `count` are chosen."""
    lr, hr = (np.divide(pixels, 255, dtype=np.float32) for pixels in load_pair(picture, scale, protocol))
    size = (hr.shape[0], hr.shape[1])
    tiles: list[MethodTile] = []
    for name, upscale in methods:
        sr = upscale(lr, size=size, scale=(scale.y, scale.x), cell_clip=protocol.cell_clip).clip(0, 1)
        tiles.append(MethodTile(name, sr, psnr(sr, hr, protocol.channel, protocol.border.pixels(scale))))
    for left, top, width, height in boxes:
        if left < 0 or top < 0 or width < 1 or height < 1 or left + width > size[1] or top + height > size[0]:
            raise SRNOError(f"--boxes {left},{top},{width},{height}: not within the picture of {size[1]}×{size[0]}")
    border = protocol.border.pixels(scale)
    chosen = tuple(boxes) or choose_boxes(hr, [tile.pixels for tile in tiles], border, count)
    return Exhibit(f"{picture.path.stem} ×{scale}", lr, (*tiles, MethodTile("truth", hr, None)), chosen, protocol)


def parse_boxes(text: str) -> tuple[CloseUpBox, ...]:
    """Parse `"40,60,64,64;120,8,64,64"` into boxes as left, top, width, height."""
    try:
        boxes = [tuple(int(number) for number in part.split(",")) for part in text.split(";")]
    except ValueError:
        boxes = []
    if not boxes or any(len(box) != 4 for box in boxes):
        raise SRNOError(f"--boxes {text!r}: write LEFT,TOP,WIDTH,HEIGHT, several separated by ;")
    return tuple((left, top, width, height) for left, top, width, height in boxes)


def cut(pixels: NDArray[np.float32], box: CloseUpBox) -> NDArray[np.float32]:
    """Crop to a box: (H, W, 3) → (height, width, 3)."""
    left, top, width, height = box
    return pixels[top : top + height, left : left + width]


def choose_boxes(
    truth: NDArray[np.float32], results: Sequence[NDArray[np.float32]], border: tuple[int, int], count: int
) -> tuple[CloseUpBox, ...]:
    """Choose squares within the border that do not overlap, where the methods' mean squared error is largest."""
    error = np.mean([np.square(result - truth).mean(-1) for result in results], axis=0)
    rows, columns = border
    error = error[rows : error.shape[0] - rows, columns : error.shape[1] - columns]
    zoom = max(1, round(CLOSE_UP_SIDE / max(8, BOX_SIDE_SHARE * min(truth.shape[:2]))))
    side = min(CLOSE_UP_SIDE // zoom, *error.shape)
    sums = np.pad(error, ((1, 0), (1, 0))).cumsum(0).cumsum(1)
    inside = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    boxes: list[CloseUpBox] = []
    while len(boxes) < count and np.isfinite(inside).any():
        top, left = (int(place) for place in np.unravel_index(int(inside.argmax()), inside.shape))
        boxes.append((left + columns, top + rows, side, side))
        inside[max(0, top - side + 1) : top + side, max(0, left - side + 1) : left + side] = -np.inf
    return tuple(boxes)
