"""The paper's comparison at small scale: every decoder and ablation on one encoder, trained on the same samples.

The number of samples is given, or it is what SRNO processes in a given time, estimated by a short run. Every model
trains on that number of samples, so that neither its speed nor other load on the machine affects the comparison.
"""

import json
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

from srno.checkpoints.native import read_native
from srno.config import PRESETS, preset
from srno.errors import SRNOError
from srno.evaluation.cost import profile
from srno.evaluation.datasets import PictureSet
from srno.evaluation.methods import evaluate_method, make_method
from srno.evaluation.protocols import Protocol, Scale
from srno.evaluation.tables import NO_VALUE, markdown_table
from srno.files import write_atomically
from srno.reproduce.table_inputs import Watch
from srno.training.config import RECIPES, TrainConfig
from srno.training.distributed import World
from srno.training.loop import loop
from srno.training.recorder import ReportEvent
from srno.training.run import Run
from srno.upscaling.upscaler import Upscaler

REFERENCE = "SRNO"
"""Name of the model that the others are compared with."""
CALIBRATION_STEPS = 40
"""Steps of the short run that measures how fast SRNO trains."""

Show = Callable[[str, Run], AbstractContextManager[ReportEvent]]
"""Opens a view of a run with a title."""


@dataclass(frozen=True)
class Member:
    """A model of the comparison."""

    name: str
    preset: str
    sampling: str = "random"


def members(base: str) -> list[Member]:
    """List SRNO, the paper's ablations of it and the other decoders, on the encoder of preset `base`."""
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
    """Settings of a comparison. They are stored in its folder, so that it can be resumed."""

    minutes: float | None = None
    """training time of SRNO, from which the steps follow"""
    base: str
    data: tuple[str, ...]
    stages: str
    precision: Literal["fp32", "bf16"] = "fp32"
    """of the products, the same for every run"""
    steps: int = 0
    """steps of every run; 0 before they are estimated from the minutes"""

    def __post_init__(self) -> None:
        if self.minutes is None and self.steps < 1:
            raise SRNOError("give --steps, at least 1, or --minutes of training for SRNO")
        if self.minutes is not None and self.minutes <= 0:
            raise SRNOError(f"--minutes {self.minutes:g}: give a time above zero")

    def config(self, member: Member, seed: int) -> TrainConfig:
        """Training config of a member; only the model differs, and the sampling of -s."""
        values: dict[str, Any] = RECIPES["compact"] | {"stages": self.stages, "sampling": member.sampling}
        # automatic precision depends on measured speed and could differ between runs
        values |= {"hold_out": 0, "allow_small": True, "precision": self.precision}
        data = tuple(Path(folder) for folder in self.data)
        return TrainConfig(data=data, preset=member.preset, seed=seed, steps=self.steps or CALIBRATION_STEPS, **values)


def begin(requested: Miniature, out: Path, world: World, show: Show) -> Miniature:
    """Load the comparison in the folder, or start one; without steps, measure how many SRNO does in the time."""
    path = out / "miniature.json"
    if path.exists():
        raw = json.loads(path.read_text())
        known = Miniature(**raw | {"data": tuple(raw["data"])})
        if replace(known, steps=requested.steps or known.steps) != replace(requested, steps=known.steps):
            raise SRNOError(f"--out {out} holds a comparison with other flags; give the same flags or another folder")
        return known
    found = requested
    if not requested.steps:
        found = replace(requested, steps=_count_steps(requested, Run(out / "calibration"), world, show))
    write_atomically(path, json.dumps(asdict(found), indent=1).encode())
    return found


def _count_steps(requested: Miniature, run: Run, world: World, show: Show) -> int:
    """Estimate from a short run how many steps SRNO does in the time."""
    assert requested.minutes is not None
    with show("calibration of SRNO's speed", run) as report:
        stopped = loop(requested.config(members(requested.base)[0], 0), run, world, report)
    if stopped:
        raise KeyboardInterrupt
    seconds = [entry["seconds"] for entry in run.read_log() if entry["event"] == "step"]
    # the first steps include one-time costs, and the median ignores short loads on the machine
    step_seconds = median(after - before for before, after in pairwise(seconds[CALIBRATION_STEPS // 4 :]))
    return max(1, round(60 * requested.minutes / step_seconds))


def run_of(out: Path, member: Member, seed: int) -> Run:
    """The run of a member with a seed."""
    name = member.preset.replace("/", "-") + ("-s" if member.sampling == "sequential" else "")
    return Run(out / f"seed-{seed}" / name)


def train_member(plan: Miniature, member: Member, seed: int, out: Path, world: World, show: Show) -> None:
    """Train a member or resume its run; do nothing if the run is finished."""
    run = run_of(out, member, seed)
    if run.log.exists() and any(entry["event"] == "done" for entry in run.read_log()):
        return
    with show(f"{member.name}, seed {seed}", run) as report:
        stopped: signal.Signals | None = loop(plan.config(member, seed), run, world, report)
    if stopped:
        raise KeyboardInterrupt


def seconds_of(run: Run) -> float:
    """Training time of a finished run."""
    return next(entry["seconds"] for entry in reversed(run.read_log()) if entry["event"] == "done")


@dataclass(frozen=True)
class MemberResult:
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
) -> MemberResult:
    """Evaluate the final weights of a member's runs."""
    psnr: list[dict[str, dict[Scale, float]]] = []
    for seed in seeds:
        weights = read_native(run_of(out, member, seed).folder / "last.safetensors")
        method = make_method(member.name, [weights], upscaler)
        with watch(f"{member.name}, seed {seed}") as progress:
            found = evaluate_method(method, sets, scales, protocol, cache=cache, progress=progress)
        psnr.append({each.data: {scale: score.psnr for scale, score in each.mean.items()} for each in found})
    seconds = tuple(seconds_of(run_of(out, member, seed)) for seed in seeds)
    return MemberResult(member, tuple(psnr), seconds, profile(preset(member.preset)).total.parameters)


@dataclass(frozen=True)
class Gain:
    """A difference to SRNO with the same seed: its mean, and the largest deviation of a seed from it."""

    mean: float
    spread: float


def gain(result: MemberResult, reference: MemberResult, data: str, scale: Scale) -> Gain:
    """PSNR difference of a member to SRNO at one scale of one set."""
    pairs = zip(result.psnr, reference.psnr, strict=True)
    differences = [ours[data][scale] - theirs[data][scale] for ours, theirs in pairs]
    mean = fmean(differences)
    return Gain(mean, max(abs(each - mean) for each in differences))


def table(results: Sequence[MemberResult], plan: Miniature, protocol: Protocol) -> str:
    """Format one table per set as Markdown."""
    reference = next(result for result in results if result.member.name == REFERENCE)
    return "\n".join(_part(results, reference, data, plan, protocol) for data in reference.psnr[0])


def _part(
    results: Sequence[MemberResult], reference: MemberResult, data: str, plan: Miniature, protocol: Protocol
) -> str:
    scales = list(reference.psnr[0][data])
    header = ["method", "params, k", "training, s"]
    header += [cell for scale in scales for cell in (f"×{scale} PSNR", f"×{scale} Δ")]
    lines: list[list[str]] = []
    for result in results:
        line = [result.member.name, f"{result.parameters / 1e3:.0f}", f"{fmean(result.seconds):.0f}"]
        for scale in scales:
            line.append(f"{fmean(seed[data][scale] for seed in result.psnr):.2f}")
            difference = gain(result, reference, data, scale)
            is_reference = result is reference
            line.append(NO_VALUE if is_reference else f"{difference.mean:+.3f} ± {difference.spread:.3f}")
        lines.append(line)
    seeds, time = len(reference.psnr), ""
    if plan.minutes is not None:
        minutes = "a minute" if plan.minutes == 1 else f"{plan.minutes:g} minutes"
        time = f": what SRNO was expected to do in {minutes}"
    notes = [
        f"Every model trained for {plan.steps} steps of {plan.stages} (patch × batch × points) with {plan.precision} "
        f"products on the encoder of {plan.base}{time}. PSNR: mean over {seeds} seeds. "
        "Δ: mean difference to SRNO with the same seed ± the largest deviation of a seed from it.",
        "-i, -s and MLP are our interpretation of what the paper describes in one sentence.",
        f"Protocol {protocol}",
    ]
    return markdown_table(f"Miniature – {data}", header, lines, notes)


def to_dict(results: Sequence[MemberResult], plan: Miniature, protocol: Protocol) -> dict[str, Any]:
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
