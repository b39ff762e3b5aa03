"""The pictures of a run: training pictures as a stream of batches, and validation pictures."""

import hashlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from srno.data.cache import Cache, open_cache
from srno.data.dataset import Sample, SampleDataset, batches, usable
from srno.data.degradation import PhotoSettings
from srno.data.samples import SampleConfig
from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet, SetPicture, find_sets
from srno.training.config import PHOTO_SETTINGS, TrainConfig
from srno.training.distributed import World
from srno.training.stages import Stage

SMALLEST_HELD_OUT = 96
"""Shorter side, in pixels, that a held-out picture needs at least; at ×4 smaller ones say little."""


@dataclass(frozen=True)
class Pictures:
    """Training and validation pictures of a run."""

    training: Cache
    held_out: PictureSet | None
    epoch_samples: int
    """Samples in an epoch."""


def open_pictures(config: TrainConfig, world: World, progress: Callable[[int, int], None]) -> Pictures:
    """Find and check all pictures and all stages before the first step; decodes pictures that are not cached."""
    samples = [sample_config(config, stage) for stage in config.all_stages]
    for stage in config.all_stages:
        if stage.batch % world.size:
            raise SRNOError(f"--stages {config.stages}: batch {stage.batch} cannot be shared by {world.size} processes")
    if config.validation is not None:
        _validation_set(config.validation)  # reports a wrong folder before the pictures are decoded
    world.share(lambda: open_cache(config.data, progress=progress).skipped)  # the others then find the cache ready
    cache, held_out = hold_out(open_cache(config.data), config)
    training = usable(cache, max(samples, key=lambda sample: sample.smallest))
    return Pictures(training, held_out, len(training.pictures) * config.repeat)


def hold_out(cache: Cache, config: TrainConfig) -> tuple[Cache, PictureSet | None]:
    """Split into training and validation pictures: those of a folder, or some of the data by a hash of their names."""
    pictures = cache.pictures
    if config.validation is not None:
        folder = config.validation.resolve()
        outside = [i for i, picture in enumerate(pictures) if not picture.path.is_relative_to(folder)]
        if not outside:
            raise SRNOError(f"--validation {config.validation} holds every picture of --data; none is left to train on")
        return cache.take(outside), _validation_set(config.validation)
    large = [i for i, p in enumerate(pictures) if min(p.height, p.width) >= SMALLEST_HELD_OUT]
    ranked = sorted(large, key=lambda i: _name_hash(pictures[i].path))
    chosen = sorted(ranked[: min(config.hold_out, len(pictures) // 3)])
    if not chosen:
        return cache, None
    rest = cache.take([i for i in range(len(pictures)) if i not in set(chosen)])
    return rest, PictureSet("held out", tuple(SetPicture(pictures[i].path.name, pictures[i].path) for i in chosen))


def _validation_set(folder: Path) -> PictureSet:
    try:
        sets = find_sets(folder)
    except SRNOError as error:
        raise SRNOError(str(error).replace("--data", "--validation", 1)) from None
    return PictureSet("validation", tuple(picture for each in sets for picture in each.pictures))


def _name_hash(path: Path) -> str:
    return hashlib.sha256(path.name.encode(errors="surrogateescape")).hexdigest()


def sample_config(config: TrainConfig, stage: Stage) -> SampleConfig:
    """The settings of a sample in this stage."""
    return SampleConfig(
        patch=stage.patch,
        points=stage.points,
        r_min=config.r_min,
        r_max=config.r_max,
        sampling=config.sampling,
        detail=config.detail,
        flat=config.flat,
        degradation=config.degradation,
        photo=PhotoSettings(**{name: getattr(config, name) for name in PHOTO_SETTINGS}),
        allow_small=config.allow_small,
        repeat=config.repeat,
    )


def first_patches(pictures: Pictures, config: TrainConfig, count: int) -> Tensor:
    """The LR patches of the run's first samples, the same in every process: (count, 3, p, p)."""
    dataset = SampleDataset(pictures.training, sample_config(config, config.stage_at(0.0)), seed=config.seed)
    return torch.stack([dataset[number].lr for number in range(count)])


class Feed:
    """Batches of this process, in the shape of the current stage."""

    def __init__(self, pictures: Pictures, config: TrainConfig, world: World) -> None:
        self.pictures, self.config, self.world = pictures, config, world
        self._stage: Stage | None = None
        self._stream: Generator[Sample] | None = None

    def batch(self, stage: Stage, sample: int) -> Sample:
        """The batch that begins with sample number `sample`; consecutive calls must ask for consecutive batches."""
        if self._stream is None or stage != self._stage:
            self.close()
            self._stage, self._stream = stage, self._open(stage, sample)
        return next(self._stream)

    def close(self) -> None:
        """Stop preparing batches."""
        if self._stream is not None:
            self._stream.close()

    def _open(self, stage: Stage, sample: int) -> Generator[Sample]:
        samples = sample_config(self.config, stage)
        return batches(
            SampleDataset(self.pictures.training, samples, seed=self.config.seed),
            batch=stage.batch // self.world.size,
            start_sample=sample,
            rank=self.world.rank,
            world=self.world.size,
            workers=self.config.workers,
        )
