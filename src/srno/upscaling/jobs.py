"""Plan a batch: which source is written where, before any work starts."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from srno.errors import SRNOError
from srno.imaging.formats import READ_SUFFIXES, Format
from srno.imaging.head import read_head
from srno.upscaling.naming import Naming
from srno.upscaling.sizes import Request, Target
from srno.upscaling.sources import Source

Existing: TypeAlias = Literal["refuse", "skip", "overwrite"]


FileState: TypeAlias = tuple[int, int, int]
"""Number, size and time of a file; they change when it is replaced."""


def file_state(path: Path) -> FileState | None:
    """The state of a file; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


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
    """Number of frames or pages of the source."""
    kept_frames: int = 1
    """Number of frames or pages of the result."""
    kind: Format | None = None
    """Format of the source."""
    channels: int = 3
    bits: int = 8
    """Per channel of the source, as far as its header tells."""
    overwrite: bool = False
    """Whether a file of the output's name is replaced."""
    before: FileState | None = None
    """The file of the output's name when the batch was planned; None if there was none."""

    @property
    def content(self) -> Path | bytes:
        """What to read: a file, or the content of standard input."""
        return self.source.path or self.data or b""

    @property
    def changed(self) -> bool:
        """Whether another process has written the output since the batch was planned."""
        return self.output is not None and file_state(self.output) != self.before


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
    states = {job.source: file_state(job.output) for job in finished if job.output}
    waiting = tuple(
        replace(job, overwrite=existing == "overwrite", before=states.get(job.source))
        for job in jobs
        if job.source not in skipped
    )
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
    output = naming.output(source, head.format, target, head.frames)
    return Job(
        source,
        data,
        target,
        naming.format_of(head.format, head.frames),
        output,
        head.frames,
        kept_frames=naming.kept_frames(head.format, head.frames),
        kind=head.format,
        channels=head.channels,
        bits=head.bits,
    )


def _disambiguate(job: Job, stdin: bytes | None, request: Request, naming: Naming) -> Job:
    """Add the source's suffix to the name of a shared result if the format changes: cat.gif → cat_gif.png."""
    relative = job.source.relative
    if job.output is None or job.output.suffix == relative.suffix:
        return job
    marked = replace(job.source, relative=relative.with_name(_stems(relative)[1] + relative.suffix))
    return replace(job, output=_job(marked, stdin, request, naming).output)


def _earlier_results(sources: tuple[Source, ...], naming: Naming) -> Iterable[Source]:
    """Sources that lie in the folder of results and are named like the result of another source.

    In a listed folder, that of any picture there: one without a suffix, or of another format, is not listed itself.
    """
    stems = {(source.path.parent, stem) for source in sources if source.path for stem in _stems(source.path)}
    folders = {source.path.parent for source in sources if source.path and source.listed}
    listed = {source.path for source in sources}
    others = {folder: _unlisted_stems(folder, listed) for folder in folders}
    for source in sources:
        if source.path is None or naming.stdout or naming.folder_of(source).resolve() != source.path.parent.resolve():
            continue
        stem = naming.source_stem(source.path.name)
        if stem is None or stem == source.path.stem:
            continue
        if (source.path.parent, stem) in stems or (
            source.listed and any(_may_be_picture(path) for path in others[source.path.parent].get(stem, ()))
        ):
            yield source


def _stems(path: Path) -> tuple[str, str]:
    """The stems that the name of a result may have: cat, and cat_gif if another source has the same result."""
    return path.stem, f"{path.stem}_{path.suffix.removeprefix('.')}"


def _unlisted_stems(folder: Path, listed: set[Path | None]) -> dict[str, list[Path]]:
    """The files of a folder that are no sources, by the stems that their results would have."""
    found: dict[str, list[Path]] = {}
    for path in folder.iterdir():
        if path not in listed and path.is_file():
            for stem in (*_stems(path), path.name):
                found.setdefault(stem, []).append(path)
    return found


def _may_be_picture(path: Path) -> bool:
    return path.suffix.lower() in READ_SUFFIXES or read_head(path) is not None


def _check_unique(jobs: list[Job]) -> None:
    seen: dict[Path, Source] = {}
    for job in jobs:
        if job.output is None:
            continue
        other = seen.setdefault(job.output, job.source)
        if other is not job.source:
            both = f"{other.name} and {job.source.name}"
            raise SRNOError(f"{both} would both become {job.output}; enlarge them in two runs, to different folders")
