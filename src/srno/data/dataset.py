"""Training samples as a map-style dataset. Sample number i is a function of (seed, i) alone.

So batches do not depend on the number of workers. Rank k of W takes the k-th part of each global batch, so W ranks with
batch b see exactly what one rank with batch W·b sees. A run resumes at any sample without replay.
"""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from srno.data.cache import Cache
from srno.data.samples import SampleConfig, draw_sample
from srno.errors import SRNOError

PREFETCHED_BATCHES_PER_WORKER = 2
"""Batches that are prepared ahead of the consumer, per worker."""


class Sample(NamedTuple):
    """Input, query points and target of the operator; with a leading batch dimension after collation."""

    lr: Tensor
    """(3, p, p) in [-1, 1]"""
    coords: Tensor
    """(n_q, 2) in [-1, 1] as (y, x)"""
    cell: Tensor
    """(2,)"""
    target: Tensor
    """(n_q, 3) in [-1, 1]"""


class SampleDataset(Dataset[Sample]):
    """Samples of the pictures in a cache, for any `torch.utils.data.DataLoader` or for `batches`.

    Its length is one epoch: `config.repeat` visits of every picture. Numbers beyond it belong to later epochs.
    """

    def __init__(self, cache: Cache, config: SampleConfig, *, seed: int = 0) -> None:
        if seed < 0:
            raise SRNOError(f"seed {seed}: it must not be negative")
        self.cache, self.config, self.seed = usable(cache, config), config, seed
        self._visits: tuple[int, NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self.cache.pictures) * self.config.repeat

    def __getitem__(self, number: int) -> Sample:
        if number < 0:
            raise IndexError(f"sample {number}: numbers start at 0")
        picture = self._picture(number)
        rng = _random(self.seed, 1, number)
        drawn = draw_sample(self.cache.pixels(picture), self.cache.detail(picture), self.config, rng)
        return Sample(
            lr=_normalise(np.ascontiguousarray(drawn.lr.transpose(2, 0, 1))),
            coords=torch.from_numpy(drawn.coords),
            cell=torch.tensor(drawn.cell, dtype=torch.float32),
            target=_normalise(drawn.target),
        )

    def _picture(self, number: int) -> int:
        """The picture of a sample; each epoch is a permutation of all pictures, `repeat` times each."""
        epoch, index = divmod(number, len(self))
        known = self._visits
        if known is None or known[0] != epoch:
            visits = _random(self.seed, 0, epoch).permutation(len(self)) % len(self.cache.pictures)
            self._visits = known = epoch, visits
        return int(known[1][index])


def usable(cache: Cache, config: SampleConfig) -> Cache:
    """The pictures of `cache` from which `config` can draw; the others become skipped, with the reason."""
    cache = cache.at_least(config.smallest)
    if not cache.pictures:
        name, factor = ("r-min", config.r_min) if config.allow_small else ("r-max", config.r_max)
        raise SRNOError(
            f"none of {len(cache.skipped)} pictures is {config.smallest}×{config.smallest} or larger, as patch "
            f"{config.patch} with --{name} {factor:g} needs; lower the patch in --stages or --{name}"
            + ("" if config.allow_small else ", or give --allow-small")
        )
    return cache


def collate(samples: Sequence[Sample]) -> Sample:
    """Stack samples into one batch."""
    return Sample(*(torch.stack(parts) for parts in zip(*samples, strict=True)))


def batches(
    dataset: SampleDataset, *, batch: int, start_sample: int = 0, rank: int = 0, world: int = 1, workers: int = 1
) -> Generator[Sample, None, None]:
    """Endless batches of `batch` samples for this rank, starting at sample number `start_sample` of the run.

    Each step of the run takes batch·world samples. With workers=0 the consumer's thread makes them.
    """
    if batch < 1 or min(start_sample, workers) < 0:
        raise SRNOError(
            f"batch {batch}, sample {start_sample}, workers {workers}: batch must be at least 1, the others at least 0"
        )
    if not 0 <= rank < world:
        raise SRNOError(f"rank {rank} of {world}: ranks count from 0 to {world - 1}")
    starts = _starts(start_sample + rank * batch, batch * world)
    if workers == 0:
        return (_make(dataset, first, batch) for first in starts)
    return _prefetch(dataset, starts, batch, workers)


def _starts(first: int, step: int) -> Iterator[int]:
    while True:
        yield first
        first += step


def _make(dataset: SampleDataset, first: int, batch: int) -> Sample:
    return collate([dataset[number] for number in range(first, first + batch)])


def _prefetch(dataset: SampleDataset, starts: Iterator[int], batch: int, workers: int) -> Generator[Sample, None, None]:
    """Batches in order, made by threads: Pillow and numpy release the interpreter's lock."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="srno-data")
    try:
        waiting: deque[Future[Sample]] = deque()
        for first in starts:
            waiting.append(pool.submit(_make, dataset, first, batch))
            if len(waiting) > PREFETCHED_BATCHES_PER_WORKER * workers:
                yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _normalise(values: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(values.astype(np.float32) / np.float32(127.5) - np.float32(1))


def _random(seed: int, *key: int) -> np.random.Generator:
    """A random generator for each key, independent of those of all other keys."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
