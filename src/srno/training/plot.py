"""Plot the curves of a run."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srno.errors import SRNOError, require
from srno.training.run import Run

MEAN_WINDOWS = 100
"""Windows over which a noisy curve is averaged, at most."""

Entries = list[dict[str, Any]]
Curve = NDArray[np.float64]


def plot(run: Run) -> Path:
    """Draw loss, validation, rate and throughput of a run over its steps to curves.png in its folder.

    The x axis is steps, not time, so that neither a busy machine nor a break distorts the curves.
    """
    entries = run.read_log()
    steps = [entry for entry in entries if entry["event"] == "step"]
    if not steps:
        raise SRNOError(f"{run.folder}: its log has no steps yet")
    figure = require("matplotlib.figure", "plot").Figure(figsize=(11, 7), layout="constrained")
    (loss, psnr), (rate, speed) = figure.subplots(2, 2)
    x = _values(steps, "step")
    _plot_noisy(loss, x, _values(steps, "loss"))
    _plot_validation(psnr, [entry for entry in entries if entry["event"] == "validation"])
    rate.plot(x, _values(steps, "rate"), color="C0")
    rate.set_ylim(0, 1.05)
    _plot_noisy(speed, x, _values(steps, "pixels"))
    speed.set_ylim(0, None)
    titles = ("training loss", "validation PSNR on Y, dB (averaged weights)", "rate, share of its peak", "LR pixels/s")
    for axes, title in zip((loss, psnr, rate, speed), titles, strict=True):
        axes.set_title(title, loc="left", fontsize="medium")
        axes.set_xlim(0, x[-1] * 1.02)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in (rate, speed):
        axes.set_xlabel("steps")
    speed.yaxis.set_major_formatter("{x:,.0f}")
    hours = steps[-1]["seconds"] / 3600
    duration = f"{hours:.1f} hours" if hours >= 2 else f"{60 * hours:.1f} minutes"
    figure.suptitle(f"{run.folder.resolve().name}: {steps[-1]['step']:,} steps in {duration}", x=0.01, ha="left")
    path = run.folder / "curves.png"
    figure.savefig(path, dpi=110)
    return path


def _plot_validation(axes: Any, entries: Entries) -> None:
    """Draw a curve for each scale and mark the best validation."""
    names = sorted({key for entry in entries for key in entry if key.startswith("x")})
    if not names:
        axes.text(0.5, 0.5, "none yet", transform=axes.transAxes, ha="center")
        return
    x, best = _values(entries, "step"), int(np.nanargmax(_values(entries, "mean")))
    for number, name in enumerate(names):
        y = _values(entries, name)
        label = f"×{name[1:]}: {y[best]:.2f} at the best mean"
        axes.plot(x, y, color=f"C{number}", marker=".", label=label)
        axes.plot(x[best], y[best], color=f"C{number}", marker="o", fillstyle="none", markersize=9)
    axes.legend(frameon=False, loc="best")


def _values(entries: Entries, name: str) -> Curve:
    return np.array([entry.get(name, np.nan) for entry in entries], np.float64)


def _plot_noisy(axes: Any, x: Curve, y: Curve) -> None:
    """Draw single values faintly and their means over windows on top; outliers may lie outside the axes."""
    groups = np.array_split(np.arange(len(x)), min(MEAN_WINDOWS, max(1, len(x) // 4)))
    means = np.array([y[group].mean() for group in groups])
    axes.plot(x, y, color="C0", alpha=0.25, linewidth=0.5)
    axes.plot([x[group].mean() for group in groups], means, color="C0", marker="." if len(means) < 3 else None)
    low, high = np.nanquantile(y, [0.01, 0.99])
    low, high = min(low, means.min()), max(high, means.max())
    axes.set_ylim(low - 0.05 * (high - low + 1e-9), high + 0.05 * (high - low + 1e-9))
