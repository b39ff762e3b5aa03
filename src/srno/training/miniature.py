"""The paper's comparison in small: every decoder and every ablation on one encoder, with the same samples for all.

The number of samples is what SRNO gets through in the given time; a short run of it tells. After that only samples
count, so that nobody gains from being fast or loses from a busy machine.
"""

import json
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from srno.checkpoints.native import write_atomically
from srno.config import PRESETS
from srno.errors import SRNOError
from srno.training.config import TrainConfig
from srno.training.loop import train
from srno.training.recipes import RECIPES
from srno.training.recorder import Tell
from srno.training.run import Run
from srno.training.world import World

REFERENCE = "SRNO"
"""Whom the others are measured against."""
CALIBRATION = 40
"""Steps that tell how fast SRNO trains."""

Show = Callable[[str, Run], AbstractContextManager[Tell]]
"""Opens a view of a titled run."""


@dataclass(frozen=True)
class Member:
    """One who takes part."""

    name: str
    preset: str
    sampling: str = "random"


def members(base: str) -> list[Member]:
    """SRNO, the paper's ablations of it and the other decoders, on the encoder of preset `base`."""
    found = [Member(REFERENCE, base), *(Member(f"SRNO (-{letter})", f"{base}-{letter}") for letter in "ihwl")]
    found.append(Member("SRNO (-s)", base, "sequential"))
    rivals = {"LIIF": "liif", "LTE": "lte", "MetaSR": "metasr", "MLP": "mlp"}
    found += [Member(name, f"{system}/{base}") for name, system in rivals.items()]
    missing = [member.preset for member in found if member.preset not in PRESETS]
    if missing:
        raise SRNOError(f"--preset {base}: the comparison also needs {', '.join(missing)}; use light or edsr-baseline")
    return found


@dataclass(frozen=True, kw_only=True)
class Miniature:
    """What is compared how. It is kept in the folder, so that a stopped comparison goes on as it began."""

    minutes: float
    """that SRNO may train"""
    base: str
    data: tuple[str, ...]
    stages: str
    steps: int = 0
    """of every run; 0 as long as that is not known"""

    def __post_init__(self) -> None:
        if self.minutes <= 0:
            raise SRNOError(f"--minutes {self.minutes:g}: give a time above zero")

    def config(self, member: Member, seed: int) -> TrainConfig:
        """The run of a member: all are alike but for the model, or the sampling of -s."""
        values: dict[str, Any] = RECIPES["compact"] | {"stages": self.stages, "sampling": member.sampling}
        # a choice of precision by speed could fall out differently from one run to the next
        values |= {"hold_out": 0, "allow_small": True, "precision": "fp32"}
        data = tuple(Path(folder) for folder in self.data)
        return TrainConfig(data=data, preset=member.preset, seed=seed, steps=self.steps or CALIBRATION, **values)


def begin(asked: Miniature, out: Path, world: World, show: Show) -> Miniature:
    """Take up the comparison in the folder, or begin one by finding out how many steps SRNO does in the time."""
    path = out / "miniature.json"
    if path.exists():
        raw = json.loads(path.read_text())
        known = Miniature(**raw | {"data": tuple(raw["data"])})
        if replace(known, steps=0) != asked:
            raise SRNOError(f"--out {out} holds a comparison with other flags; give the same, or another folder")
        return known
    found = replace(asked, steps=_count_steps(asked, Run(out / "calibration"), world, show))
    write_atomically(path, json.dumps(asdict(found), indent=1).encode())
    return found


def _count_steps(asked: Miniature, run: Run, world: World, show: Show) -> int:
    """Steps that SRNO does in the time, from a short run."""
    with show("how fast is SRNO?", run) as tell:
        stopped = train(asked.config(members(asked.base)[0], 0), run, world, tell)
    if stopped:
        raise KeyboardInterrupt
    seconds = [entry["seconds"] for entry in run.read_log() if entry["event"] == "step"]
    # the first steps pay for what later ones find ready, and a busy moment is not the machine's pace
    pace = median(after - before for before, after in pairwise(seconds[CALIBRATION // 4 :]))
    return max(1, round(60 * asked.minutes / pace))


def run_of(out: Path, member: Member, seed: int) -> Run:
    """Where a member's run lies."""
    name = member.preset.replace("/", "-") + ("-s" if member.sampling == "sequential" else "")
    return Run(out / f"seed-{seed}" / name)


def train_member(plan: Miniature, member: Member, seed: int, out: Path, world: World, show: Show) -> None:
    """Train, or go on, or do nothing where it is done already."""
    run = run_of(out, member, seed)
    if run.log.exists() and any(entry["event"] == "done" for entry in run.read_log()):
        return
    with show(f"{member.name}, seed {seed}", run) as tell:
        stopped: signal.Signals | None = train(plan.config(member, seed), run, world, tell)
    if stopped:
        raise KeyboardInterrupt


def seconds_of(run: Run) -> float:
    """How long a finished run has trained."""
    return next(entry["seconds"] for entry in reversed(run.read_log()) if entry["event"] == "done")
