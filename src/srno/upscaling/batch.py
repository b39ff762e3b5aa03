"""Process the pictures of a batch in order; a picture that fails does not stop the others."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from srno.errors import SRNOError
from srno.imaging.formats import CAPABILITIES, Format, check_limits
from srno.imaging.frames import FrameSequence, open_frames, write_frames
from srno.imaging.picture import Picture
from srno.imaging.read import read
from srno.imaging.write import NewFile, Written, opened, write
from srno.imaging.write import Target as WriteTarget
from srno.upscaling.animation import enlarge_frames, total_pixels
from srno.upscaling.claims import ResultClaims, open_claims
from srno.upscaling.enlarge import enlarge_picture, uses_operator
from srno.upscaling.jobs import BatchPlan, Job
from srno.upscaling.naming import Frames
from srno.upscaling.overlap import overlapped
from srno.upscaling.sizes import Request, Size, Target
from srno.upscaling.upscaler import Upscaler

Status: TypeAlias = Literal["written", "skipped", "failed"]
Result = TypeVar("Result")

LARGEST_OVERLAP_PIXELS = 16_000_000
"""Larger pictures are read and written alone: they would take memory and, after Ctrl-C, seconds to finish."""


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """Settings that apply to every picture."""

    request: Request
    upscaler: Upscaler
    bits: int | None = None
    """Bits per channel of the results; None keeps those of the source."""
    quality: int | None = None
    metadata: bool = True
    frames: Frames = "all"
    """Frames of animations and pages to enlarge."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of one source."""

    input: str
    output: str | None
    status: Status
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
    def end(self, job: Job, outcome: Outcome) -> None: ...


def run(plan: BatchPlan, settings: BatchSettings, progress: BatchProgress) -> Iterator[Outcome]:
    """Process the jobs of a batch and yield the outcome of each, in order."""
    for job in plan.skipped:
        outcome = _skipped(job, "it exists already")
        progress.end(job, outcome)
        yield outcome
    with open_claims() as claims:

        def load(job: Job) -> "_Loaded | Outcome":
            return _attempt(job, lambda: _claim(job, claims) or _load(job, settings))

        def enlarge(job: Job, loaded: "_Loaded | Outcome") -> Callable[[], Outcome]:
            if isinstance(loaded, Outcome):
                return lambda: loaded
            enlarged = _attempt(job, lambda: _enlarge(job, loaded, settings, progress))
            if isinstance(enlarged, Outcome):
                return lambda: enlarged
            return lambda: _attempt(job, lambda: _finish(job, loaded, enlarged, settings))

        for job, outcome in overlapped(plan.jobs, load, enlarge, _is_small):
            claims.release(job.output)
            progress.end(job, outcome)
            yield outcome


def _claim(job: Job, claims: ResultClaims) -> Outcome | None:
    """Claim the result of a job for this process; the outcome if another process works on it or has written it."""
    if job.output is None:
        return None
    if not claims.take(job.output):
        return _skipped(job, "another process works on it")
    return _skipped(job, "another process has written it") if job.changed else None


def _skipped(job: Job, reason: str) -> Outcome:
    return Outcome(input=job.source.name, output=str(job.output), status="skipped", reason=reason)


def _attempt(job: Job, step: Callable[[], Result]) -> Result | Outcome:
    """The result of a step, or the outcome of a job that fails: it must not stop the others."""
    try:
        return step()
    except BrokenPipeError:  # standard output is closed
        raise
    except SRNOError as error:
        return _failed(job, str(error))
    except Exception as error:
        return _failed(job, f"{type(error).__name__}: {error}")


def _is_small(job: Job) -> bool:
    """Whether a job may overlap with its neighbours: its samples and its result are held longer."""
    target = job.target
    return (
        target is not None
        and job.frames == 1
        and max(target.source[0] * target.source[1], target.whole[0] * target.whole[1]) <= LARGEST_OVERLAP_PIXELS
    )


@dataclass(frozen=True)
class _Loaded:
    """A job whose picture has been read."""

    picture: Picture
    sequence: FrameSequence | None
    target: Target
    format: Format
    bits: int
    seconds: float


@dataclass(frozen=True)
class _Enlarged:
    """A job that is computed: what is left to write, or what was written already."""

    result: Picture | Written
    seconds: float


def _load(job: Job, settings: BatchSettings) -> _Loaded:
    start = time.perf_counter()
    sequence = _open_sequence(job, settings)
    picture = read(_content(job), name=job.source.name) if sequence is None else sequence.first
    target = settings.request.target(picture.size)  # raises if the size is the reason for a missing format
    if job.format is None:
        raise SRNOError("its header is inconsistent")
    bits = settings.bits or picture.bits
    check_limits(job.format, *target.size, picture.channels, bits)
    return _Loaded(picture, sequence, target, job.format, bits, time.perf_counter() - start)


def _enlarge(job: Job, loaded: _Loaded, settings: BatchSettings, progress: BatchProgress) -> _Enlarged:
    start = time.perf_counter()
    progress.begin(job, loaded.target)
    if _stays_the_same(job, loaded.picture, loaded.sequence, loaded.target, settings):
        result = _copy(job)
    elif loaded.sequence is not None:
        result = _write_sequence(job, loaded.format, loaded.sequence, settings, progress)
    else:
        result = enlarge_picture(loaded.picture, loaded.target, settings.upscaler, loaded.bits, progress.advance)
    return _Enlarged(result, time.perf_counter() - start)


def _finish(job: Job, loaded: _Loaded, enlarged: _Enlarged, settings: BatchSettings) -> Outcome:
    start = time.perf_counter()
    picture, target, written = loaded.picture, loaded.target, enlarged.result
    if isinstance(written, Picture):
        written = write(
            written, _output(job), format=loaded.format, quality=settings.quality, metadata=settings.metadata
        )
        written = Written((*picture.notes, *written.notes))
    upscaler, used = settings.upscaler, uses_operator(target)
    return Outcome(
        input=job.source.name,
        output=str(job.output or "-"),
        status="written",
        input_size=picture.size,
        output_size=target.size,
        scale=target.scale,
        frames=None if loaded.sequence is None else loaded.sequence.count,
        model=upscaler.name,
        precision=upscaler.product_precision if used else None,
        integral=upscaler.integral_of((target.whole[1], target.whole[0])) if used else None,
        seconds=round(loaded.seconds + enlarged.seconds + time.perf_counter() - start, 3),
        peak_mb=peak_mb(),
        notes=(*_notes(job, settings, target, picture, loaded.sequence), *written.notes),
    )


def _open_sequence(job: Job, settings: BatchSettings) -> FrameSequence | None:
    """Open all frames or pages of a source, if they are wanted and the format of the result holds them."""
    if job.frames < 2 or settings.frames == "first" or job.format is None:
        return None
    sequence = open_frames(_content(job), name=job.source.name)
    return sequence if sequence is not None and CAPABILITIES[job.format].sequence == sequence.kind else None


def _write_sequence(
    job: Job, kind: Format, sequence: FrameSequence, settings: BatchSettings, progress: BatchProgress
) -> Written:
    frames = enlarge_frames(sequence, settings.request, settings.upscaler, settings.bits, progress.advance)
    written = write_frames(
        frames,
        _output(job),
        format=kind,
        like=sequence,
        pixels=total_pixels(sequence, settings.request),
        quality=settings.quality,
        metadata=settings.metadata,
    )
    return Written((*sequence.first.notes, *written.notes))


def _stays_the_same(
    job: Job, picture: Picture, sequence: FrameSequence | None, target: Target, settings: BatchSettings
) -> bool:
    """Whether the result is the source itself: encoding it again could only lose something."""
    if settings.quality is not None or not settings.metadata or settings.bits not in (None, picture.bits):
        return False
    whole = job.frames == 1 if sequence is None else settings.request.factors == (1, 1)
    return whole and job.format == picture.format and target.source == target.whole == target.size


def _copy(job: Job) -> Written:
    source = _content(job)
    with opened(_output(job)) as stream:
        stream.write(source.read_bytes() if isinstance(source, Path) else source)
    return Written(())


def _content(job: Job) -> Path | bytes:
    return job.source.path or job.data or b""


def _output(job: Job) -> WriteTarget:
    if job.output is None:
        return sys.stdout.buffer
    return job.output if job.overwrite else NewFile(job.output)


def _notes(
    job: Job, settings: BatchSettings, target: Target, picture: Picture, sequence: FrameSequence | None
) -> Iterator[str]:
    """Remarks on a replaced input, left-out frames and reduced sides."""
    if job.output and job.source.path and job.output.resolve() == job.source.path.resolve():
        yield "the input is replaced by the result"
    if job.frames > 1 and sequence is None:
        known = picture.format in CAPABILITIES and CAPABILITIES[picture.format].sequence is not None
        reason = f": {job.format} cannot hold them" if known and settings.frames == "all" else ""
        yield f"the first of {job.frames} frames or pages; the others are left out{reason}"
    sides = zip(("width", "height"), target.whole, target.source, strict=True)
    reduced = [side for side, new, old in sides if new < old]
    if reduced:
        which = f"{reduced[0]} " if len(reduced) == 1 else ""
        yield f"{which}reduced by a bicubic filter: the model only enlarges"


def _failed(job: Job, reason: str) -> Outcome:
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
