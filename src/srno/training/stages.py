"""Samples may change their shape in the course of a run, small and many first, large ones later."""

from dataclasses import dataclass

from srno.errors import SRNOError


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of a run with samples of one shape."""

    until: float = 1.0
    """Share of the budget at which this stage ends."""
    patch: int
    """Side p of the low-resolution patch."""
    batch: int
    """Samples in a step, over all devices."""
    points: int
    """Supervision points n_q of a sample."""


def parse_stages(text: str) -> tuple[Stage, ...]:
    """`0.8:32x16x512,48x16x1152` is 32² patches, batch 16, 512 points until 80 % of the budget, then 48² and so on."""
    stages = [_parse(part.strip(), text) for part in text.split(",")]
    shares = [stage.until for stage in stages]
    if shares != sorted(set(shares)) or shares[-1] != 1.0 or shares[0] <= 0:
        raise SRNOError(f"--stages {text!r}: shares must rise, and the last stage must go on to 1")
    return tuple(stages)


def _parse(part: str, text: str) -> Stage:
    until, _, shape = part.rpartition(":")
    try:
        patch, batch, points = (int(number) for number in shape.split("x"))
        stage = Stage(until=float(until or 1), patch=patch, batch=batch, points=points)
    except ValueError:
        form = "UNTIL:PATCHxBATCHxPOINTS, such as 0.8:32x16x512,48x16x1152"
        raise SRNOError(f"--stages {text!r}: write {form}") from None
    if min(patch, batch, points) < 1:
        raise SRNOError(f"--stages {text!r}: patch, batch and points must each be at least 1")
    return stage
