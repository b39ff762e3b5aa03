"""Process the pictures of a batch in order; a picture that fails does not stop the others."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, TypeAlias

from srno.errors import SRNOError
from srno.gigapixel.cluster import ClusterError
from srno.gigapixel.passes import Status as Passing
from srno.gigapixel.prepare import LargeSettings
from srno.imaging.formats import CAPABILITIES, Format, check_limits
from srno.imaging.frames import FrameSequence, open_frames, write_frames
from srno.imaging.picture import Picture
from srno.imaging.read import read
from srno.imaging.write import Written, opened, write
from srno.upscaling.animation import enlarge_frames, total_pixels
from srno.upscaling.enlarge import enlarge_picture
from srno.upscaling.jobs import BatchPlan, Job
from srno.upscaling.large import enlarge_large, is_large
from srno.upscaling.sizes import Request, Size, Target
from srno.upscaling.spread import spread
from srno.upscaling.upscaler import Upscaler

Status: TypeAlias = Literal["written", "skipped", "failed"]
Frames: TypeAlias = Literal["all", "first"]


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
    large: LargeSettings = field(default_factory=LargeSettings)
    """How pictures are made that do not fit into memory, and tiled formats."""


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
    frames: int | None = None
    """Frames or pages of the result; None if it is one picture."""
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
    def stage(self, status: Passing) -> None: ...
    def print(self, text: str) -> None: ...
    def end(self, job: Job, outcome: Outcome) -> None: ...


def run(plan: BatchPlan, settings: BatchSettings, progress: BatchProgress) -> Iterator[Outcome]:
    """Process the jobs of a batch and yield the outcome of each."""
    for job in plan.skipped:
        outcome = Outcome(input=job.source.name, output=str(job.output), status="skipped")
        progress.end(job, outcome)
        yield outcome
    elsewhere = _whole_jobs(plan, settings)
    if settings.large.cluster is not None and elsewhere:
        for job, outcome in spread(elsewhere, attempt_remotely, _without_cluster(settings), settings.large.cluster):
            outcome = replace(outcome, input=job.source.name, output=outcome.output and str(job.output))
            progress.end(job, outcome)
            yield outcome
    for job in plan.jobs:
        if job not in elsewhere:
            outcome = attempt(job, settings, progress)
            progress.end(job, outcome)
            yield outcome


def attempt(job: Job, settings: BatchSettings, progress: BatchProgress) -> Outcome:
    """Process one picture; only what concerns all of them is raised."""
    try:
        return _do(job, settings, progress)
    except (BrokenPipeError, ClusterError):  # standard output is closed, or no worker is left
        raise
    except SRNOError as error:
        return _failed(job, str(error))
    except Exception as error:  # no error of one picture may stop the others
        return _failed(job, f"{type(error).__name__}: {error}")


def attempt_remotely(settings: BatchSettings, job: Job) -> Outcome:
    """Process one picture on a worker."""
    return attempt(job, settings, NoProgress())


class NoProgress:
    """Shows nothing."""

    def begin(self, job: Job, target: Target) -> None: ...
    def advance(self, share: float) -> None: ...
    def stage(self, status: Passing) -> None: ...
    def print(self, text: str) -> None: ...
    def end(self, job: Job, outcome: Outcome) -> None: ...


def _whole_jobs(plan: BatchPlan, settings: BatchSettings) -> list[Job]:
    """Jobs that a worker can do as a whole: from file to file, and not so large that they are cut."""
    if settings.large.cluster is None:
        return []
    with_files = [job for job in plan.jobs if job.source.path is not None and job.output is not None]
    return [job for job in with_files if not _is_cut(job, settings)]


def _is_cut(job: Job, settings: BatchSettings) -> bool:
    try:
        return is_large(job, settings.upscaler, settings.large)
    except SRNOError:  # reported when its turn comes
        return True


def _without_cluster(settings: BatchSettings) -> BatchSettings:
    return replace(settings, large=replace(settings.large, cluster=None))


def _do(job: Job, settings: BatchSettings, progress: BatchProgress) -> Outcome:
    start = time.perf_counter()
    if is_large(job, settings.upscaler, settings.large):
        return _do_large(job, settings, progress, start)
    sequence = _open_sequence(job, settings)
    picture = read(_content(job), name=job.source.name) if sequence is None else sequence.first
    target = settings.request.target(picture.size)  # raises if the size is the reason for a missing format
    if job.format is None:
        raise SRNOError("its header is inconsistent")
    bits = settings.bits or picture.bits
    check_limits(job.format, *target.size, picture.channels, bits)
    if job.output is not None:
        _make_folder(job.output.parent)
    progress.begin(job, target)
    if _stays_the_same(job, picture, sequence, target, settings):
        written = _copy(job)
    elif sequence is not None:
        written = _write_sequence(job, job.format, sequence, settings, progress)
    else:
        large = enlarge_picture(picture, target, settings.upscaler, bits, progress.advance)
        written = write(large, _output(job), format=job.format, quality=settings.quality, metadata=settings.metadata)
        written = Written((*picture.notes, *written.notes))
    return Outcome(
        input=job.source.name,
        output=str(job.output or "-"),
        status="written",
        input_size=picture.size,
        output_size=target.size,
        scale=target.scale,
        frames=None if sequence is None else sequence.count,
        model=settings.upscaler.name,
        seconds=round(time.perf_counter() - start, 3),
        peak_mb=peak_mb(),
        notes=(*_notes(job, settings, target, picture, sequence), *written.notes),
    )


def _do_large(job: Job, settings: BatchSettings, progress: BatchProgress, start: float) -> Outcome:
    """Make a picture tile by tile."""
    if job.output is not None:
        _make_folder(job.output.parent)
    if job.target is not None:
        progress.begin(job, job.target)
    target, notes = enlarge_large(
        job,
        settings.upscaler,
        settings.large,
        bits=settings.bits,
        quality=settings.quality,
        metadata=settings.metadata,
        report=progress.stage,
        tell=progress.print,
    )
    first = (f"the first of {job.frames} frames or pages; the others are left out",) if job.frames > 1 else ()
    return Outcome(
        input=job.source.name,
        output=str(job.output),
        status="written",
        input_size=target.source,
        output_size=target.size,
        scale=target.scale,
        model=settings.upscaler.name,
        seconds=round(time.perf_counter() - start, 3),
        peak_mb=peak_mb(),
        notes=(*first, *notes),
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


def _output(job: Job) -> Path | BinaryIO:
    return job.output or sys.stdout.buffer


def _notes(
    job: Job, settings: BatchSettings, target: Target, picture: Picture, sequence: FrameSequence | None
) -> Iterator[str]:
    """Remarks on a replaced input, the format of animations, left-out frames and reduced sides."""
    if job.output and job.source.path and job.output.resolve() == job.source.path.resolve():
        yield "the input is replaced by the result"
    if sequence is not None and job.format == "PNG" != sequence.format:
        yield f"{sequence.count} frames written as an animated PNG; -f {sequence.format.lower()} keeps the format"
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
