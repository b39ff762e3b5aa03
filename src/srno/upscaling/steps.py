"""The steps of one picture of a batch: load, enlarge, finish. Each may run in a separate thread."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, TypeVar, TypeVarTuple

from srno.errors import SRNOError
from srno.gigapixel.cluster import ClusterError
from srno.gigapixel.prepare import LargeSettings
from srno.imaging.formats import CAPABILITIES, Format, capability_of, check_limits, is_zarr
from srno.imaging.frames import FrameSequence, open_frames, write_frames
from srno.imaging.picture import Compression, Picture
from srno.imaging.read import read
from srno.imaging.windows import read_zarr
from srno.imaging.write import NewFile, WriteTarget, Written, opened, write
from srno.upscaling.animation import enlarge_frames, total_pixels
from srno.upscaling.enlarge import enlarge_picture, uses_operator
from srno.upscaling.jobs import Job
from srno.upscaling.large import enlarge_large, is_large
from srno.upscaling.naming import Frames
from srno.upscaling.outcome import BatchProgress, NoProgress, Outcome, failed, peak_mb
from srno.upscaling.room import check_room_now
from srno.upscaling.sizes import Request, Target, rows_first
from srno.upscaling.upscaler import Upscaler

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


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


def attempt(step: Callable[[Job, *Arguments], Result], job: Job, *arguments: *Arguments) -> Result | Outcome:
    """The result of a step of a job, or the outcome if the job fails: it must not stop the others."""
    try:
        return step(job, *arguments)
    except (BrokenPipeError, ClusterError):  # standard output is closed, or no worker is left
        raise
    except SRNOError as error:
        return failed(job, str(error))
    except Exception as error:
        return failed(job, f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class Loaded:
    """A job whose picture has been read."""

    picture: Picture
    sequence: FrameSequence | None
    target: Target
    format: Format
    bits: int
    seconds: float


@dataclass(frozen=True)
class Enlarged:
    """A job that is computed: what is left to write, or what was written already."""

    result: Picture | Written
    seconds: float


class TileByTile:
    """A job whose picture is read and written in tiles."""


Loading: TypeAlias = Loaded | TileByTile | Outcome
"""What loading a job gives: an outcome if there is nothing left to do."""


def process(settings: BatchSettings, job: Job) -> Outcome:
    """All steps of one picture, without a display: what a worker of a cluster does."""
    return compute(settings, NoProgress(), job, attempt(load, job, settings))()


def compute(settings: BatchSettings, progress: BatchProgress, job: Job, loaded: Loading) -> Callable[[], Outcome]:
    """Enlarge a picture that is loaded; return the function that finishes it."""
    if isinstance(loaded, Outcome):
        return lambda: loaded
    if isinstance(loaded, TileByTile):
        outcome = attempt(make_in_tiles, job, settings, progress)
        return lambda: outcome
    enlarged = attempt(enlarge, job, loaded, settings, progress)
    if isinstance(enlarged, Outcome):
        return lambda: enlarged
    return lambda: attempt(finish, job, loaded, enlarged, settings)


def load(job: Job, settings: BatchSettings) -> Loaded | TileByTile:
    """Read a picture, or leave it in its file if it is made tile by tile."""
    start = time.perf_counter()
    if is_large(job, settings.upscaler, settings.large):
        return TileByTile()
    check_room_now(job, settings.bits, settings.quality)
    sequence = _open_sequence(job, settings)
    picture = _read(job) if sequence is None else sequence.first
    target = settings.request.target(picture.size)  # raises if the size is the reason for a missing format
    if job.format is None:
        raise SRNOError("its header is inconsistent")
    bits = settings.bits or picture.bits
    check_limits(job.format, *target.size, picture.channels, bits)
    return Loaded(picture, sequence, target, job.format, bits, time.perf_counter() - start)


def enlarge(job: Job, loaded: Loaded, settings: BatchSettings, progress: BatchProgress) -> Enlarged:
    start = time.perf_counter()
    progress.begin(job, loaded.target)
    if _stays_the_same(job, loaded.picture, loaded.sequence, loaded.target, settings):
        result = _copy(job)
    elif loaded.sequence is not None:
        result = _write_sequence(job, loaded.format, loaded.sequence, settings, progress)
    else:
        result = enlarge_picture(loaded.picture, loaded.target, settings.upscaler, loaded.bits, progress.advance)
    return Enlarged(result, time.perf_counter() - start)


def finish(job: Job, loaded: Loaded, enlarged: Enlarged, settings: BatchSettings) -> Outcome:
    start = time.perf_counter()
    picture, target, written = loaded.picture, loaded.target, enlarged.result
    if isinstance(written, Picture):
        written = write(
            written, _output(job), format=loaded.format, quality=settings.quality, metadata=settings.metadata
        )
        written = Written((*picture.notes, *written.notes))
    outcome = _written(job, settings, target, picture.compression, uses_operator(target))
    return replace(
        outcome,
        frames=None if loaded.sequence is None else loaded.sequence.count,
        seconds=round(loaded.seconds + enlarged.seconds + time.perf_counter() - start, 3),
        notes=(*_notes(job, settings, target, picture, loaded.sequence), *written.notes),
    )


def make_in_tiles(job: Job, settings: BatchSettings, progress: BatchProgress) -> Outcome:
    """Make a picture tile by tile, from file to file."""
    start = time.perf_counter()
    if job.target is not None:
        progress.begin(job, job.target)
    target, compression, notes = enlarge_large(
        job,
        settings.upscaler,
        settings.large,
        bits=settings.bits,
        quality=settings.quality,
        metadata=settings.metadata,
        report=progress.stage,
        print_line=progress.print,
    )
    first = (f"the first of {job.frames} frames or pages; the others are left out",) if job.frames > 1 else ()
    outcome = _written(job, settings, target, compression, used=True)
    return replace(outcome, seconds=round(time.perf_counter() - start, 3), notes=(*first, *notes))


def _written(job: Job, settings: BatchSettings, target: Target, compression: Compression | None, used: bool) -> Outcome:
    """The outcome of a job whose result is written; `used` is whether the operator was evaluated."""
    upscaler = settings.upscaler
    return Outcome(
        input=job.source.name,
        output=str(job.output or "-"),
        status="written",
        input_size=target.source,
        output_size=target.size,
        scale=target.scale,
        model=upscaler.name,
        precision=upscaler.product_precision if used else None,
        integral=upscaler.integral_of(rows_first(target.whole)) if used else None,
        clean=upscaler.for_picture(compression).strength if used else None,
        compression=None if compression is None else str(compression),
        peak_mb=peak_mb(),
    )


def _open_sequence(job: Job, settings: BatchSettings) -> FrameSequence | None:
    """Open all frames or pages of a source, if they are wanted and the format of the result holds them."""
    if job.frames < 2 or settings.frames == "first" or job.format is None:
        return None
    sequence = open_frames(job.content, name=job.source.name)
    return sequence if sequence is not None and capability_of(job.format).sequence == sequence.kind else None


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
    with opened(_output(job)) as stream:
        stream.write(job.content.read_bytes() if isinstance(job.content, Path) else job.content)
    return Written(())


def _read(job: Job) -> Picture:
    path = job.source.path
    return read_zarr(path) if path is not None and is_zarr(path) else read(job.content, name=job.source.name)


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
