"""Draw random against sequential supervision points, as in the supplement."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srno.data.samples import SampleConfig, draw_sample
from srno.errors import SRNOError
from srno.reproduce.plotting import new_figure, show_map

COLUMNS = {
    "random": "random: anywhere in the crop",
    "sequential": "sequential (-s), our reading: a window",
    "sorted": "sequential, published code: sorted",
}


def draw_patterns(picture: NDArray[np.uint8], *, side: int, scale: float, seed: int) -> Any:
    """Draw side² points of one training sample of (H, W, 3) at a scale: where they lie, and their coordinates."""
    config = SampleConfig(patch=side, points=side**2, r_min=scale, r_max=scale)
    if min(picture.shape[:2]) < config.smallest:
        raise SRNOError(f"--picture is {picture.shape[1]}×{picture.shape[0]}; a crop needs {config.smallest}² pixels")
    points = {name: _points(picture, config, name, seed) for name in COLUMNS}
    caption = (
        f"One training sample: a crop of {config.smallest}² pixels, its low-resolution patch of {side}² (background) "
        f"and {side}² supervision points. Above: where the points lie. Below: the points in their order, row by row; "
        "the colour is the fractional part of the vertical coordinate, the offset to the nearest low-resolution pixel."
    )
    figure = new_figure(11, 7.6, caption)
    upper, lower = figure.subplots(2, len(COLUMNS))
    offsets = None
    for top, bottom, (name, (lr, coords)) in zip(upper, lower, points.items(), strict=True):
        show_map(top, lr.mean(-1), COLUMNS[name], extent=(-1, 1, 1, -1), cmap="gray", vmin=0, vmax=255)
        top.scatter(coords[:, 1], coords[:, 0], s=4, c="#ff3030", marker="s", linewidths=0)
        offset = ((coords[:, 0] + 1) * side / 2) % 1 - 0.5
        offsets = show_map(bottom, offset.reshape(side, side), cmap="viridis", vmin=-0.5, vmax=0.5)
    figure.colorbar(offsets, ax=lower.tolist(), shrink=0.8, label="low-resolution pixels")
    return figure


def _points(
    picture: NDArray[np.uint8], config: SampleConfig, name: str, seed: int
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """The low-resolution patch and the points' coordinates (n, 2) of one sample."""
    config = replace(config, sampling="sequential" if name == "sequential" else "random")
    detail = np.zeros((1, 1))  # unused: crops are placed uniformly
    drawn = draw_sample(picture, detail, config, np.random.default_rng(seed))
    coords = drawn.coords
    if name == "sorted":
        coords = coords[np.lexsort((coords[:, 1], coords[:, 0]))]
    return drawn.lr, coords
