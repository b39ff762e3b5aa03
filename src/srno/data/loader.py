"""Batches in the background. Sample number i of a run is a function of (seed, i) alone.

So the batches are the same whatever the number of workers; rank k of W takes the k-th part of each global batch, so
W ranks with batch b see exactly what one rank with batch W·b sees; and a run resumes at any sample without replay.
"""

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from srno.data.cache import Cache
from srno.data.samples import Sample, SampleConfig, draw_sample
from srno.errors import SRNOError

AHEAD = 2
"""Finished batches that wait for the consumer, per worker."""


class Tensors(NamedTuple):
    """A batch as the operator takes it; the shapes are those of `Batch`."""

    lr: torch.Tensor
    coords: torch.Tensor
    cell: torch.Tensor
    target: torch.Tensor


class Batch(NamedTuple):
    """B samples; RGB normalised to (v - 0.5)/0.5."""

    lr: NDArray[np.float32]
    """(B, 3, p, p)"""
    coords: NDArray[np.float32]
    """(B, n_q, 2), rows first"""
    cell: NDArray[np.float32]
    """(B, 2)"""
    target: NDArray[np.float32]
    """(B, n_q, 3)"""

    def tensors(self, device: torch.device | str = "cpu") -> Tensors:
        """The same as tensors; on the CPU they share the arrays' memory."""
        return Tensors(*(torch.as_tensor(array, device=device) for array in self))


def usable(cache: Cache, config: SampleConfig) -> Cache:
    """The pictures of `cache` from which `config` can draw; the others join the skipped, with the reason."""
    cache = cache.at_least(config.smallest)
    if not cache.pictures:
        name, factor = ("r-min", config.r_min) if config.allow_small else ("r-max", config.r_max)
        raise SRNOError(
            f"none of {len(cache.skipped)} pictures is {config.smallest}×{config.smallest} or larger, as patch "
            f"{config.patch} with --{name} {factor:g} needs; lower the patch in --stages or --{name}"
            + ("" if config.allow_small else ", or give --allow-small")
        )
    return cache


def batches(
    cache: Cache,
    config: SampleConfig,
    *,
    seed: int,
    batch: int,
    start_sample: int = 0,
    rank: int = 0,
    world: int = 1,
    workers: int = 1,
) -> Generator[Batch, None, None]:
    """Endless batches of `batch` samples for this rank, beginning with sample number `start_sample` of the run.

    Each step of the run takes batch·world samples. With workers=0 the consumer makes its batches itself.
    """
    if batch < 1 or min(seed, start_sample, workers) < 0:
        raise SRNOError(f"batch {batch}, seed {seed}, sample {start_sample}, workers {workers}: must not be negative")
    if not 0 <= rank < world:
        raise SRNOError(f"rank {rank} of {world}: ranks count from 0 to {world - 1}")
    cache = usable(cache, config)
    plan = _plan(len(cache.pictures), config.repeat, seed, start_sample, batch, rank, world)
    if workers == 0:
        return (make_batch(cache, config, seed, numbers) for numbers in plan)
    return _prefetch(cache, config, seed, plan, workers)


def make_batch(cache: Cache, config: SampleConfig, seed: int, numbers: list[tuple[int, int]]) -> Batch:
    """The batch of the samples whose (number, picture) are given."""
    return _collate([_draw(cache, config, seed, number, picture) for number, picture in numbers])


def _draw(cache: Cache, config: SampleConfig, seed: int, number: int, picture: int) -> Sample:
    rng = _random(seed, 1, number)
    return draw_sample(cache.pixels(picture), cache.detail(picture), config, rng)


def _plan(
    pictures: int, repeat: int, seed: int, start: int, batch: int, rank: int, world: int
) -> Iterator[list[tuple[int, int]]]:
    """For each step, the (number, picture) of this rank's samples."""
    while True:
        first = start + rank * batch
        order = _order(pictures, repeat, seed, first)
        yield list(islice(order, batch))
        start += batch * world


def _order(pictures: int, repeat: int, seed: int, first: int) -> Iterator[tuple[int, int]]:
    """(number, picture) from sample `first` on; each epoch is a permutation of all pictures, `repeat` times each."""
    epoch, position = divmod(first, pictures * repeat)
    while True:
        visits = _random(seed, 0, epoch).permutation(pictures * repeat) % pictures
        for place in range(position, visits.size):
            yield epoch * visits.size + place, int(visits[place])
        epoch, position = epoch + 1, 0


def _prefetch(
    cache: Cache, config: SampleConfig, seed: int, plan: Iterator[list[tuple[int, int]]], workers: int
) -> Generator[Batch, None, None]:
    """Batches in the order of the plan, made by threads (Pillow and numpy let go of the interpreter's lock)."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="srno-data")
    try:
        waiting: deque[Future[Batch]] = deque()
        for numbers in plan:
            waiting.append(pool.submit(make_batch, cache, config, seed, numbers))
            if len(waiting) > AHEAD * workers:
                yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _collate(samples: list[Sample]) -> Batch:
    lr = np.stack([sample.lr for sample in samples]).transpose(0, 3, 1, 2)
    return Batch(
        lr=_normalise(np.ascontiguousarray(lr)),
        coords=np.stack([sample.coords for sample in samples]),
        cell=np.array([sample.cell for sample in samples], np.float32),
        target=_normalise(np.stack([sample.target for sample in samples])),
    )


def _normalise(values: NDArray[np.uint8]) -> NDArray[np.float32]:
    return values.astype(np.float32) / np.float32(127.5) - np.float32(1)


def _random(seed: int, *key: int) -> np.random.Generator:
    """Random numbers of their own for each key, independent of those of any other."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
