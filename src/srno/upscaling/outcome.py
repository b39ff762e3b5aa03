"""What a batch reports: progress, and the outcome of each picture."""

import sys
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from srno.gigapixel.passes import Status
from srno.upscaling.jobs import Job
from srno.upscaling.sizes import Size, Target


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of one source."""

    input: str
    output: str | None
    status: Literal["written", "skipped", "failed"]
    reason: str | None = None
    """Why a picture is skipped."""
    error: str | None = None
    input_size: Size | None = None
    output_size: Size | None = None
    scale: tuple[float, float] | None = None
    frames: int | None = None
    """Frames or pages of the result; None if it is one picture."""
    model: str | None = None
    precision: str | None = None
    """Precision of the products; None if the operator was not needed."""
    integral: int | str | None = None
    """Points of the kernel integral, or exact; None if the operator was not needed."""
    clean: float | None = None
    """How strongly compression was cleaned, 0 to 1; None if the operator was not needed."""
    compression: str | None = None
    """Compression of the input, from which `--clean auto` chooses; None if it is lossless or unknown."""
    seconds: float | None = None
    """Time spent on this picture: reading, computing and writing."""
    peak_mb: float | None = None
    """Peak memory of the process so far."""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, for JSON."""
        return {name: value for name, value in vars(self).items() if value is not None}


class BatchProgress(Protocol):
    """Receives the progress of a batch."""

    def begin(self, job: Job, target: Target) -> None: ...
    def advance(self, share: float) -> None: ...
    def stage(self, status: Status) -> None: ...
    def print(self, text: str) -> None: ...
    def end(self, job: Job, outcome: Outcome) -> None: ...


class NoProgress:
    """Shows nothing."""

    def begin(self, job: Job, target: Target) -> None: ...
    def advance(self, share: float) -> None: ...
    def stage(self, status: Status) -> None: ...
    def print(self, text: str) -> None: ...
    def end(self, job: Job, outcome: Outcome) -> None: ...


def skipped(job: Job, reason: str) -> Outcome:
    """The outcome of a job that is not done."""
    return Outcome(input=job.source.name, output=str(job.output), status="skipped", reason=reason)


def failed(job: Job, reason: str) -> Outcome:
    """The outcome of a job that fails; the name of its source is left out of the reason."""
    name = job.source.name
    return Outcome(input=name, output=None, status="failed", error=reason.removeprefix(f"{name}: "))


def peak_mb() -> float | None:
    """Peak memory of this process so far; None if the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1)
