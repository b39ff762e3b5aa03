"""Draw the kernel matrices M of each layer, and how far they move between pictures, scales and halves of a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srno.analysis import halves, kernel_distance, summarise
from srno.evaluation.datasets import PictureSet
from srno.evaluation.evaluate import ReportProgress
from srno.evaluation.protocols import Protocol, Scale
from srno.evaluation.tables import markdown_table
from srno.reproduce.plotting import new_figure, show_map, style
from srno.reproduce.summarised import describe_inputs, lift_pair, lift_pixels
from srno.upscaling.upscaler import Upscaler

DEFINITIONS = (
    "M = (1/n) Σ k̃ᵀṽ over the n output pixels, a matrix per layer and head. Distance of two layers' M: "
    "‖M − M'‖ / ((‖M‖ + ‖M'‖)/2), Frobenius norm over all heads; 0 is equal, √2 orthogonal."
)
KINDS = {
    "pictures": "two pictures at the same scale",
    "scales": "the same low-resolution picture at two scales",
    "halves": "a picture and one of its halves, enlarged on its own",
}
LARGEST_COLOURED_SHARE = 99.5
"""Percentile of |M| at which the colours end."""

KernelArrays = NDArray[np.float64]


@dataclass(frozen=True)
class KernelStudy:
    """M of pictures at a scale, and distances between them and others, by kind."""

    names: tuple[str, ...]
    kernels: tuple[KernelArrays, ...]
    """(T, heads, width, width) of each picture"""
    distances: dict[str, dict[str, KernelArrays]]
    """kind → what is compared → (T,)"""
    scale: Scale


def study_kernels(
    upscaler: Upscaler,
    sets: Sequence[PictureSet],
    scale: Scale,
    scales: Sequence[Scale],
    protocol: Protocol,
    report: ReportProgress,
) -> KernelStudy:
    """Compute M of every picture made small by `scale`: enlarged by it, by the other scales, and of its halves."""
    pictures = [picture for each in sets for picture in each.pictures]
    whole: dict[str, KernelArrays] = {}
    distances: dict[str, dict[str, KernelArrays]] = {kind: {} for kind in KINDS}
    for number, picture in enumerate(pictures, start=1):
        _, lr, _ = lift_pair(upscaler, picture, scale, protocol)
        name = picture.path.stem
        at = {each: _kernels(upscaler, lr, each, protocol) for each in dict.fromkeys((scale, *scales))}
        whole[name] = at[scale]
        for one, other in combinations(at, 2):
            distances["scales"][f"{name} ×{one} ×{other}"] = kernel_distance(at[one], at[other])
        for side, pixels in halves(lr).items():
            half = _kernels(upscaler, pixels, scale, protocol)
            distances["halves"][f"{name} {side}"] = kernel_distance(half, at[scale])
        report(number, len(pictures), name)
    for one, other in combinations(whole, 2):
        distances["pictures"][f"{one} {other}"] = kernel_distance(whole[one], whole[other])
    return KernelStudy(tuple(whole), tuple(whole.values()), distances, scale)


def _kernels(upscaler: Upscaler, lr: NDArray[np.float32], scale: Scale, protocol: Protocol) -> KernelArrays:
    size = scale.hr_size((lr.shape[0], lr.shape[1]))
    return summarise(lift_pixels(upscaler, lr), size, cell_clip=protocol.cell_clip).kernels


def kernels_markdown(study: KernelStudy, title: str, protocol: Protocol) -> str:
    """Format the distances by kind and layer: mean (smallest–largest)."""
    lines: list[list[str]] = []
    for kind, meaning in KINDS.items():
        values = np.array(list(study.distances[kind].values()))
        if len(values):
            ranges = zip(values.mean(0), values.min(0), values.max(0), strict=True)
            cells = [f"{mean:.3f} ({low:.3f}–{high:.3f})" for mean, low, high in ranges]
            lines.append([meaning, str(len(values)), *cells])
    header = ["distance between", "pairs", *(f"layer {t + 1}" for t in range(len(study.kernels[0])))]
    return markdown_table(title, header, lines, [DEFINITIONS, *_norms(study), describe_inputs(protocol)])


def _norms(study: KernelStudy) -> list[str]:
    """Report the norms of M and the cosines between pictures, which separate changes of strength and direction."""
    flat = np.stack(study.kernels).reshape(len(study.kernels), len(study.kernels[0]), -1)
    norms = np.linalg.norm(flat, axis=-1)
    notes = [f"Norm of M: {norms.min():.2f} to {norms.max():.2f}."]
    if len(flat) > 1:
        units = flat / norms[..., None]
        cosines = [units[i] @ units[j].T for i, j in combinations(range(len(units)), 2)]
        values = np.array([np.diagonal(each) for each in cosines])
        notes[0] += f" Cosine between M of two pictures: {values.min():.2f} to {values.max():.2f}."
    return notes


def kernels_dict(study: KernelStudy, protocol: Protocol) -> dict[str, Any]:
    """Plain data: M of every picture and every distance."""
    return {
        "definitions": DEFINITIONS,
        "inputs": describe_inputs(protocol),
        "scale": str(study.scale),
        "kernels": {name: M.tolist() for name, M in zip(study.names, study.kernels, strict=True)},
        "distances": {
            kind: {pair: values.tolist() for pair, values in each.items()} for kind, each in study.distances.items()
        },
    }


def draw_kernels(study: KernelStudy, title: str) -> Any:
    """Draw M of every picture, a row per layer with the heads side by side, and the distances as points."""
    layers, count = len(study.kernels[0]), len(study.kernels)
    figure = new_figure(2.1 * count + 0.8, 1.35 * layers + 4.6, f"{DEFINITIONS} Heads are tiles, row by row.")
    figure.suptitle(title, x=0.01, ha="left")
    upper, lower = figure.subfigures(2, 1, height_ratios=[1.35 * layers + 0.4, 3.2])
    grid = upper.subplots(layers, count, squeeze=False)
    for t in range(layers):
        limit = np.percentile(np.abs([M[t] for M in study.kernels]), LARGEST_COLOURED_SHARE)
        drawn = None
        for name, M, axes in zip(study.names, study.kernels, grid[t], strict=True):
            drawn = show_map(axes, _mosaic(M[t]), f"{name}, layer {t + 1}", cmap="RdBu_r", vmin=-limit, vmax=limit)
        upper.colorbar(drawn, ax=grid[t].tolist(), shrink=0.8)
    plots = lower.subplots(1, layers, squeeze=False, sharey=True)[0]
    for t, axes in enumerate(plots):
        for row, kind in enumerate(KINDS):
            values = [distance[t] for distance in study.distances[kind].values()]
            axes.plot(values, [row] * len(values), "|", color=f"C{row}", markersize=16)
        axes.set_yticks(range(len(KINDS)), list(KINDS))
        axes.set_ylim(len(KINDS) - 0.4, -0.6)
        axes.set_xlim(left=0)
        style(axes, f"layer {t + 1}", "distance")
    return figure


def _mosaic(M: KernelArrays) -> KernelArrays:
    """Heads (heads, width, width) as tiles of one picture, with empty lines between them."""
    heads, width, _ = M.shape
    rows = int(np.floor(np.sqrt(heads / 2))) or 1
    columns = -(-heads // rows)
    out = np.full((rows * (width + 1) - 1, columns * (width + 1) - 1), np.nan)
    for head, tile in enumerate(M):
        top, left = (place * (width + 1) for place in divmod(head, columns))
        out[top : top + width, left : left + width] = tile
    return out
