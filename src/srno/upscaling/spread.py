"""Spread the pictures of a batch over the workers of a cluster, each whole."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from srno.gigapixel.cluster import Cluster
from srno.upscaling.jobs import Job


def spread(
    jobs: list[Job], work: Callable[[Any, Job], Any], settings: Any, cluster: Cluster
) -> Iterator[tuple[Job, Any]]:
    """Yield every job and its result, work(settings, job) on some worker, in the order in which they are ready.

    Workers need the same files under the same names.
    """
    cluster.check_workers()
    shared = cluster.share(settings)
    futures = {cluster.client.submit(work, shared, _absolute(job), pure=False): job for job in jobs}
    for future, result in cluster.completed(list(futures)):
        yield futures[future], result


def _absolute(job: Job) -> Job:
    """The same job wherever a worker runs."""
    source = replace(job.source, path=None if job.source.path is None else _resolved(job.source.path))
    return replace(job, source=source, output=None if job.output is None else _resolved(job.output))


def _resolved(path: Path) -> Path:
    return Path.cwd() / path
