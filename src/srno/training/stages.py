"""Samples and losses that change during a run: `0.8:A,B` is A until 80 % of the budget, then B."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, cast, get_args

from srno.errors import SRNOError

Loss: TypeAlias = Literal["l1", "charbonnier", "rms", "l2"]
Part = TypeVar("Part")
Parts: TypeAlias = tuple[tuple[float, Part], ...]
"""Shares of the budget at which each part ends, and the parts."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Samples of one shape."""

    patch: int
    """Side p of the low-resolution patch."""
    batch: int
    """Samples in a step, over all devices."""
    points: int
    """Supervision points n_q of a sample."""


def parse_stages(text: str) -> Parts[Stage]:
    """`0.8:32x16x512,48x16x1152` is 32² patches, batch 16, 512 points until 80 % of the budget, then 48² and so on."""
    stages = _parse("--stages", text, _stage, "UNTIL:PATCHxBATCHxPOINTS, such as 0.8:32x16x512,48x16x1152")
    if any(min(stage.patch, stage.batch, stage.points) < 1 for _, stage in stages):
        raise SRNOError(f"--stages {text!r}: patch, batch and points must each be at least 1")
    return stages


def parse_losses(text: str) -> Parts[Loss]:
    """`0.8:l1,rms` is the absolute error until 80 % of the budget, then the root mean square one."""
    return _parse("--loss", text, _loss, f"one of {', '.join(get_args(Loss))}, or several such as 0.8:l1,rms")


def part_at(parts: Parts[Part], progress: float) -> Part:
    """The part that applies at this share of the budget."""
    return next((part for until, part in parts if progress < until), parts[-1][1])


def _parse(flag: str, text: str, parse: Callable[[str], Part], form: str) -> Parts[Part]:
    try:
        split = [part.strip().rpartition(":") for part in text.split(",")]
        parts = tuple((float(until or 1), parse(what)) for until, _, what in split)
    except ValueError:
        raise SRNOError(f"{flag} {text!r}: write {form}") from None
    shares = [until for until, _ in parts]
    if shares != sorted(set(shares)) or shares[-1] != 1.0 or shares[0] <= 0:
        raise SRNOError(f"{flag} {text!r}: shares must increase, and the last part must end at 1")
    return parts


def _stage(text: str) -> Stage:
    patch, batch, points = (int(number) for number in text.split("x"))
    return Stage(patch=patch, batch=batch, points=points)


def _loss(text: str) -> Loss:
    if text not in get_args(Loss):
        raise ValueError(text)
    return cast(Loss, text)
