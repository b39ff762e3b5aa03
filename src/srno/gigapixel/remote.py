"""The engine of many machines: a task encodes, lifts, sums or renders one tile on a worker of a Dask cluster.

Workers read the source and write Zarr and Deep Zoom tiles themselves, so they need the same files under the same names.
Everything else travels with the tasks. A worker that dies costs its tiles: the scheduler gives them to another.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from srno._version import __version__
from srno.field.engine import Integrals
from srno.gigapixel.cluster import Cluster, ClusterError
from srno.gigapixel.container import Stored
from srno.gigapixel.passes import Summed
from srno.gigapixel.prepare import weights_digest, worth_keeping
from srno.gigapixel.tile_plan import WorkTile
from srno.gigapixel.work import Recipe, Subject, TileMaker, add_up
from srno.imaging.picture import Samples
from srno.machine import keep_freed_memory
from srno.operator.model import Model

Packed = NDArray[np.uint8]

FAN_IN = 8
"""Tiles whose moments are added up on the workers."""
FEATURE_SHARE = 0.4
"""Share of the workers' memory that features may take; more than that is computed again in each pass."""


@dataclass(frozen=True, eq=False)
class WorkerKit:
    """What a worker needs for its tiles, and how it finds out that it has something else."""

    model: Model
    recipe: Recipe
    digest: str
    version: str


class ClusterEngine:
    """Tasks for tiles; results come back in any order."""

    def __init__(self, cluster: Cluster, maker: TileMaker) -> None:
        cluster.check_workers()
        self.cluster, self.client, self.maker = cluster, cluster.client, maker
        self.kit = cluster.share(WorkerKit(maker.model, maker.recipe, weights_digest(maker.model), __version__))
        room = FEATURE_SHARE * cluster.worker_memory() * len(cluster.workers)
        self.keep = worth_keeping(maker.plan) and len(maker.recipe.subjects) * maker.feature_bytes() <= room
        self.features: dict[tuple[Subject, int], Any] = {}

    def lift(self, subject: Subject, tiles: list[WorkTile]) -> Iterator[Summed]:
        """z_0 at the integral's points of each tile."""
        futures = {self._submit(lift_tile, subject, tile, self._features(subject, tile)): tile for tile in tiles}
        for future, result in self.cluster.completed(list(futures)):
            yield (futures[future].index,), result()

    def sum(self, subject: Subject, layers: Integrals, tiles: list[WorkTile]) -> Iterator[Summed]:
        """Moments of the layer after `layers`; groups of tiles are added up on the workers."""
        known = self.cluster.share(layers)
        futures: dict[Any, tuple[int, ...]] = {}
        for start in range(0, len(tiles), FAN_IN):
            group = tiles[start : start + FAN_IN]
            parts = [self._submit(sum_tile, subject, tile, self._features(subject, tile), known) for tile in group]
            futures[self.client.submit(add_up, parts, pure=False)] = tuple(tile.index for tile in group)
        for future, result in self.cluster.completed(list(futures)):
            yield futures[future], result()

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
        for future, result in self.cluster.completed(list(futures)):
            tile = futures[future]
            yield tile, *result()
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
