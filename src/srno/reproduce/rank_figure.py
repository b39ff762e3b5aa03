"""Draw and tabulate the ranks of z_0 … z_T and of Q, K and V over a set, at several scales."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from srno.analysis import Matrix, effective_rank, numerical_rank, single_precision_tolerance
from srno.evaluation.protocols import Protocol, Scale
from srno.evaluation.tables import markdown_table
from srno.reproduce.plotting import new_figure, style
from srno.reproduce.summarised import SummarisedPicture, describe_inputs

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4)
"""Shares of the largest singular value."""
DRAWN_TOLERANCES = np.geomspace(0.5, TOLERANCES[-1], 60)
"""Tolerances of the curve of numerical ranks."""
DEFINITIONS = (
    "σ_1 ≥ σ_2 ≥ …: singular values of the matrix with a row per output pixel and d_z columns, not centred, over the "
    "whole output. Effective rank: exp(−Σ p_i log p_i), p_i = σ_i / Σσ. Numerical rank at tolerance τ: the number of "
    "σ_i > τ·σ_1. float32: τ = n·2⁻²³, n the number of output pixels, the default of matrix_rank in single precision. "
    "Q, K and V of layer t are the linear maps of z_{t−1}, before normalisation."
)

Measure = Callable[[SummarisedPicture, Matrix, int], float]


def effective(picture: SummarisedPicture, matrix: Matrix, t: int) -> float:
    """Effective rank of a matrix of a picture."""
    return effective_rank(picture.summary.spectrum(matrix, t))


def numerical(tolerance: float | None) -> Measure:
    """Numerical rank at a tolerance; None for that of single precision."""

    def measure(picture: SummarisedPicture, matrix: Matrix, t: int) -> float:
        limit = single_precision_tolerance(picture.summary.points) if tolerance is None else tolerance
        return numerical_rank(picture.summary.spectrum(matrix, t), limit)

    return measure


def _measures() -> dict[str, Measure]:
    numerical_ranks = {f"numerical, τ = {tolerance:g}": numerical(tolerance) for tolerance in TOLERANCES}
    return {"effective": effective} | numerical_ranks | {"numerical, float32": numerical(None)}


def _columns(layers: int) -> list[tuple[str, Matrix, int]]:
    """Labels of z_0 … z_T, then Q, K and V of each layer."""
    latent: list[tuple[str, Matrix, int]] = [(f"z_{t}", "z", t) for t in range(layers + 1)]
    names: tuple[Matrix, ...] = ("q", "k", "v")
    return latent + [(f"{name.upper()}, t = {t + 1}", name, t) for t in range(layers) for name in names]


def ranks_markdown(found: Sequence[SummarisedPicture], title: str, protocol: Protocol) -> str:
    """Format the mean over pictures (smallest–largest) for each measure and scale."""
    columns = _columns(found[0].summary.layers)
    lines: list[list[str]] = []
    for name, measure in _measures().items():
        for scale in dict.fromkeys(each.scale for each in found):
            pictures = [each for each in found if each.scale == scale]
            cells = [_range([measure(each, matrix, t) for each in pictures]) for _, matrix, t in columns]
            lines.append([name, f"×{scale}", *cells])
    header = ["rank", "scale", *(label for label, _, _ in columns)]
    return markdown_table(title, header, lines, [DEFINITIONS, *_claims(found), describe_inputs(protocol)])


def _range(values: Sequence[float]) -> str:
    form = ".1f" if any(value % 1 for value in values) else ".0f"
    return f"{fmean(values):.1f} ({min(values):{form}}–{max(values):{form}})"


def _claims(found: Sequence[SummarisedPicture]) -> list[str]:
    """Count how often rank(Q) ≤ rank(V), which the supplement assumes, and report the coercivity of its equation 2."""
    layers = range(found[0].summary.layers)
    counts: list[str] = []
    for name, measure in _measures().items():
        holds = [measure(each, "q", t) <= measure(each, "v", t) for each in found for t in layers]
        counts.append(f"{name} {sum(holds)} of {len(holds)}")
    constants = [value for each in found for t in layers for value in each.summary.coercivity(t)]
    return [
        f"rank(Q) ≤ rank(V), pictures × scales × layers: {'; '.join(counts)}.",
        f"Coercivity c of B on a head's Q and V: {min(constants):.4f} to {max(constants):.4f}, median "
        f"{float(np.median(constants)):.4f}.",
    ]


def ranks_dict(found: Sequence[SummarisedPicture], protocol: Protocol) -> dict[str, Any]:
    """Plain data: every picture's singular values, ranks and coercivity."""
    columns, measures = _columns(found[0].summary.layers), _measures()
    pictures = [
        {
            "picture": each.name,
            "scale": str(each.scale),
            "points": each.summary.points,
            "singular_values": {label: each.summary.spectrum(name, t).tolist() for label, name, t in columns},
            "ranks": {label: {key: of(each, name, t) for key, of in measures.items()} for label, name, t in columns},
            "coercivity": [each.summary.coercivity(t).tolist() for t in range(each.summary.layers)],
        }
        for each in found
    ]
    return {"definitions": DEFINITIONS, "inputs": describe_inputs(protocol), "pictures": pictures}


def draw_ranks(found: Sequence[SummarisedPicture], title: str) -> Any:
    """Draw effective ranks over the scales, singular spectra, and numerical ranks over tolerances."""
    layers = found[0].summary.layers
    figure = new_figure(12, 8.4, f"{DEFINITIONS} Lines: mean over the pictures; bands: smallest to largest.")
    figure.suptitle(title, x=0.01, ha="left")
    (ranks, spectra), (maps, tolerances) = figure.subplots(2, 2)
    scales = list(dict.fromkeys(each.scale for each in found))
    shown = min(scales, key=lambda scale: abs(scale.x - 4))
    at_shown = [each for each in found if each.scale == shown]
    for t in range(layers + 1):
        colour = f"C{t}"
        _over_scales(ranks, found, scales, "z", t, f"z_{t}", colour, "-")
        spectrum = np.array([each.summary.spectrum("z", t) for each in at_shown])
        spectrum /= spectrum[:, :1]
        _band(spectra, np.arange(1, spectrum.shape[1] + 1), spectrum, f"z_{t}", colour, "-")
        values = np.array([[numerical(limit)(each, "z", t) for limit in DRAWN_TOLERANCES] for each in at_shown])
        _band(tolerances, DRAWN_TOLERANCES, values, f"z_{t}", colour, "-")
    names: tuple[Matrix, ...] = ("q", "k", "v")
    for number, name in enumerate(names):
        for t in range(layers):
            dashes = ("-", "--", ":", "-.")[t % 4]
            _over_scales(maps, found, scales, name, t, f"{name.upper()}, t = {t + 1}", f"C{number + 3}", dashes)
    style(ranks, "effective rank of z_t", "scale", "effective rank")
    style(maps, "effective rank of Q, K and V", "scale", "effective rank")
    style(spectra, f"singular spectrum of z_t, ×{shown}", "i", "σ_i / σ_1")
    style(tolerances, f"numerical rank of z_t, ×{shown}", "tolerance τ", "numerical rank")
    spectra.set_yscale("log")
    tolerances.set_xscale("log")
    tolerances.invert_xaxis()
    for axes in (ranks, maps):
        axes.set_xticks([scale.x for scale in scales], [f"×{scale}" for scale in scales])
    for axes in (ranks, spectra, tolerances):
        axes.legend(frameon=False, fontsize=8)
    low, high = maps.get_ylim()
    maps.set_ylim(low - 0.25 * (high - low), high)
    maps.legend(frameon=False, fontsize=8, ncol=3, loc="lower right")
    return figure


def _over_scales(
    axes: Any,
    found: Sequence[SummarisedPicture],
    scales: Sequence[Scale],
    matrix: Matrix,
    t: int,
    label: str,
    colour: str,
    dashes: str,
) -> None:
    values = [[effective(each, matrix, t) for each in found if each.scale == scale] for scale in scales]
    _band(axes, np.array([scale.x for scale in scales]), np.array(values).T, label, colour, dashes)


def _band(axes: Any, x: Any, values: Any, label: str, colour: str, dashes: str) -> None:
    """Draw the mean over the first axis of (pictures, x), and the band between its extremes."""
    axes.plot(x, values.mean(0), dashes, color=colour, label=label, marker="." if len(x) < 12 else None)
    axes.fill_between(x, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
