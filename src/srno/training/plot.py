"""A run's curves as a picture."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srno.errors import SRNOError, require
from srno.training.run import Run

WINDOWS = 100
"""Means that a noisy curve is drawn from."""

Entries = list[dict[str, Any]]


def plot(run: Run) -> Path:
    """Draw loss, rate, throughput and validation of a run to curves.png in its folder."""
    entries = run.read_log()
    steps = [entry for entry in entries if entry["event"] == "step"]
    if not steps:
        raise SRNOError(f"{run.folder}: its log has no steps yet")
    validations = [entry for entry in entries if entry["event"] == "validation"]
    figure = require("matplotlib.figure", "plot").Figure(figsize=(11, 7), layout="constrained")
    (loss, psnr), (rate, speed) = figure.subplots(2, 2)
    unit, seconds = ("hours", 3600) if steps[-1]["seconds"] > 2 * 3600 else ("minutes", 60)
    _noisy(loss, _values(steps, "seconds") / seconds, _values(steps, "loss"))
    _noisy(speed, _values(steps, "seconds") / seconds, _values(steps, "pixels"))
    rate.plot(_values(steps, "seconds") / seconds, _values(steps, "rate"))
    for name in sorted({key for entry in validations for key in entry if key.startswith("x")}):
        label = f"×{name[1:]}, at last {validations[-1].get(name, np.nan):.2f}"
        psnr.plot(_values(validations, "seconds") / seconds, _values(validations, name), marker=".", label=label)
    if validations:
        psnr.legend()
    loss.set_yscale("log")
    titles = (
        "training loss",
        "validation PSNR (Y), dB, averaged weights",
        "rate, share of peak",
        "LR pixels per second",
    )
    for axes, title in zip((loss, psnr, rate, speed), titles, strict=True):
        axes.set(title=title, xlabel=unit)
        axes.grid(alpha=0.3)
    path = run.folder / "curves.png"
    figure.savefig(path, dpi=110)
    return path


def _values(entries: Entries, name: str) -> NDArray[np.float64]:
    return np.array([entry.get(name, np.nan) for entry in entries], np.float64)


def _noisy(axes: Any, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Single values faintly, their means over windows clearly."""
    axes.plot(x, y, color="C0", alpha=0.25, linewidth=0.5)
    groups = np.array_split(np.arange(len(x)), min(WINDOWS, max(1, len(x) // 4)))
    axes.plot([x[group].mean() for group in groups], [y[group].mean() for group in groups], color="C0")
