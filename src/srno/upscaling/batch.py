"""Process the pictures of a batch in order; a picture that fails does not stop the others."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypeVar

from srno.errors import SRNOError
from srno.files import ResultClaims, open_claims
from srno.gigapixel.cluster import OUT_OF_MEMORY, Cluster, DeadWorkersError
from srno.gigapixel.passes import Status
from srno.progress import Progress
from srno.upscaling.jobs import BatchPlan, Existing, Job, plan_batch
from srno.upscaling.large import is_large
from srno.upscaling.naming import parse_output
from srno.upscaling.outcome import BatchProgress, NoProgress, Outcome, failed, skipped
from srno.upscaling.room import check_outputs
from srno.upscaling.sources import Source
from srno.upscaling.steps import BatchSettings, Loading, attempt, compute, load, process

Item = TypeVar("Item")
Loaded = TypeVar("Loaded")
Result = TypeVar("Result")

LARGEST_OVERLAP_PIXELS = 16_000_000
"""Larger pictures are read and written alone: they would take memory and, after Ctrl-C, seconds to finish."""


def run(plan: BatchPlan, settings: BatchSettings, progress: BatchProgress) -> Iterator[Outcome]:
    """Process the jobs of a batch and yield the outcome of each: in order, but for those that a cluster does."""
    for job in plan.skipped:
        outcome = skipped(job, "it exists already")
        progress.end(job, outcome)
        yield outcome
    with open_claims() as claims:
        remote = [job for job in plan.jobs if _is_remote(job, settings)]
        here = [job for job in plan.jobs if job not in remote]
        done = overlapped(here, partial(_load, settings, claims), partial(compute, settings, progress), _is_small)
        for job, outcome in chain(_run_on_cluster(remote, settings, claims), done):
            claims.release(job.output)
            progress.end(job, outcome)
            yield outcome


def _load(settings: BatchSettings, claims: ResultClaims, job: Job) -> Loading:
    """Read a picture, unless its result is claimed by another process."""
    return attempt(_claim, job, claims) or attempt(load, job, settings)


def _run_on_cluster(jobs: list[Job], settings: BatchSettings, claims: ResultClaims) -> Iterator[tuple[Job, Outcome]]:
    """Spread whole pictures over the workers."""
    cluster, free = settings.large.cluster, list[Job]()
    if cluster is None or not jobs:
        return
    for job in jobs:
        outcome = attempt(_claim, job, claims)
        if outcome is None:
            free.append(job)
        else:
            yield job, outcome
    on_a_worker = replace(settings, large=replace(settings.large, cluster=None))
    for job, outcome in spread(free, process, on_a_worker, cluster):
        yield job, replace(outcome, input=job.source.name, output=outcome.output and str(job.output))


def _is_remote(job: Job, settings: BatchSettings) -> bool:
    """Whether a worker does a job as a whole: from file to file, and not so large that it is cut."""
    if settings.large.cluster is None or job.source.path is None or job.output is None:
        return False
    try:
        return not is_large(job, settings.upscaler, settings.large)
    except SRNOError:  # reported when its turn comes
        return False


def _claim(job: Job, claims: ResultClaims) -> Outcome | None:
    """Claim the result of a job for this process; the outcome if another process works on it or has written it."""
    if job.output is None:
        return None
    if not claims.take(job.output):
        return skipped(job, "another process works on it")
    return skipped(job, "another process has written it") if job.changed else None


def _is_small(job: Job) -> bool:
    """Whether a job may overlap with its neighbours: its samples and its result are held longer."""
    target = job.target
    return (
        target is not None
        and job.frames == 1
        and max(target.source[0] * target.source[1], target.whole[0] * target.whole[1]) <= LARGEST_OVERLAP_PIXELS
    )


def overlapped(
    items: Sequence[Item],
    load: Callable[[Item], Loaded],
    work: Callable[[Item, Loaded], Callable[[], Result]],
    small: Callable[[Item], bool],
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, in order: the function that `work` returns, called, is the result.

    `load` runs one item ahead of `work` and the returned function one item behind, each in a separate thread, so at
    most three items are in memory. Items that are not `small` overlap with nothing: they are loaded and finished in
    the calling thread, where Ctrl-C stops them at once.
    """
    with ThreadPoolExecutor(1, "srno-read") as reader, ThreadPoolExecutor(1, "srno-write") as writer:
        ahead: Future[Loaded] | None = None
        behind: tuple[Item, Future[Result]] | None = None
        for item, following in zip_longest(items, items[1:]):
            loaded = load(item) if ahead is None else ahead.result()
            overlaps = following is not None and small(item) and small(following)
            ahead = reader.submit(load, following) if overlaps and following is not None else None
            try:
                finish = work(item, loaded)
            except BaseException:
                if behind is not None:  # it is finished all the same
                    yield behind[0], behind[1].result()
                raise
            del loaded
            if behind is not None:
                yield behind[0], behind[1].result()
            behind = (item, writer.submit(finish)) if overlaps else None
            if behind is None:
                yield item, finish()
        # the last item has no following one, so nothing is left behind


def spread(
    jobs: list[Job], work: Callable[[Any, Job], Outcome], settings: Any, cluster: Cluster
) -> Iterator[tuple[Job, Outcome]]:
    """Yield every job and its outcome, work(settings, job) on some worker, in the order in which they are ready.

    Workers need the same files under the same names. A picture on which workers die has failed, and does not stop the
    others. Dask blames all tasks that a dead worker had, also those that waited, so suspects are tried again alone.
    """
    cluster.check_workers()
    shared = cluster.share(settings)

    def submit(job: Job) -> Any:
        return cluster.client.submit(work, shared, _absolute(job), pure=False)

    futures, suspects = {submit(job): job for job in jobs}, list[Job]()
    for future, result in cluster.completed(list(futures)):
        try:
            outcome = result()
        except DeadWorkersError:
            suspects.append(futures[future])
        else:
            yield futures[future], outcome
    for job in suspects:
        try:
            outcome = failed(job, OUT_OF_MEMORY) if len(suspects) == 1 else cluster.guarded(submit(job).result)
        except DeadWorkersError:
            outcome = failed(job, OUT_OF_MEMORY)
        yield job, outcome


def _absolute(job: Job) -> Job:
    """The same job on any worker."""
    source = replace(job.source, path=None if job.source.path is None else _resolved(job.source.path))
    return replace(job, source=source, output=None if job.output is None else _resolved(job.output))


def _resolved(path: Path) -> Path:
    return Path.cwd() / path


def upscale_file(
    source: Path | bytes, output: str, settings: BatchSettings, *, overwrite: bool, progress: Progress | None
) -> Path:
    """Enlarge a file, or the content of one, into `output`: a file, a folder or a template, as for the command."""
    origin = Source(None, Path("picture")) if isinstance(source, bytes) else Source(source, Path(source.name))
    data = source if isinstance(source, bytes) else None
    naming = parse_output(output, None, settings.bits, [origin.name])
    if naming.stdout:
        raise SRNOError(f"output {output!r}: give a file or a folder")
    existing: Existing = "overwrite" if overwrite else "skip"
    plan = plan_batch([origin], data, settings.request, naming, existing)
    if plan.skipped:
        raise SRNOError(f"output {plan.skipped[0].output} exists; give overwrite=True to replace it")
    check_outputs(plan.jobs, settings.bits, settings.quality)
    (outcome,) = run(plan, settings, _Shares(progress))
    if outcome.status != "written" or outcome.output is None:
        raise SRNOError(f"{outcome.input}: {outcome.error or outcome.reason}")
    return Path(outcome.output)


class _Shares(NoProgress):
    """Passes the progress of one picture on."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress

    def advance(self, share: float) -> None:
        if self.progress is not None:
            self.progress(share)

    def stage(self, status: Status) -> None:
        self.advance(status.share)
