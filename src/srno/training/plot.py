"""A run's curves as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from srno.errors import SRNOError, require
from srno.training.run import Run


def plot(run: Run) -> Path:
    """Draw loss, rate, throughput and validation of a run to curves.png in its folder."""
    entries = run.read_log()
    steps = [entry for entry in entries if entry["event"] == "step"]
    if not steps:
        raise SRNOError(f"{run.folder}: its log has no steps yet")
    validations = [entry for entry in entries if entry["event"] == "validation"]
    figure = require("matplotlib.figure", "plot").Figure(figsize=(11, 7), layout="constrained")
    (loss, psnr), (rate, speed) = figure.subplots(2, 2)
    _curve(loss, steps, "loss", "training loss", smooth=True)
    loss.set_yscale("log")
    for name in sorted({key for entry in validations for key in entry if key.startswith("x")}):
        psnr.plot(
            [_hours(entry) for entry in validations], [entry[name] for entry in validations], label=f"×{name[1:]}"
        )
    psnr.set_title("validation PSNR (Y), dB, averaged weights")
    if validations:
        psnr.legend()
    _curve(rate, steps, "rate", "rate, share of peak")
    _curve(speed, steps, "pixels", "LR pixels per second", smooth=True)
    for axes in (loss, psnr, rate, speed):
        axes.set_xlabel("hours")
        axes.grid(alpha=0.3)
    path = run.folder / "curves.png"
    figure.savefig(path, dpi=110)
    return path


def _curve(axes: Any, steps: Sequence[dict[str, Any]], name: str, title: str, *, smooth: bool = False) -> None:
    values = np.array([entry[name] for entry in steps], float)
    hours = np.array([_hours(entry) for entry in steps])
    if smooth and len(values) > 50:
        window = max(1, len(values) // 200)
        cut = len(values) // window * window
        values = values[:cut].reshape(-1, window).mean(1)
        hours = hours[:cut].reshape(-1, window).mean(1)
    axes.plot(hours, values)
    axes.set_title(title)


def _hours(entry: dict[str, Any]) -> float:
    return entry["seconds"] / 3600
