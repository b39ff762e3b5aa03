"""Process the pictures of a batch in order; a picture that fails does not stop the others."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from srno.errors import SRNOError
from srno.imaging.formats import check_limits
from srno.imaging.read import read
from srno.imaging.write import write
from srno.upscaling.enlarge import enlarge_picture
from srno.upscaling.jobs import BatchPlan, Job
from srno.upscaling.sizes import Request, Size, Target
from srno.upscaling.upscaler import Upscaler

Status: TypeAlias = Literal["written", "skipped", "failed"]


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """Settings that apply to every picture."""

    request: Request
    upscaler: Upscaler
    bits: int | None = None
    """Bits per channel of the results; None keeps those of the source."""
    quality: int | None = None
    metadata: bool = True


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of one source."""

    input: str
    output: str | None
    status: Status
    error: str | None = None
    input_size: Size | None = None
    output_size: Size | None = None
    scale: tuple[float, float] | None = None
    model: str | None = None
    seconds: float | None = None
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
    def end(self, job: Job, outcome: Outcome) -> None: ...


def run(plan: BatchPlan, settings: BatchSettings, progress: BatchProgress) -> Iterator[Outcome]:
    """Process the jobs of a batch and yield the outcome of each."""
    for job in plan.skipped:
        outcome = Outcome(input=job.source.name, output=str(job.output), status="skipped")
        progress.end(job, outcome)
        yield outcome
    for job in plan.jobs:
        try:
            outcome = _do(job, settings, progress)
        except BrokenPipeError:  # standard output is closed
            raise
        except SRNOError as error:
            outcome = _failed(job, str(error))
        except Exception as error:  # no error of one picture may stop the others
            outcome = _failed(job, f"{type(error).__name__}: {error}")
        progress.end(job, outcome)
        yield outcome


def _do(job: Job, settings: BatchSettings, progress: BatchProgress) -> Outcome:
    start = time.perf_counter()
    picture = read(job.source.path or job.data or b"", name=job.source.name)
    if job.format is None:
        settings.request.target(picture.size)  # raises if the size is the reason
        raise SRNOError("its header is inconsistent")
    target = settings.request.target(picture.size)
    bits = settings.bits or picture.bits
    check_limits(job.format, *target.size, picture.channels, bits)
    if job.output is not None:
        _make_folder(job.output.parent)
    progress.begin(job, target)
    large = enlarge_picture(picture, target, settings.upscaler, bits, progress.advance)
    written = write(
        large, job.output or sys.stdout.buffer, format=job.format, quality=settings.quality, metadata=settings.metadata
    )
    return Outcome(
        input=job.source.name,
        output=str(job.output or "-"),
        status="written",
        input_size=picture.size,
        output_size=target.size,
        scale=target.scale,
        model=settings.upscaler.name,
        seconds=round(time.perf_counter() - start, 3),
        peak_mb=peak_mb(),
        notes=(*_notes(job, target), *written.notes),
    )


def _notes(job: Job, target: Target) -> Iterator[str]:
    """Remarks on left-out frames and reduced sides."""
    if job.frames > 1:
        yield f"the first of {job.frames} frames or pages; the others are left out"
    sides = zip(("width", "height"), target.whole, target.source, strict=True)
    reduced = [side for side, new, old in sides if new < old]
    if reduced:
        which = f"{reduced[0]} " if len(reduced) == 1 else ""
        yield f"{which}reduced by a bicubic filter: the model only enlarges"


def _failed(job: Job, reason: str) -> Outcome:
    name = job.source.name
    return Outcome(input=name, output=None, status="failed", error=reason.removeprefix(f"{name}: "))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SRNOError(f"{folder}: cannot create this folder ({error.strerror})") from None


def peak_mb() -> float | None:
    """Peak memory of this process so far; None if the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1)
