"""What came out of the comparison in small: scores, differences to SRNO, and how much the seeds spread them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from srno.checkpoints.native import read_native
from srno.config import preset
from srno.evaluation.cost import profile
from srno.evaluation.datasets import PictureSet
from srno.evaluation.evaluate import Progress
from srno.evaluation.methods import Settings, evaluate_method, make_method
from srno.evaluation.protocols import Protocol, Scale
from srno.evaluation.tables import NOTHING, markdown_table
from srno.training.miniature import REFERENCE, Member, Miniature, run_of, seconds_of

Watch = Callable[[str], AbstractContextManager[Progress]]


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
    settings: Settings,
    cache: Path | None,
    watch: Watch,
) -> Result:
    """Evaluate the weights at the end of a member's runs."""
    psnr: list[dict[str, dict[Scale, float]]] = []
    for seed in seeds:
        weights = read_native(run_of(out, member, seed).folder / "last.safetensors")
        method = make_method(member.name, [weights], settings)
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
