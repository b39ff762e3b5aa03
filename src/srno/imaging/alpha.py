"""Transparency: fill in the colours under it, or blend it over white."""

from dataclasses import dataclass

import numpy as np

from srno.imaging.picture import Floats, Samples

_CELL_LEVELS = 6
CELL = 1 << _CELL_LEVELS
"""Pixels along a side of a cell of `CoarseColours`."""


def bleed(colour: Samples, alpha: Samples) -> Samples:
    """Return colour (h, w, c) in which fully transparent pixels take the colours of the visible ones around them.

    Files often store black or noise in transparent pixels, and any filter would mix it into the visible edge.
    Pixels with alpha > 0 are unchanged. Averages over increasingly large cells, weighted by alpha, fill the holes.
    """
    hidden = alpha == 0
    if not hidden.any() or hidden.all():
        return colour
    spread = _spread(colour.astype(np.float32), _weight(alpha))
    spread += 0.5
    return np.where(hidden[..., None], spread.astype(colour.dtype), colour)


@dataclass(frozen=True, eq=False)
class CoarseColours:
    """Colours under transparency in cells of CELL pixels: what windows of a picture need to be filled as a whole is."""

    filled: Floats
    """(rows, columns, c) means of the visible pixels of each cell; cells without any take those around them."""

    def bleed(self, colour: Samples, alpha: Samples, first: tuple[int, int]) -> Samples:
        """Apply `bleed` to a window that begins at the cell `first` (row, column).

        Within two cells of the window's edges, unless they are edges of the picture, the result is not exact.
        """
        rows, columns = (-(-n // CELL) for n in alpha.shape)
        cells = self.filled[first[0] : first[0] + rows, first[1] : first[1] + columns]
        hidden = alpha == 0
        if not hidden.any():
            return colour
        spread = _spread(colour.astype(np.float32), _weight(alpha), cells, _CELL_LEVELS)
        spread += 0.5
        return np.where(hidden[..., None], spread.astype(colour.dtype), colour)


def cell_means(colour: Samples, alpha: Samples) -> tuple[Floats, Floats]:
    """Means (rows, columns, c) and weights (rows, columns, 1) of a window's cells; it begins at the edge of a cell."""
    mean, weight = colour.astype(np.float32), _weight(alpha)
    for _ in range(_CELL_LEVELS):
        mean, weight = _step(mean, weight)
    return mean, weight


def coarse_colours(mean: Floats, weight: Floats) -> CoarseColours:
    """Fill the empty ones among all cells of a picture, of which some are not empty."""
    return CoarseColours(np.where(weight == 0, _spread(mean, weight), mean))


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


def _weight(alpha: Samples) -> Floats:
    return alpha.astype(np.float32)[..., None] / np.float32(np.iinfo(alpha.dtype).max)


def _spread(colour: Floats, weight: Floats, cells: Floats | None = None, levels: int = 0) -> Floats:
    """Average colour (h, w, c) over cells by weight (h, w, 1); cells of zero weight use larger ones.

    If `cells` are given, they are the averages after so many levels.
    """
    mean, total = _step(colour, weight)
    if levels == 1 and cells is not None:
        mean = cells
    elif (total == 0).any():
        mean = np.where(total == 0, _spread(mean, total, cells, levels - 1), mean)
    return _double(mean)[: colour.shape[0], : colour.shape[1]]


def _step(colour: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Means and weights of cells of twice the side."""
    total = _halve(weight)
    return np.divide(_halve(colour * weight), np.maximum(total, np.float32(1e-30))), np.minimum(total, 1)


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
