"""Enlarge animations and pages, one frame at a time.

The operator integrates over the whole picture, so a change anywhere moves every pixel of a frame a little, and some of
them by a level. Regions that do not change are therefore copied from the frame before, or they would flicker.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from srno.imaging.frames import FrameSequence
from srno.imaging.picture import Frame, Picture
from srno.progress import Progress, part_of
from srno.upscaling.enlarge import enlarge_picture, nearest_pixels
from srno.upscaling.sizes import Request, Target
from srno.upscaling.upscaler import Upscaler

STILL_MARGIN = 8
"""Pixels of the source around a change that are computed again. Further away, the difference no longer falls with the
distance: a block of 16×16 pixels was inverted in three pictures, ×2 and ×4, model light."""


def enlarge_frames(
    sequence: FrameSequence,
    request: Request,
    upscaler: Upscaler,
    bits: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Frame]:
    """Enlarge the frames of a sequence with 8 or 16 bits; None keeps those of the source."""
    before: tuple[Picture, Picture] | None = None
    for number, frame in enumerate(sequence):
        picture = frame.picture
        target = request.target(picture.size)
        part = part_of(progress, number, sequence.count)
        if before is None or sequence.kind == "pages":
            large = enlarge_picture(picture, target, upscaler, bits or picture.bits, part)
        else:
            large = _enlarge_changes(picture, before, target, upscaler, bits or picture.bits, part)
        before = picture, large
        yield replace(frame, picture=large)


def total_pixels(sequence: FrameSequence, request: Request) -> int:
    """Pixels of all frames of the result."""
    sizes = (request.target(size).size for size in sequence.sizes)
    return sum(width * height for width, height in sizes)


def _enlarge_changes(
    picture: Picture,
    before: tuple[Picture, Picture],
    target: Target,
    upscaler: Upscaler,
    bits: int,
    progress: Progress | None,
) -> Picture:
    """Enlarge a frame; where it equals the frame before, keep the result of that one."""
    source, result = before
    changed = (source.samples() != picture.samples()).any(axis=2)
    if not changed.any():
        if progress is not None:
            progress(1.0)
        return result
    large = enlarge_picture(picture, target, upscaler, bits, progress)
    kept = ~_nearest(_grown(changed, STILL_MARGIN), target)
    colour = np.where(kept[..., None], result.colour, large.colour)
    if large.alpha is None or result.alpha is None:
        return replace(large, colour=colour)
    return replace(large, colour=colour, alpha=np.where(kept, result.alpha, large.alpha))


def _grown(mask: NDArray[np.bool_], margin: int) -> NDArray[np.bool_]:
    """Extend a mask (h, w) by a margin on all sides."""
    rows = np.lib.stride_tricks.sliding_window_view(np.pad(mask, margin), 2 * margin + 1, axis=0).any(axis=2)
    return np.asarray(np.lib.stride_tricks.sliding_window_view(rows, 2 * margin + 1, axis=1).any(axis=2))


def _nearest(mask: NDArray[np.bool_], target: Target) -> NDArray[np.bool_]:
    """Enlarge a mask (h, w) to the output; each pixel takes the source pixel that it lies in."""
    return mask[np.ix_(*nearest_pixels(target, mask.shape))]
