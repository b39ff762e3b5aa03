"""From sources to jobs: what will be written where, before any work starts."""

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
    """A source and what will become of it, by its head; nothing is known of a head that makes no sense."""

    source: Source
    data: bytes | None = None
    """What came by standard input."""
    target: Target | None = None
    format: Format | None = None
    output: Path | None = None
    """None is standard output."""
    frames: int = 1
    """Of the source; the first is meant."""


@dataclass(frozen=True)
class BatchPlan:
    """Everything that is to be done, and what is not."""

    jobs: tuple[Job, ...]
    skipped: tuple[Job, ...] = ()
    """Their results are there already."""
    left_out: tuple[Source, ...] = ()
    """They look like results of an earlier run."""


def plan_batch(
    sources: Iterable[Source], stdin: bytes | None, request: Request, naming: Naming, existing: Existing
) -> BatchPlan:
    """One job per source; refuses to touch what exists and to write one file twice."""
    sources = tuple(sources)
    left_out = dict.fromkeys(_earlier_results(sources, naming))
    jobs = [_job(source, stdin, request, naming) for source in sources if source not in left_out]
    shared = Counter(job.output for job in jobs)
    jobs = [_apart(job, stdin, request, naming) if shared[job.output] > 1 else job for job in jobs]
    if naming.stdout and len(jobs) > 1:
        raise SRNOError("--output -: several pictures cannot go to standard output; give a folder")
    _check_unique(jobs)
    there = [job for job in jobs if job.output and job.output.exists()]
    if there and existing == "refuse":
        which = f"{there[0].output} exists"
        if len(there) > 1:
            which = f"{len(there)} of {len(jobs)} results exist, such as {there[0].output}"
        raise SRNOError(f"{which}; choose --skip-existing or --overwrite")
    skipped = {job.source: job for job in there} if existing == "skip" else {}
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


def _apart(job: Job, stdin: bytes | None, request: Request, naming: Naming) -> Job:
    """Where sources would share a result, those with another suffix put it into the name: cat.gif → cat_gif.png."""
    relative = job.source.relative
    if job.output is None or job.output.suffix == relative.suffix:
        return job
    marked = replace(job.source, relative=relative.with_name(_marked(job.source) + relative.suffix))
    return replace(job, output=_job(marked, stdin, request, naming).output)


def _marked(source: Source) -> str:
    return f"{source.relative.stem}_{source.relative.suffix.removeprefix('.')}"


def _earlier_results(sources: tuple[Source, ...], naming: Naming) -> Iterable[Source]:
    """Sources that stand where results go and are called like the result of another source."""
    stems = {
        (source.path.parent, stem) for source in sources if source.path for stem in (source.path.stem, _marked(source))
    }
    for source in sources:
        if source.path is None or naming.stdout or naming.place(source).resolve() != source.path.parent.resolve():
            continue
        stem = naming.stem_behind(source.path.name)
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
