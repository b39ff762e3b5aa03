"""The engine of many machines: Dask's distributed scheduler gives tiles to workers.

Workers read the source and write Zarr and Deep Zoom tiles themselves, so they need the same files under the same names.
Everything else travels with the tasks. A worker that dies costs its tiles: the scheduler gives them to another.
"""

import math
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from srno._version import __version__
from srno.errors import SRNOError, require
from srno.field.engine import Integrals
from srno.gigapixel.budget import LARGEST_SIDE, STORED_TILE
from srno.gigapixel.container import Stored
from srno.gigapixel.passes import Summed
from srno.gigapixel.prepare import weights_digest, worth_keeping
from srno.gigapixel.tile_plan import WorkTile
from srno.gigapixel.work import Recipe, Subject, TileMaker, add_up
from srno.imaging.picture import Samples
from srno.machine import keep_freed_memory, parse_memory
from srno.operator.model import Model

Result = TypeVar("Result")
Packed = NDArray[np.uint8]

FAN_IN = 8
"""Tiles whose moments are added up on the workers."""
TILES_PER_WORKER = 4
"""Tiles for each worker, at least, so that none waits long for the others."""
CONNECT_SECONDS = 10
FEATURE_SHARE = 0.4
"""Share of the workers' memory that features may take; more than that is computed again in each pass."""
SILENT = 60
"""A level above all of Python's: what goes wrong is reported in one line."""
DEFAULT_WORKER_MEMORY = 2 << 30
"""Bytes of a worker that has no limit."""
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.admin.system-monitor.gil.enabled": False,
}
"""Dask's settings for `local:N`: what it observes of itself a hundred times a second takes time from the tiles."""
ADVICE = "what is done is kept; give the same command with --resume"


class ClusterError(SRNOError):
    """The cluster failed, not a picture."""


@dataclass(frozen=True, eq=False)
class WorkerKit:
    """What a worker needs for its tiles, and how it finds out that it has something else."""

    model: Model
    recipe: Recipe
    digest: str
    version: str


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

    def engine(self, maker: TileMaker) -> "ClusterEngine":
        """An engine for one picture, after the workers have been checked."""
        self.check_workers()
        kit = WorkerKit(maker.model, maker.recipe, weights_digest(maker.model), __version__)
        room = FEATURE_SHARE * self.worker_memory() * len(self.workers)
        keep = worth_keeping(maker.plan) and len(maker.recipe.subjects) * maker.feature_bytes() <= room
        return ClusterEngine(self, self.share(kit), maker, keep=keep)

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

    def completed(self, futures: list[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield futures with their results as they are ready."""
        for future in require("distributed", "cluster").as_completed(futures, loop=self.client.loop):
            yield future, self.guarded(future.result)
            future.release()

    def guarded(self, work: Callable[[], Result]) -> Result:
        """Call `work` and say in one line what went wrong with the cluster."""
        try:
            return work()
        except SRNOError:
            raise
        except Exception as error:
            raise ClusterError(f"--cluster {self.address}: {_explain(error)}; {ADVICE}") from None


@contextmanager
def open_cluster(address: str) -> Generator[Cluster]:
    """Connect to a scheduler, or start one here for `local:N`."""
    distributed = require("distributed", "cluster")
    match = re.fullmatch(r"local:([1-9]\d{0,3})", address)
    if match is None and not re.fullmatch(r"\w+://.+", address):
        raise ClusterError(f"--cluster {address!r}: give tcp://HOST:PORT of a scheduler, or local:N for N workers here")
    started = None
    if match is not None:
        with require("dask", "cluster").config.set(QUIET):
            started = distributed.LocalCluster(
                n_workers=int(match[1]),
                threads_per_worker=1,
                processes=True,
                scheduler_kwargs={"dashboard": False, "dashboard_address": ":0"},  # any port: others may run here too
                silence_logs=SILENT,
            )
    try:
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
    finally:
        if started is not None:
            started.close()


class ClusterEngine:
    """Tasks for tiles; results come back in any order."""

    def __init__(self, cluster: Cluster, kit: Any, maker: TileMaker, *, keep: bool) -> None:
        self.cluster, self.client, self.kit, self.maker, self.keep = cluster, cluster.client, kit, maker, keep
        self.features: dict[tuple[Subject, int], Any] = {}

    def lift(self, subject: Subject, tiles: list[WorkTile]) -> Iterator[Summed]:
        """z_0 at the integral's points of each tile."""
        futures = {self._submit(lift_tile, subject, tile, self._features(subject, tile)): tile for tile in tiles}
        for future, content in self.cluster.completed(list(futures)):
            yield (futures[future].index,), content

    def sum(self, subject: Subject, layers: Integrals, tiles: list[WorkTile]) -> Iterator[Summed]:
        """Moments of the layer after `layers`; groups of tiles are added up on the workers."""
        known = self.cluster.share(layers)
        futures: dict[Any, tuple[int, ...]] = {}
        for start in range(0, len(tiles), FAN_IN):
            group = tiles[start : start + FAN_IN]
            parts = [self._submit(sum_tile, subject, tile, self._features(subject, tile), known) for tile in group]
            futures[self.client.submit(add_up, parts, pure=False)] = tuple(tile.index for tile in group)
        for future, content in self.cluster.completed(list(futures)):
            yield futures[future], content

    def render(
        self, tiles: list[WorkTile], layers: dict[Subject, Integrals]
    ) -> Iterator[tuple[WorkTile, list[Stored], Samples | None]]:
        """Finished tiles."""
        known = self.cluster.share(layers)
        subjects = self.maker.recipe.subjects
        futures: dict[Any, WorkTile] = {}
        for tile in tiles:
            features = [self._features(subject, tile) for subject in subjects]
            futures[self._submit(render_tile, tile, features, known)] = tile
        for future, (stored, rest) in self.cluster.completed(list(futures)):
            tile = futures[future]
            yield tile, stored, rest
            for subject in subjects:
                self.features.pop((subject, tile.index), None)

    def _features(self, subject: Subject, tile: WorkTile) -> Any:
        """The features of a tile on the worker that computes them; None if each task computes its own."""
        if not self.keep:
            return None
        key = (subject, tile.index)
        if key not in self.features:
            self.features[key] = self._submit(encode_tile, subject, tile)
        return self.features[key]

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, self.kit, *arguments, pure=False)


# What workers run


def worker_version() -> str:
    """The version of srno on a worker."""
    return __version__


@lru_cache(maxsize=1)
def _maker(kit: WorkerKit) -> TileMaker:
    """The tile maker of a worker, opened at its first tile, if the worker has what the kit says."""
    if kit.version != __version__:
        raise ClusterError(f"a worker has srno {__version__}, the job {kit.version}; install the same version")
    if weights_digest(kit.model) != kit.digest:
        raise ClusterError("a worker has other weights than the job; restart it")
    keep_freed_memory()  # the worker's process is ours, as that of a command is
    return TileMaker(kit.model, kit.recipe)


def encode_tile(kit: WorkerKit, subject: Subject, tile: WorkTile) -> Packed:
    """Features of a tile as bytes."""
    maker = _maker(kit)
    return maker.pack_features(maker.encode(subject, tile))


def lift_tile(kit: WorkerKit, subject: Subject, tile: WorkTile, features: Packed | None) -> bytes:
    """z_0 at the integral's points of a tile."""
    maker = _maker(kit)
    scattered = features is None and maker.plan.window_share < 1
    return maker.lift_points(subject, tile, None if scattered else _unpacked(kit, subject, tile, features))


def sum_tile(kit: WorkerKit, subject: Subject, tile: WorkTile, features: Packed | None, layers: Integrals) -> bytes:
    """Moments of a tile."""
    return _maker(kit).sum_moments(subject, tile, _unpacked(kit, subject, tile, features), layers)


def render_tile(
    kit: WorkerKit, tile: WorkTile, features: list[Packed | None], layers: dict[Subject, Integrals]
) -> tuple[list[Stored], Samples | None]:
    """A finished tile."""
    maker = _maker(kit)
    unpacked: dict[Subject, Tensor] = {}
    for subject, packed in zip(maker.recipe.subjects, features, strict=True):
        unpacked[subject] = _unpacked(kit, subject, tile, packed)
    return maker.render(tile, unpacked, layers)


def _unpacked(kit: WorkerKit, subject: Subject, tile: WorkTile, packed: Packed | None) -> Tensor:
    maker = _maker(kit)
    if packed is None:
        return maker.encode(subject, tile)
    return maker.unpack_features(np.array(packed), tile)  # what Dask hands out may be read-only


def _same(value: Result) -> Result:
    return value


def _explain(error: Exception) -> str:
    """A reason in one line."""
    name = type(error).__name__
    if name == "KilledWorker":
        return "workers died again and again on the same tile, most likely out of memory; give them more, or --memory"
    if name in ("CancelledError", "FutureCancelledError", "CommClosedError", "TimeoutError"):
        return "the connection to the scheduler was lost"
    return f"{name}: {error}"
