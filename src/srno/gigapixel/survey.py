"""What must be known of the whole picture before its windows can be enlarged: its transparency."""

import numpy as np

from srno.imaging.alpha import CELL, CoarseColours, cell_means, coarse_colours
from srno.imaging.windows import WindowFile

BAND_SAMPLES = 1 << 24
"""Samples that are read at once."""


def survey_alpha(file: WindowFile) -> tuple[int | None, CoarseColours | None]:
    """Return the only value of alpha, if there is only one, and the colours under transparency, if some is hidden."""
    if file.like.alpha is None:
        return None, None
    windows, (height, width) = file.open(), file.size
    step = max(1, BAND_SAMPLES // (CELL * width * file.stored[2])) * CELL
    least, largest, hidden = [], [], False
    means, weights = [], []
    for top in range(0, height, step):
        picture = windows.read(slice(top, min(top + step, height)), slice(0, width))
        assert picture.alpha is not None
        least.append(int(picture.alpha.min()))
        largest.append(int(picture.alpha.max()))
        hidden |= least[-1] == 0
        mean, weight = cell_means(picture.colour, picture.alpha)
        means.append(mean)
        weights.append(weight)
    constant = least[0] if min(least) == max(largest) else None
    if not hidden or max(largest) == 0:
        return constant, None
    return constant, coarse_colours(np.concatenate(means), np.concatenate(weights))
