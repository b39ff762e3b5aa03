"""Show a run: a bar on a terminal, lines elsewhere, TensorBoard events, and a plot of its curves."""

import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from rich.progress import TaskID

from srno.errors import SRNOError, require
from srno.training.run import Run
from srno.view import View

Event = dict[str, Any]
Curve = NDArray[np.float64]

LOSS_AVERAGE_DECAY = 0.95
"""Decay of the running mean of the loss that is shown."""
SECONDS_BETWEEN_LINES = 60.0
"""Seconds between the lines about steps if there is no bar."""
MEAN_WINDOWS = 100
"""Windows over which a noisy curve is averaged, at most."""


class RunView:
    """Shows the events of a run on standard error."""

    def __init__(self, title: str) -> None:
        self.title, self.view = title, View()
        self.numbers = dict[str, str]()
        self.start: Event | None = None
        """The first step of this process."""
        self.loss = math.nan
        """Running mean of the loss, since single steps are noisy."""
        self.next_line = 0.0
        self.bar: TaskID | None = None

    def __enter__(self) -> Self:
        self.view.__enter__()
        self.bar = self.view.add(self.title)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.view.__exit__(kind, error, at)

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event["event"]:
            case "reading":
                self._update_bar(0, f"reading pictures, {event['done']} of {event['of']}")
                if not self.view.live and event["done"] == 1:
                    self.view.print(f"reading {event['of']} pictures; later runs use the cache")
            case "step":
                self._step(event)
            case "validation":
                scores = "  ".join(f"{name} {event[name]:.3f}" for name in event if name[0] == "x" or name == "mean")
                self.numbers["validation"] = f"{event['mean']:.3f} dB"
                self.view.print(f"step {event['step']}, {_time(event['seconds'])}: {scores} dB{_dead(event)}")
            case "skipped":
                self.view.print(f"skipped {event['path']}: {event['reason']}")
            case "resume":
                self.view.print(f"resuming at step {event['step']}, {_time(event['seconds'])}")
            case "rollback":
                self.view.print(f"{event['bad_steps']} bad steps in a row: back to the state of step {event['step']}")
            case "note":
                self.view.print(event["text"])
            case kind:
                self.view.print(f"{kind} after {event['step']} steps, {_time(event['seconds'])}")

    def _step(self, event: Event) -> None:
        self.start = self.start or event
        decay = LOSS_AVERAGE_DECAY
        self.loss = event["loss"] if math.isnan(self.loss) else decay * self.loss + (1 - decay) * event["loss"]
        self.numbers["step"] = f"{event['step']:,}"
        self.numbers["loss"] = f"{self.loss:.4f}"
        self.numbers["rate"] = f"{100 * event['rate']:.0f} % of peak"
        self.numbers["LR pixels/s"] = f"{event['pixels']:,}"
        text = ", ".join(f"{name} {value}" for name, value in self.numbers.items())
        self._update_bar(min(1.0, event["progress"]), text)
        if not self.view.live and event["seconds"] >= self.next_line:
            self.next_line = event["seconds"] + SECONDS_BETWEEN_LINES
            self.view.print(f"{text}, {_time(event['seconds'])}, {self._left(event)}")

    def _update_bar(self, share: float, text: str) -> None:
        if self.bar is not None:
            self.view.update(self.bar, share, text=f"{self.title}: {text}")

    def _left(self, event: Event) -> str:
        """Time that is left, from the speed since this process started."""
        assert self.start is not None
        gained, seconds = event["progress"] - self.start["progress"], event["seconds"] - self.start["seconds"]
        if gained <= 0:
            return "…"
        return f"{_time(max(0.0, 1 - event['progress']) * seconds / gained)} left"


def _dead(event: Event) -> str:
    return f", {event['dead']} dead units" if event.get("dead") else ""


def _time(seconds: float) -> str:
    """Hours, minutes and seconds, such as 1:02:03."""
    return str(timedelta(seconds=round(seconds)))


def tensorboard_writer(folder: Path) -> Callable[[Event], None]:
    """Make a function that writes events for TensorBoard."""
    writer = require("torch.utils.tensorboard", "tensorboard").SummaryWriter(str(folder / "tensorboard"))

    def report(event: Event) -> None:
        if event["event"] in ("step", "validation"):
            for name, value in event.items():
                if isinstance(value, int | float) and name not in ("step", "seconds"):
                    writer.add_scalar(f"{event['event']}/{name}", value, event["step"])
        else:
            writer.flush()

    return report


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


def _plot_validation(axes: Any, entries: list[Event]) -> None:
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


def _values(entries: list[Event], name: str) -> Curve:
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
