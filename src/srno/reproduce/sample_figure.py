"""Draw PSNR against the number of supervision points in training, and where random and sequential points lie."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srno.checkpoints.catalogue import read_checkpoint
from srno.config import PRESETS, preset
from srno.data.samples import SampleConfig, draw_sample
from srno.errors import SRNOError
from srno.evaluation.methods import evaluate_method, make_method
from srno.evaluation.protocols import Protocol, Scale
from srno.evaluation.tables import NO_VALUE, markdown_table
from srno.reproduce.plotting import new_figure, show_map, style
from srno.reproduce.table_inputs import FoundCheckpoint, TableInputs, training_command

REFERENCE_METHOD = "LTE"
PAPER_BATCH = 64
"""Batch of the published recipe, for every number of points."""
EXTRA_DATA_SUFFIX = "-phi"
"""Suffix of the run that was also trained on Flickr2K."""

POINT_ORDERS = {
    "random": "random: anywhere in the crop",
    "sequential": "sequential (-s), our reading: a window",
    "sorted": "sequential, published code: sorted",
}


@dataclass(frozen=True)
class SampleRow:
    """A curve of the figure."""

    name: str
    preset: str
    side: int | None = None
    """supervision points per patch are side²; None for a separate recipe"""
    extra_data: bool = False

    def command(self) -> str:
        """The command that trains it."""
        if self.side is None:
            return training_command(self.preset)
        flags, suffix = f" --stages {self.side}x{PAPER_BATCH}x{self.side**2}", f"-{self.side}"
        if self.extra_data:
            flags, suffix = f"{flags} --data DATA/Flickr2K", EXTRA_DATA_SUFFIX
        return training_command(self.preset, flags, suffix)

    def matches(self, found: FoundCheckpoint) -> bool:
        """Whether a checkpoint is the one of this curve."""
        if found.config != preset(self.preset) or found.sequential:
            return False
        if found.name.endswith(EXTRA_DATA_SUFFIX) != self.extra_data:
            return False
        return self.side is None or self.extra_data or found.points == self.side**2


def sample_rows(base: str, sides: Sequence[int]) -> list[SampleRow]:
    """LTE, SRNO with each number of points, the MLP with the most, and the MLP that was also trained on Flickr2K."""
    missing = [name for name in (base, f"lte/{base}", f"mlp/{base}") if name not in PRESETS]
    if missing:
        raise SRNOError(f"--preset {base}: the figure needs {', '.join(missing)}; use edsr-baseline, rdn or light")
    rows = [SampleRow(REFERENCE_METHOD, f"lte/{base}"), *(SampleRow(f"SRNO ({side}²)", base, side) for side in sides)]
    largest = max(sides)
    rows.append(SampleRow(f"MLP ({largest}²)", f"mlp/{base}", largest))
    return [*rows, SampleRow("MLPφ", f"mlp/{base}", largest, extra_data=True)]


@dataclass(frozen=True)
class SampleStudy:
    """PSNR of the curves that have a checkpoint, and the commands that train the others."""

    rows: tuple[SampleRow, ...]
    psnr: Mapping[str, Mapping[Scale, float]]
    """curve → scale → dB, the mean over all pictures"""
    files: Mapping[str, str]
    protocol: Protocol

    @property
    def complete(self) -> bool:
        """Whether LTE and another model have been scored, so that there is something to draw."""
        return REFERENCE_METHOD in self.psnr and len(self.psnr) > 1

    @property
    def commands(self) -> list[str]:
        return [row.command() for row in self.rows if row.name not in self.psnr]

    def gains(self, name: str) -> dict[Scale, float]:
        """PSNR above LTE's; empty without LTE."""
        reference = self.psnr.get(REFERENCE_METHOD, {})
        return {scale: value - reference[scale] for scale, value in self.psnr[name].items() if scale in reference}


def study_samples(rows: Sequence[SampleRow], scales: Sequence[Scale], inputs: TableInputs) -> SampleStudy:
    """Score the checkpoints that match the curves on all sets."""
    protocol = inputs.protocol("benchmark")
    psnr: dict[str, dict[Scale, float]] = {}
    files: dict[str, str] = {}
    for row in rows:
        checkpoint = next((each for each in inputs.found if row.matches(each)), None)
        if checkpoint is None:
            continue
        method = make_method(row.name, [read_checkpoint(checkpoint.path)], inputs.upscaler)
        with inputs.watch(row.name) as progress:
            found = evaluate_method(method, inputs.sets.sets, scales, protocol, cache=inputs.cache, progress=progress)
        scores = {scale: [score.psnr for each in found for score in each.scores[scale].values()] for scale in scales}
        psnr[row.name] = {scale: sum(values) / len(values) for scale, values in scores.items() if values}
        files[row.name] = str(checkpoint.path)
    return SampleStudy(tuple(rows), psnr, files, protocol)


def samples_markdown(study: SampleStudy, scales: Sequence[Scale], title: str) -> str:
    """Format PSNR and the difference to LTE, and the commands for what is missing."""
    header = ["model", *(cell for scale in scales for cell in (f"×{scale} PSNR", f"×{scale} Δ"))]
    lines: list[list[str]] = []
    for row in study.rows:
        gains = study.gains(row.name) if row.name in study.psnr else {}
        line = [row.name]
        for scale in scales:
            value = study.psnr.get(row.name, {}).get(scale)
            line += [NO_VALUE if value is None else f"{value:.2f}"]
            line += [f"{gains[scale]:+.3f}" if scale in gains and row.name != REFERENCE_METHOD else NO_VALUE]
        lines.append(line)
    notes = [f"Δ: difference to {REFERENCE_METHOD}. MLP: our reading of a network that the paper does not describe."]
    notes.append("In parentheses: supervision points of a sample; the low-resolution patch has as many pixels.")
    notes.append(f"Protocol {study.protocol}")
    text = markdown_table(title, header, lines, notes)
    if study.files:
        text += "\nFilled from:\n\n" + "\n".join(f"- {name}: {path}" for name, path in study.files.items()) + "\n"
    if study.commands:
        text += "\nCommands that fill the gaps:\n\n```\n" + "\n".join(study.commands) + "\n```\n"
    return text


def samples_dict(study: SampleStudy) -> dict[str, Any]:
    """Plain data: `{"protocol": …, "psnr": {model: {scale: dB}}, "files": …}`."""
    return {
        "protocol": study.protocol.to_dict(),
        "psnr": {name: {str(scale): value for scale, value in each.items()} for name, each in study.psnr.items()},
        "files": dict(study.files),
    }


def draw_samples(study: SampleStudy, scales: Sequence[Scale], title: str) -> Any:
    """Draw each curve's PSNR above LTE's over the scales."""
    curves = [row for row in study.rows if row.name in study.psnr and row.name != REFERENCE_METHOD]
    caption = (
        f"Models were trained with the number of supervision points per patch in parentheses. Protocol {study.protocol}"
    )
    figure = new_figure(8, 5.4, caption)
    axes = figure.subplots()
    for number, row in enumerate(curves):
        gains = study.gains(row.name)
        places = [place for place, scale in enumerate(scales) if scale in gains]
        dashes = "-" if row.name.startswith("SRNO") else "--"
        axes.plot(places, list(gains.values()), dashes, marker="o", color=f"C{number}", label=row.name)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.text(0.0, 0.0, REFERENCE_METHOD, va="bottom", fontsize=8)
    axes.set_xticks(range(len(scales)), [f"×{scale}" for scale in scales])
    style(axes, title, "scale", f"PSNR above {REFERENCE_METHOD}, dB")
    axes.legend(frameon=False)
    return figure


def draw_patterns(picture: NDArray[np.uint8], *, side: int, scale: float, seed: int) -> Any:
    """Draw side² points of one training sample of (H, W, 3) at a scale: where they lie, and their coordinates."""
    config = SampleConfig(patch=side, points=side**2, r_min=scale, r_max=scale)
    if min(picture.shape[:2]) < config.smallest:
        raise SRNOError(f"--picture is {picture.shape[1]}×{picture.shape[0]}; a crop needs {config.smallest}² pixels")
    points = {name: _points(picture, config, name, seed) for name in POINT_ORDERS}
    caption = (
        f"One training sample: a crop of {config.smallest}² pixels, its low-resolution patch of {side}² (background) "
        f"and {side}² supervision points. Above: where the points lie. Below: the points in their order, row by row; "
        "the colour is the fractional part of the vertical coordinate, the offset to the nearest low-resolution pixel."
    )
    figure = new_figure(11, 7.6, caption)
    upper, lower = figure.subplots(2, len(POINT_ORDERS))
    offsets = None
    for top, bottom, (name, (lr, coords)) in zip(upper, lower, points.items(), strict=True):
        show_map(top, lr.mean(-1), POINT_ORDERS[name], extent=(-1, 1, 1, -1), cmap="gray", vmin=0, vmax=255)
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
