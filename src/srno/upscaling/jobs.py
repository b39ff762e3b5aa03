"""Plan a batch: which source is written where, before any work starts."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from srno.errors import SRNOError
from srno.imaging.formats import Format
from srno.imaging.head import read_head
from srno.upscaling.naming import Naming
from srno.upscaling.sizes import Request, Target
from srno.upscaling.sources import Source

Existing: TypeAlias = Literal["refuse", "skip", "overwrite"]


@dataclass(frozen=True)
class Job:
    """A source and its planned output, from the file's header; the plan is empty if the header is invalid."""

    source: Source
    data: bytes | None = None
    """Content of standard input."""
    target: Target | None = None
    format: Format | None = None
    output: Path | None = None
    """None is standard output."""
    frames: int = 1
    """Number of frames or pages of the source; the first is used."""


@dataclass(frozen=True)
class BatchPlan:
    """The jobs of a batch, and the sources that need none."""

    jobs: tuple[Job, ...]
    skipped: tuple[Job, ...] = ()
    """Jobs whose results exist."""
    left_out: tuple[Source, ...] = ()
    """Sources that look like results of an earlier run."""


def plan_batch(
    sources: Iterable[Source], stdin: bytes | None, request: Request, naming: Naming, existing: Existing
) -> BatchPlan:
    """Plan one job per source; refuse to replace existing files, unless allowed, and to write one file twice."""
    sources = tuple(sources)
    left_out = dict.fromkeys(_earlier_results(sources, naming))
    jobs = [_job(source, stdin, request, naming) for source in sources if source not in left_out]
    shared = Counter(job.output for job in jobs)
    jobs = [_disambiguate(job, stdin, request, naming) if shared[job.output] > 1 else job for job in jobs]
    if naming.stdout and len(jobs) > 1:
        raise SRNOError("--output -: several pictures cannot go to standard output; give a folder")
    _check_unique(jobs)
    finished = [job for job in jobs if job.output and job.output.exists()]
    if finished and existing == "refuse":
        which = f"{finished[0].output} exists"
        if len(finished) > 1:
            which = f"{len(finished)} of {len(jobs)} results exist, such as {finished[0].output}"
        raise SRNOError(f"{which}; choose --skip-existing or --overwrite")
    skipped = {job.source: job for job in finished} if existing == "skip" else {}
    waiting = tuple(job for job in jobs if job.source not in skipped)
    return BatchPlan(waiting, tuple(skipped.values()), tuple(left_out))


def _job(source: Source, stdin: bytes | None, request: Request, naming: Naming) -> Job:
    data = stdin if source.path is None else None
    head = read_head(source.path or data or b"")
    if head is None:
        return Job(source, data)
    try:
        target = request.target(head.size)
    except SRNOError:
        return Job(source, data)
    output = naming.output(source, head.format, target)
    return Job(source, data, target, naming.format_of(head.format), output, head.frames)


def _disambiguate(job: Job, stdin: bytes | None, request: Request, naming: Naming) -> Job:
    """Add the source's suffix to the name of a shared result if the format changes: cat.gif → cat_gif.png."""
    relative = job.source.relative
    if job.output is None or job.output.suffix == relative.suffix:
        return job
    marked = replace(job.source, relative=relative.with_name(_stem_with_suffix(job.source) + relative.suffix))
    return replace(job, output=_job(marked, stdin, request, naming).output)


def _stem_with_suffix(source: Source) -> str:
    return f"{source.relative.stem}_{source.relative.suffix.removeprefix('.')}"


def _earlier_results(sources: tuple[Source, ...], naming: Naming) -> Iterable[Source]:
    """Sources that lie in the folder of results and are named like the result of another source."""
    stems = {
        (source.path.parent, stem)
        for source in sources
        if source.path
        for stem in (source.path.stem, _stem_with_suffix(source))
    }
    for source in sources:
        if source.path is None or naming.stdout or naming.folder_of(source).resolve() != source.path.parent.resolve():
            continue
        stem = naming.source_stem(source.path.name)
        if stem is not None and stem != source.path.stem and (source.path.parent, stem) in stems:
            yield source


def _check_unique(jobs: list[Job]) -> None:
    seen: dict[Path, Source] = {}
    for job in jobs:
        if job.output is None:
            continue
        other = seen.setdefault(job.output, job.source)
        if other is not job.source:
            both = f"{other.name} and {job.source.name}"
            raise SRNOError(f"{both} would both become {job.output}; enlarge them in two runs, to different folders")
