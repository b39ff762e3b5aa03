"""A Dask cluster that runs already, or one that is started here: its workers are checked, its failures explained."""

import math
import multiprocessing
import re
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from srno._version import __version__
from srno.errors import SRNOError, require
from srno.gigapixel.budget import LARGEST_SIDE, STORED_TILE
from srno.machine import parse_memory

Result = TypeVar("Result")

TILES_PER_WORKER = 4
"""Tiles for each worker, at least, so that none waits long for the others."""
CONNECT_SECONDS = 10
SILENT = 60
"""A level above all of Python's: what goes wrong is reported in one line."""
DEFAULT_WORKER_MEMORY = 2 << 30
"""Bytes of a worker that has no limit."""
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.tick.limit": "60s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.client.scheduler-info-interval": "60s",
    "distributed.scheduler.active-memory-manager.start": False,
}
"""Dask's settings for `local:N`: what it observes of itself, up to a hundred times a second, takes time from tiles."""
SYNC_SECONDS = 60
"""Seconds between Dask's looks at its own workers, which the command does not need."""
PRELOADED = ["distributed", "srno.upscaling.steps"]
"""Imported once, in a process that workers are forked from; with torch, the import is most of a worker's start."""
OUT_OF_MEMORY = "workers died again and again, most likely out of memory; give them more, or --memory"
ADVICE = "what is done is kept; give the same command with --resume"


class ClusterError(SRNOError):
    """The cluster failed, not a picture."""


class DeadWorkersError(ClusterError):
    """Several workers died on the same task."""


@dataclass(frozen=True, eq=False)
class Cluster:
    """A running scheduler and its workers."""

    client: Any
    address: str

    @property
    def workers(self) -> dict[str, Any]:
        """The workers by their addresses."""
        return self.client.scheduler_info(n_workers=-1)["workers"]

    def worker_memory(self) -> int:
        """Bytes of the smallest worker."""
        return min((worker.get("memory_limit") or DEFAULT_WORKER_MEMORY for worker in self.workers.values()), default=0)

    def memory_limit(self, memory: str | int | None) -> int:
        """Bytes that a worker may use: what the user gives, or its own limit."""
        return self.worker_memory() if memory is None else min(parse_memory(memory), self.worker_memory())

    def largest_side(self, size: tuple[int, int]) -> int:
        """The largest tile side with which every worker has several tiles."""
        threads = sum(worker["nthreads"] for worker in self.workers.values())
        side = LARGEST_SIDE
        while side > STORED_TILE and math.prod(-(-n // side) for n in size) < TILES_PER_WORKER * threads:
            side //= 2
        return side

    def check_workers(self) -> None:
        """Refuse workers with another version of srno or with several threads, which would share open files."""
        for worker, version in self.guarded(lambda: self.client.run(worker_version)).items():
            if version != __version__:
                raise ClusterError(f"worker {worker} has srno {version}, not {__version__}; install the same version")
        if any(worker["nthreads"] > 1 for worker in self.workers.values()):
            raise ClusterError(f"--cluster {self.address}: start one worker per core, each with --nthreads 1")

    def share(self, value: Any) -> Any:
        """Hand a value to the workers; a future that the scheduler can compute again if its holders die."""
        return self.client.submit(_same, value, pure=False)

    def completed(self, futures: list[Any]) -> Iterator[tuple[Any, Callable[[], Any]]]:
        """Yield futures as they are ready, each with the function that returns its result or raises its error."""
        for future in require("distributed", "cluster").as_completed(futures, loop=self.client.loop):
            yield future, partial(self.guarded, future.result)
            future.release()

    def guarded(self, work: Callable[[], Result]) -> Result:
        """Call `work` and say in one line what went wrong with the cluster."""
        try:
            return work()
        except SRNOError:
            raise
        except Exception as error:
            kind = DeadWorkersError if type(error).__name__ == "KilledWorker" else ClusterError
            raise kind(f"--cluster {self.address}: {_explain(error)}; {ADVICE}") from None


@contextmanager
def open_cluster(address: str) -> Generator[Cluster]:
    """Connect to a scheduler, or start one here for `local:N`."""
    distributed = require("distributed", "cluster")
    match = re.fullmatch(r"local:([1-9]\d{0,3})", address)
    if match is None and not re.fullmatch(r"\w+://.+", address):
        raise ClusterError(f"--cluster {address!r}: give tcp://HOST:PORT of a scheduler, or local:N for N workers here")
    silent = require("distributed.utils", "cluster").silence_logging_cmgr(SILENT)  # a lost scheduler is one line, too
    with silent, _start(int(match[1])) if match else nullcontext() as started:
        try:
            client = distributed.Client(started or address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError):
            raise ClusterError(
                f"--cluster {address}: no scheduler answers; start one with `dask scheduler` and `dask worker`"
            ) from None
        cluster = Cluster(client, address)
        try:
            if not cluster.workers:
                raise ClusterError(f"--cluster {address}: the scheduler has no workers; start some with `dask worker`")
            yield cluster
        finally:
            with suppress(Exception):
                client.close()


@contextmanager
def _start(workers: int) -> Generator[Any]:
    """A scheduler in this process and workers in processes of their own, until the context ends."""
    settings: dict[str, Any] = dict(QUIET)
    if sys.platform == "linux":  # elsewhere the libraries do not survive a fork
        settings["distributed.worker.multiprocessing-method"] = "forkserver"
    with require("dask", "cluster").config.set(settings):  # to the end: a worker that dies is started again
        if sys.platform == "linux":
            require("distributed.utils", "cluster").get_mp_context()  # Dask sets a list of its own, once
            multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
        with require("distributed", "cluster").LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            scheduler_kwargs={"dashboard": False, "dashboard_address": ":0"},  # any port: others may run here too
            scheduler_sync_interval=SYNC_SECONDS,
            silence_logs=SILENT,
        ) as started:
            yield started


# What workers run


def worker_version() -> str:
    """The version of srno on a worker."""
    return __version__


def _same(value: Result) -> Result:
    return value


def _explain(error: Exception) -> str:
    """A reason in one line."""
    name = type(error).__name__
    if name == "KilledWorker":
        return OUT_OF_MEMORY
    if name in ("CancelledError", "FutureCancelledError", "CommClosedError", "TimeoutError"):
        return "the connection to the scheduler was lost"
    return f"{name}: {error}"
