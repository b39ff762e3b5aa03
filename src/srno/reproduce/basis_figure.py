"""Draw basis functions: columns of Q, K and V of every layer, and channels of z before and after it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srno.analysis import MATRICES, BasisMaps, Matrix, basis_maps, choose_by_energy, summarise
from srno.errors import SRNOError
from srno.evaluation.datasets import SetPicture
from srno.evaluation.protocols import Protocol, Scale
from srno.reproduce.plotting import new_figure, show_map
from srno.reproduce.summarised import describe_inputs, lift_pair
from srno.upscaling.upscaler import Upscaler

ENERGY_RULE = (
    "channels with the largest energy: variance over the output pixels as a share of the matrix's, summed over layers"
)
DEFAULT_COUNT = 4
"""Channels of each matrix, as many as in the supplement."""
MAP_INCHES = 1.35
LONGEST_MAP_SIDE = 400
"""Pixels of a map in the figure, at most; larger maps are averaged over blocks."""
SHOWN_SHARE = (1.0, 99.0)
"""Percentiles of a map that are drawn black and white."""


def parse_channels(text: str) -> tuple[int, ...]:
    """Parse `"3,17,29,40"`."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise SRNOError(f"--channels {text!r}: write numbers such as 3,17,29,40") from None


def draw_basis(
    upscaler: Upscaler,
    picture: SetPicture,
    scale: Scale,
    protocol: Protocol,
    *,
    channels: Sequence[int] = (),
    count: int = DEFAULT_COUNT,
) -> Any:
    """Draw the channels that are given, the same of Q, K, V and z, or those with the most energy of each."""
    field, _, truth = lift_pair(upscaler, picture, scale, protocol)
    size = (truth.shape[0], truth.shape[1])
    summary = summarise(field, size, cell_clip=protocol.cell_clip)
    chosen: dict[Matrix, tuple[int, ...]] = (
        {name: tuple(channels) for name in MATRICES} if channels else choose_by_energy(summary, count)
    )
    found = basis_maps(field, size, chosen, summary=summary, cell_clip=protocol.cell_clip)
    rule = "channels as given" if channels else ENERGY_RULE
    return _draw(found, truth, f"{picture.path.stem} ×{scale}", f"{upscaler.name}; {rule}. {describe_inputs(protocol)}")


def _draw(found: BasisMaps, truth: NDArray[np.float32], title: str, source: str) -> Any:
    layers, count = len(found.maps["q"]), len(found.channels["q"])
    caption = (
        f"Model {source} Q, K and V of layer t are linear maps of z before that layer, t = 1 … {layers}; z_t is the "
        f"latent function after layer t, z_0 that after the lifting. Gray: from the {SHOWN_SHARE[0]:g}st to the "
        f"{SHOWN_SHARE[1]:g}th percentile of each map of Q, K and V, and of all maps of a channel of z."
    )
    aspect = truth.shape[0] / truth.shape[1]
    columns = max(count * layers, 2 * (layers + 1))
    rows = 3 + (count + 1) // 2
    figure = new_figure(MAP_INCHES * (columns + 2), (MAP_INCHES * aspect + 0.25) * rows + 1.2, caption)
    left, right = figure.subfigures(1, 2, width_ratios=[2, columns])
    show_map(left.subplots(), truth.clip(0, 1), f"{title}, truth")
    parts = right.subfigures(rows, 1)
    for part, name in zip(parts[:3], ("q", "k", "v"), strict=True):
        part.suptitle(name.upper(), x=0.01, ha="left", fontsize=10, fontweight="bold")
        cells = part.subplots(1, count * layers, squeeze=False)[0]
        for index, cell in enumerate(cells):
            channel, t = divmod(index, layers)
            label = f"{name}{found.channels[name][channel]}, t = {t + 1}"
            _show(cell, [found.maps[name][t, channel]], [label])
    for start, part in zip(range(0, count, 2), parts[3:], strict=True):
        part.suptitle("z", x=0.01, ha="left", fontsize=10, fontweight="bold")
        cells = part.subplots(1, 2 * (layers + 1), squeeze=False)[0]
        for offset in range(2):
            own = cells[offset * (layers + 1) : (offset + 1) * (layers + 1)]
            if start + offset == count:
                for cell in own:
                    cell.axis("off")
            else:
                channel = found.channels["z"][start + offset]
                labels = [f"channel {channel} of z_{t}" for t in range(layers + 1)]
                _show(own, list(found.maps["z"][:, start + offset]), labels)
    return figure


def _show(cells: Any, maps: Sequence[NDArray[np.float32]], labels: Sequence[str]) -> None:
    """Show maps in cells side by side on one gray scale."""
    low, high = np.percentile(np.stack(maps), SHOWN_SHARE)
    for cell, values, label in zip(np.atleast_1d(cells), maps, labels, strict=True):
        show_map(cell, _reduced(values), label, cmap="gray", vmin=low, vmax=high)


def _reduced(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Average over blocks so that neither side is longer than a map in the figure."""
    block = -(-max(values.shape) // LONGEST_MAP_SIDE)
    height, width = (side // block * block for side in values.shape)
    return values[:height, :width].reshape(height // block, block, width // block, block).mean((1, 3))
