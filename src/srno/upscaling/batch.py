"""Process the pictures of a batch in order; a picture that fails does not stop the others."""

from collections.abc import Callable, Iterator

from srno.upscaling.claims import ResultClaims, open_claims
from srno.upscaling.jobs import BatchPlan, Job
from srno.upscaling.outcome import Outcome, skipped
from srno.upscaling.overlap import overlapped
from srno.upscaling.steps import BatchProgress, BatchSettings, Loaded, attempt, enlarge, finish, load

LARGEST_OVERLAP_PIXELS = 16_000_000
"""Larger pictures are read and written alone: they would take memory and, after Ctrl-C, seconds to finish."""


def run(plan: BatchPlan, settings: BatchSettings, progress: BatchProgress) -> Iterator[Outcome]:
    """Process the jobs of a batch and yield the outcome of each, in order."""
    for job in plan.skipped:
        outcome = skipped(job, "it exists already")
        progress.end(job, outcome)
        yield outcome
    with open_claims() as claims:

        def load_claimed(job: Job) -> Loaded | Outcome:
            return attempt(job, lambda: _claim(job, claims) or load(job, settings))

        def work(job: Job, loaded: Loaded | Outcome) -> Callable[[], Outcome]:
            if isinstance(loaded, Outcome):
                return lambda: loaded
            enlarged = attempt(job, lambda: enlarge(job, loaded, settings, progress))
            if isinstance(enlarged, Outcome):
                return lambda: enlarged
            return lambda: attempt(job, lambda: finish(job, loaded, enlarged, settings))

        for job, outcome in overlapped(plan.jobs, load_claimed, work, _is_small):
            claims.release(job.output)
            progress.end(job, outcome)
            yield outcome


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
