"""Transparency: fill in the colours under it, or blend it over white."""

import numpy as np

from srno.imaging.picture import Floats, Samples


def bleed(colour: Samples, alpha: Samples) -> Samples:
    """Return colour (h, w, c) in which fully transparent pixels take the colours of the visible ones around them.

    Files often store black or noise in transparent pixels, and any filter would mix it into the visible edge.
    Pixels with alpha > 0 are unchanged. Averages over increasingly large cells, weighted by alpha, fill the holes.
    """
    hidden = alpha == 0
    if not hidden.any() or hidden.all():
        return colour
    weight = alpha.astype(np.float32)[..., None] / np.float32(np.iinfo(alpha.dtype).max)
    spread = _spread(colour.astype(np.float32), weight)
    spread += 0.5
    return np.where(hidden[..., None], spread.astype(colour.dtype), colour)


def flatten(colour: Samples, alpha: Samples) -> Samples:
    """Blend colour (h, w, c) over white."""
    white = int(np.iinfo(colour.dtype).max)
    # At most white², which fits into 32 bits even for 16-bit samples.
    opaque = alpha.astype(np.uint32)[..., None]
    return ((colour * opaque + white * (white - opaque) + white // 2) // white).astype(colour.dtype)


def unpremultiply(colour: Samples, alpha: Samples) -> Samples:
    """Divide colour (h, w, c) that is multiplied by alpha, rounded to the nearest level."""
    top = int(np.iinfo(colour.dtype).max)
    opaque = np.maximum(alpha, 1).astype(np.uint32)[..., None]
    return np.minimum((colour * np.uint32(top) + opaque // 2) // opaque, top).astype(colour.dtype)


def _spread(colour: Floats, weight: Floats) -> Floats:
    """Average colour (h, w, c) over cells by weight (h, w, 1); cells of zero weight use larger ones."""
    total = _halve(weight)
    mean = np.divide(_halve(colour * weight), np.maximum(total, np.float32(1e-30)))
    empty = total == 0
    if empty.any():
        mean = np.where(empty, _spread(mean, np.minimum(total, 1)), mean)
    return _double(mean)[: colour.shape[0], : colour.shape[1]]


def _halve(values: Floats) -> Floats:
    """Sum over cells of 2×2 pixels; an odd last row or column is padded with zeros."""
    height, width = values.shape[:2]
    if height % 2 or width % 2:
        values = np.pad(values, ((0, height % 2), (0, width % 2), (0, 0)))
    rows = np.add(values[0::2], values[1::2])
    return np.add(rows[:, 0::2], rows[:, 1::2])


def _double(values: Floats) -> Floats:
    """Enlarge (h, w, c) to (2h, 2w, c) by linear interpolation between the centres of the cells."""
    rows = _double_rows(values)
    return _double_rows(rows.swapaxes(0, 1)).swapaxes(0, 1)


def _double_rows(values: Floats) -> Floats:
    near, far = np.float32(0.75) * values, np.float32(0.25) * values
    doubled = np.repeat(near, 2, axis=0)
    doubled[2::2] += far[:-1]
    doubled[1:-1:2] += far[1:]
    doubled[0] += far[0]
    doubled[-1] += far[-1]
    return doubled
