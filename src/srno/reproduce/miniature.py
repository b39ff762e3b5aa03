"""The paper's comparison in small: every decoder and every ablation on one encoder, with the same samples for all.

The number of samples is what SRNO gets through in the given time; a short run of it tells. After that only samples
count, so that nobody gains from being fast or loses from a busy machine.
"""

import json
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

from srno.checkpoints.native import read_native
from srno.config import PRESETS, preset
from srno.errors import SRNOError
from srno.evaluation.cost import profile
from srno.evaluation.datasets import PictureSet
from srno.evaluation.evaluate import Report
from srno.evaluation.methods import evaluate_method, make_method
from srno.evaluation.protocols import Protocol, Scale
from srno.evaluation.tables import NOTHING, markdown_table
from srno.files import write_atomically
from srno.training.config import RECIPES, TrainConfig
from srno.training.distributed import World
from srno.training.loop import loop
from srno.training.recorder import Tell
from srno.training.run import Run
from srno.upscaling.upscaler import Upscaler

REFERENCE = "SRNO"
"""Whom the others are measured against."""
CALIBRATION = 40
"""Steps that tell how fast SRNO trains."""

Watch = Callable[[str], AbstractContextManager[Report]]
"""Opens a progress display for a titled piece of work."""
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
        stopped = loop(asked.config(members(asked.base)[0], 0), run, world, tell)
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
        stopped: signal.Signals | None = loop(plan.config(member, seed), run, world, tell)
    if stopped:
        raise KeyboardInterrupt


def seconds_of(run: Run) -> float:
    """How long a finished run has trained."""
    return next(entry["seconds"] for entry in reversed(run.read_log()) if entry["event"] == "done")


@dataclass(frozen=True)
class Result:
    """A member's scores, seed by seed."""

    member: Member
    psnr: tuple[Mapping[str, Mapping[Scale, float]], ...]
    """per seed: set → scale → dB"""
    seconds: tuple[float, ...]
    """per seed: time of training"""
    parameters: int


def score_member(
    member: Member,
    seeds: Sequence[int],
    out: Path,
    sets: Sequence[PictureSet],
    scales: Sequence[Scale],
    protocol: Protocol,
    *,
    upscaler: Upscaler,
    cache: Path | None,
    watch: Watch,
) -> Result:
    """Evaluate the weights at the end of a member's runs."""
    psnr: list[dict[str, dict[Scale, float]]] = []
    for seed in seeds:
        weights = read_native(run_of(out, member, seed).folder / "last.safetensors")
        method = make_method(member.name, [weights], upscaler)
        with watch(f"{member.name}, seed {seed}") as progress:
            found = evaluate_method(method, sets, scales, protocol, cache=cache, progress=progress)
        psnr.append({each.data: {scale: score.psnr for scale, score in each.mean.items()} for each in found})
    seconds = tuple(seconds_of(run_of(out, member, seed)) for seed in seeds)
    return Result(member, tuple(psnr), seconds, profile(preset(member.preset)).total.parameters)


@dataclass(frozen=True)
class Gain:
    """A difference to SRNO with the same seed: its mean, and how far the seeds lie from it at most."""

    mean: float
    spread: float


def gain(result: Result, reference: Result, data: str, scale: Scale) -> Gain:
    """What a member gains on SRNO at one scale of one set."""
    pairs = zip(result.psnr, reference.psnr, strict=True)
    differences = [ours[data][scale] - theirs[data][scale] for ours, theirs in pairs]
    mean = fmean(differences)
    return Gain(mean, max(abs(each - mean) for each in differences))


def table(results: Sequence[Result], plan: Miniature, protocol: Protocol) -> str:
    """One table per set as Markdown."""
    reference = next(result for result in results if result.member.name == REFERENCE)
    return "\n".join(_part(results, reference, data, plan, protocol) for data in reference.psnr[0])


def _part(results: Sequence[Result], reference: Result, data: str, plan: Miniature, protocol: Protocol) -> str:
    scales = list(reference.psnr[0][data])
    header = ["method", "params, k", "training, s"]
    header += [cell for scale in scales for cell in (f"×{scale} PSNR", f"×{scale} Δ")]
    lines: list[list[str]] = []
    for result in results:
        line = [result.member.name, f"{result.parameters / 1e3:.0f}", f"{fmean(result.seconds):.0f}"]
        for scale in scales:
            line.append(f"{fmean(seed[data][scale] for seed in result.psnr):.2f}")
            difference = gain(result, reference, data, scale)
            own = result is reference
            line.append(NOTHING if own else f"{difference.mean:+.3f} ± {difference.spread:.3f}")
        lines.append(line)
    seeds, minutes = len(reference.psnr), "a minute" if plan.minutes == 1 else f"{plan.minutes:g} minutes"
    notes = [
        f"Every model trained for {plan.steps} steps of {plan.stages} (patch × batch × points) on the encoder of "
        f"{plan.base}: what SRNO was expected to do in {minutes}. PSNR: mean over {seeds} seeds. "
        "Δ: mean difference to SRNO with the same seed ± how far a seed lies from it at most.",
        "-i, -s and MLP are our readings of what the paper describes in a sentence.",
        f"Protocol {protocol}",
    ]
    return markdown_table(f"Miniature – {data}", header, lines, notes)


def to_dict(results: Sequence[Result], plan: Miniature, protocol: Protocol) -> dict[str, Any]:
    """Plain data: `{"plan": …, "protocol": …, "members": [{"name": …, "psnr": [{set: {scale: dB}}, …]}, …]}`."""
    return {
        "plan": vars(plan),
        "protocol": protocol.to_dict(),
        "members": [
            {
                "name": result.member.name,
                "preset": result.member.preset,
                "parameters": result.parameters,
                "seconds": result.seconds,
                "psnr": [
                    {data: {str(scale): value for scale, value in scores.items()} for data, scores in seed.items()}
                    for seed in result.psnr
                ],
            }
            for result in results
        ],
    }
