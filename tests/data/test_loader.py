import pickle
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from shared_data import BENCHMARK_SETS
from srno.data.cache import Cache, open_cache
from srno.data.dataset import Sample, SampleDataset, usable
from srno.data.dataset import batches as dataset_batches
from srno.data.samples import SampleConfig
from srno.errors import SRNOError

MakeFolder = Callable[[Sequence[tuple[int, int]]], Path]
CONFIG = SampleConfig(patch=8, points=20, r_max=2, detail=0.5)
SIZES = ((20, 30), (16, 16), (40, 24), (31, 31), (17, 50))


@pytest.fixture(scope="module")
def cache(make_folder: MakeFolder, tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return open_cache([make_folder(SIZES)], where=tmp_path_factory.mktemp("cache"))


def batches(cache: Cache, config: SampleConfig, *, seed: int, **how: int) -> Generator[Sample]:
    return dataset_batches(SampleDataset(cache, config, seed=seed), **how)


def assert_equal(left: Iterable[Sample], right: Iterable[Sample]) -> None:
    for one, other in zip(left, right, strict=True):
        for array, expected in zip(one, other, strict=True):
            np.testing.assert_array_equal(array, expected)


def joined(parts: Iterable[Sample]) -> Sample:
    """One batch of all the samples."""
    return Sample(*(torch.cat(arrays) for arrays in zip(*parts, strict=True)))


def first(count: int, source: Iterable[Sample]) -> Sample:
    return joined(islice(source, count))


def pictures_of(batch: Sample) -> list[int]:
    """Number of the picture of each sample, which is stored in its blue channel."""
    return [round((float(blue) + 1) * 127.5) for blue in batch.target[:, 0, 2]]


def test_shapes_types_and_ranges(cache: Cache) -> None:
    batch = next(batches(cache, CONFIG, seed=0, batch=6))
    assert [array.shape for array in batch] == [(6, 3, 8, 8), (6, 20, 2), (6, 2), (6, 20, 3)]
    for tensor in batch:
        assert tensor.dtype == torch.float32
        assert tensor.is_contiguous()
    assert batch.coords.abs().max() < 1
    assert batch.cell.min() >= 1
    assert batch.cell.max() <= 2
    for values in (batch.lr, batch.target):
        bytes_ = (values.double().numpy() * 0.5 + 0.5) * 255
        np.testing.assert_allclose(bytes_, np.rint(bytes_), atol=1e-4)
        assert -1 <= values.min() < -0.7
        assert 0.7 < values.max() <= 1


def test_at_factor_1_the_input_is_the_target(cache: Cache) -> None:
    batch = first(6, batches(cache, SampleConfig(patch=8, points=64, r_max=1), seed=5, batch=4))
    rows, columns = ((batch.coords.permute(2, 0, 1) + 1) * 4 - 0.5).round().long()  # (B, n_q) each
    samples = torch.arange(24)[:, None]
    assert torch.equal(batch.lr.permute(0, 2, 3, 1)[samples, rows, columns], batch.target)
    assert (batch.cell == 2).all()


@pytest.mark.parametrize("workers", [0, 2])
def test_torch_data_loader_gives_the_same_samples(cache: Cache, workers: int) -> None:
    dataset = SampleDataset(cache, replace(CONFIG, repeat=2), seed=7)
    loader = DataLoader(dataset, batch_size=5, num_workers=workers)
    assert len(loader) == len(dataset) // 5 == 2
    assert_equal(loader, islice(dataset_batches(dataset, batch=5), 2))


def test_sample_numbers_beyond_an_epoch_belong_to_later_epochs(cache: Cache) -> None:
    dataset = SampleDataset(cache, CONFIG, seed=7)
    later = [dataset[len(dataset) + number] for number in range(len(dataset))]
    assert sorted(pictures_of(joined(one_by_one(later)))) == [0, 1, 2, 3, 4]
    assert not torch.equal(later[0].coords, dataset[0].coords)
    with pytest.raises(IndexError, match="sample -1"):
        _ = dataset[-1]


def one_by_one(samples: Iterable[Sample]) -> list[Sample]:
    return [Sample(*(tensor.unsqueeze(0) for tensor in sample)) for sample in samples]


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**40),
    start=st.integers(0, 40),
    batch=st.integers(1, 5),
    world=st.integers(1, 3),
    workers=st.integers(0, 3),
    sampling=st.sampled_from(["random", "sequential"]),
    repeat=st.integers(1, 3),
)
def test_sample_i_does_not_depend_on_batch_rank_or_workers(
    cache: Cache, seed: int, start: int, batch: int, world: int, workers: int, sampling: str, repeat: int
) -> None:
    config = replace(CONFIG, sampling=sampling, repeat=repeat)
    one_by_one_samples = first(start + 3 * batch * world, batches(cache, config, seed=seed, batch=1, workers=0))
    ranks = [
        batches(cache, config, seed=seed, batch=batch, start_sample=start, rank=k, world=world, workers=workers)
        for k in range(world)
    ]
    together = joined(next(rank) for _ in range(3) for rank in ranks)
    for rank in ranks:
        rank.close()
    assert_equal([together], [Sample(*(array[start:] for array in one_by_one_samples))])


def test_seeds_and_epochs_differ(cache: Cache) -> None:
    epochs = list(islice(batches(cache, CONFIG, seed=1, batch=5), 40))
    assert len({batch.coords.numpy().tobytes() for batch in epochs}) == 40
    assert len({tuple(pictures_of(batch)) for batch in epochs}) > 20
    assert not torch.equal(next(batches(cache, CONFIG, seed=2, batch=5)).coords, epochs[0].coords)


@pytest.mark.parametrize("repeat", [1, 4])
def test_every_epoch_visits_every_picture_repeat_times(cache: Cache, repeat: int) -> None:
    config = replace(CONFIG, repeat=repeat)
    for epoch in islice(batches(cache, config, seed=3, batch=5 * repeat), 6):
        assert sorted(pictures_of(epoch)) == sorted([0, 1, 2, 3, 4] * repeat)


def test_a_changed_batch_continues_with_the_next_sample(cache: Cache) -> None:
    small = list(islice(batches(cache, CONFIG, seed=4, batch=2), 4))
    large = next(batches(cache, replace(CONFIG, points=33), seed=4, batch=7, start_sample=8))
    expected = first(15, batches(cache, CONFIG, seed=4, batch=1))
    assert pictures_of(joined(small)) + pictures_of(large) == pictures_of(expected)
    np.testing.assert_array_equal(large.cell, expected.cell[8:])


def test_small_pictures_are_skipped_or_used_at_smaller_factors(cache: Cache) -> None:
    config = SampleConfig(patch=12, points=20, r_max=2.5)
    assert [skipped.path.name for skipped in usable(cache, config).skipped] == [f"00{i}.png" for i in (0, 1, 2, 4)]
    assert set(pictures_of(first(4, batches(cache, config, seed=0, batch=10)))) == {3}
    allowed = first(8, batches(cache, replace(config, allow_small=True), seed=0, batch=10))
    smallest = np.array([min(SIZES[number]) for number in pictures_of(allowed)])
    assert set(pictures_of(allowed)) == {0, 1, 2, 3, 4}
    sides = np.rint(24 / allowed.cell[:, 0].numpy())
    assert (sides <= np.minimum(smallest, 30)).all()
    assert all((sides[smallest == side] > 13).any() for side in set(smallest.tolist()))


def test_impossible_arguments_are_errors(cache: Cache) -> None:
    with pytest.raises(SRNOError, match="none of 5 pictures is 320×320"):
        batches(cache, SampleConfig(patch=80, points=9), seed=0, batch=1)
    with pytest.raises(SRNOError, match="rank 2 of 2"):
        batches(cache, CONFIG, seed=0, batch=1, rank=2, world=2)
    with pytest.raises(SRNOError, match="batch 0"):
        batches(cache, CONFIG, seed=0, batch=0)


def data_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("srno-data")]


def test_close_ends_the_threads(cache: Cache) -> None:
    source = batches(cache, CONFIG, seed=0, batch=4, workers=2)
    next(source)
    assert len(data_threads()) == 2
    source.close()
    assert data_threads() == []


def test_a_pickled_cache_maps_the_files_again(cache: Cache) -> None:
    """A worker process that is spawned, not forked, receives the dataset by pickle."""
    packed = pickle.dumps(SampleDataset(cache, CONFIG, seed=3))
    assert len(packed) < 10_000 < cache.all_pixels.size
    assert_equal([pickle.loads(packed)[4]], [SampleDataset(cache, CONFIG, seed=3)[4]])


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_reaches_the_consumer(cache: Cache, workers: int) -> None:
    cut = replace(cache, all_pixels=cache.all_pixels[: cache.pictures[2].pixels_at])
    source = batches(cut, CONFIG, seed=0, batch=2, workers=workers)
    with pytest.raises(ValueError, match="reshape"):
        for _ in islice(source, 10):
            pass
    assert data_threads() == []


@pytest.mark.benchmark_sets("eval/Set5")
def test_set5_gives_finite_samples(tmp_path: Path) -> None:
    cache = open_cache([BENCHMARK_SETS / "Set5" / "HR"], where=tmp_path)
    batch = next(batches(cache, SampleConfig(patch=48, points=1152, detail=1), seed=0, batch=16))
    assert batch.lr.isfinite().all()
    assert batch.target.std() > 0.1
