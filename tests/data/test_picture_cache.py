import json
import multiprocessing
import os
import resource
import shutil
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from srno.data.cache import Cache, open_cache
from srno.data.samples import detail_map
from srno.errors import SRNOError
from srno.files import cache_folder

MakeFolder = Callable[[Sequence[tuple[int, int]]], Path]
SIZES = ((40, 50), (33, 64), (17, 16))


def count_decoded(folder: Path, where: Path) -> tuple[Cache, int]:
    decoded: list[int] = []
    cache = open_cache([folder], where=where, progress=lambda done, total: decoded.append(done))
    return cache, len(decoded)


def assert_same(cache: Cache, folder: Path) -> None:
    """The cache holds exactly the PNG files of `folder`, in order."""
    paths = sorted(folder.rglob("*.png"))
    assert [picture.path for picture in cache.pictures] == paths
    for number, path in enumerate(paths):
        expected = np.asarray(Image.open(path).convert("RGB"))
        np.testing.assert_array_equal(cache.pixels(number), expected)
        np.testing.assert_array_equal(cache.detail(number), detail_map(expected))


def test_the_cache_holds_the_pictures_and_their_detail(make_folder: MakeFolder, tmp_path: Path) -> None:
    folder = make_folder(SIZES)
    cache, decoded = count_decoded(folder, tmp_path / "cache")
    assert decoded == 3
    assert_same(cache, folder)
    assert not cache.pixels(0).flags.writeable


def test_a_second_start_decodes_no_picture(make_folder: MakeFolder, tmp_path: Path) -> None:
    folder = make_folder(SIZES)
    before, _ = count_decoded(folder, tmp_path / "cache")
    first = before.pixels(0).copy()
    path = folder / "000.png"
    stat = path.stat()
    path.write_bytes(bytes(stat.st_size))  # unreadable, but with the same size and time
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    after, decoded = count_decoded(folder, tmp_path / "cache")
    assert decoded == 0
    assert after.pictures == before.pictures
    np.testing.assert_array_equal(after.pixels(0), first)


def test_changed_added_and_removed_files_rebuild_the_cache(make_folder: MakeFolder, tmp_path: Path) -> None:
    folder, where = make_folder(SIZES), tmp_path / "cache"
    running, _ = count_decoded(folder, where)
    old = running.pixels(1).copy()
    (folder / "sub").mkdir()
    Image.new("RGB", (20, 20), "red").save(folder / "sub" / "new.png")
    assert_same(count_decoded(folder, where)[0], folder)
    Image.new("RGB", (64, 33), "blue").save(folder / "001.png")
    assert_same(count_decoded(folder, where)[0], folder)
    (folder / "000.png").unlink()
    assert_same(count_decoded(folder, where)[0], folder)
    (folder / "002.png").rename(folder / "005.png")
    assert_same(count_decoded(folder, where)[0], folder)
    assert count_decoded(folder, where)[1] == 0
    assert len([entry for entry in where.iterdir() if entry.is_dir()]) == 1  # the old caches are removed
    np.testing.assert_array_equal(running.pixels(1), old)  # but not for a run that has one open


def test_a_new_modification_time_rebuilds_the_cache(make_folder: MakeFolder, tmp_path: Path) -> None:
    folder, where = make_folder(SIZES), tmp_path / "cache"
    count_decoded(folder, where)
    stat = (folder / "000.png").stat()
    os.utime(folder / "000.png", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1000))
    assert count_decoded(folder, where)[1] == 3


@pytest.mark.parametrize("damage", ["truncate", "no pixels", "no detail", "no index", "index", "list"])
def test_a_damaged_cache_is_rebuilt(make_folder: MakeFolder, tmp_path: Path, damage: str) -> None:
    folder, where = make_folder(SIZES), tmp_path / "cache"
    count_decoded(folder, where)
    pixels, detail, index = (next(where.glob(f"*/{name}")) for name in ("pixels.npy", "detail.npy", "index.json"))
    {
        "truncate": lambda: pixels.write_bytes(pixels.read_bytes()[:-200]),
        "no pixels": pixels.unlink,
        "no detail": detail.unlink,
        "no index": index.unlink,
        "index": lambda: index.write_text(index.read_text()[:-9]),
        "list": lambda: index.write_text("[1]"),
    }[damage]()
    cache, decoded = count_decoded(folder, where)
    assert decoded == 3
    assert_same(cache, folder)


def test_a_cache_of_another_format_version_is_rebuilt(make_folder: MakeFolder, tmp_path: Path) -> None:
    folder, where = make_folder(SIZES), tmp_path / "cache"
    count_decoded(folder, where)
    index = next(where.glob("*/index.json"))
    index.write_text(json.dumps(json.loads(index.read_text()) | {"format": 0}))
    assert count_decoded(folder, where)[1] == 3


def test_broken_and_small_pictures_are_listed(make_folder: MakeFolder, tmp_path: Path) -> None:
    folder = make_folder(SIZES)
    (folder / "notes.txt").write_text("no picture")
    whole = (folder / "000.png").read_bytes()
    (folder / "000.png").write_bytes(whole[: len(whole) // 2])
    for _ in range(2):  # first from the files, then from the index
        cache = open_cache([folder], where=tmp_path / "cache")
        assert [skipped.path.name for skipped in cache.skipped] == ["000.png", "notes.txt"]
        large = cache.at_least(20)
        assert [picture.path.name for picture in large.pictures] == ["001.png"]
        assert large.skipped[:2] == cache.skipped
        assert large.skipped[2] == (folder / "002.png", "16×17, smaller than 20×20")


def test_a_folder_without_pictures_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SRNOError, match=r"no readable picture in .*empty"):
        open_cache([tmp_path / "empty"], where=tmp_path / "cache")


def test_several_folders_share_one_cache(make_folder: MakeFolder, tmp_path: Path) -> None:
    one = make_folder(SIZES)
    two = shutil.copytree(one, tmp_path / "two")
    both = open_cache([two, one], where=tmp_path / "cache")
    assert [picture.path.parent for picture in both.pictures] == [two] * 3 + [one] * 3
    assert len(open_cache([one], where=tmp_path / "cache").pictures) == 3


def test_take_keeps_the_chosen_pictures(make_folder: MakeFolder, tmp_path: Path) -> None:
    cache = open_cache([make_folder(SIZES)], where=tmp_path / "cache")
    taken = cache.take([2, 0])
    assert taken.pictures == (cache.pictures[2], cache.pictures[0])
    np.testing.assert_array_equal(taken.pixels(0), cache.pixels(2))


def test_default_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("pictures") == tmp_path / "srno" / "pictures"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder("pictures") == Path.home() / ".cache" / "srno" / "pictures"


def test_a_full_disk_is_an_error_and_leaves_no_files(make_folder: MakeFolder, tmp_path: Path) -> None:
    folder, where = make_folder([(300, 300)] * 3), tmp_path / "cache"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        with pytest.raises(SRNOError, match=r"cannot write the picture cache in .*cache: File too large"):
            open_cache([folder], where=where)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [entry.suffix for entry in where.iterdir()] == [".lock"]
    assert_same(open_cache([folder], where=where), folder)


def test_a_folder_that_cannot_be_written_is_an_error(make_folder: MakeFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SRNOError, match="cannot write the picture cache"):
        open_cache([make_folder(SIZES)], where=tmp_path / "file")


def test_leftovers_of_a_killed_process_are_removed(make_folder: MakeFolder, tmp_path: Path) -> None:
    folder, where = make_folder(SIZES), tmp_path / "cache"
    count_decoded(folder, where)
    home = next(entry for entry in where.iterdir() if entry.is_dir())
    home.rename(leftover := where / f"{home.name}.new-1234")
    assert_same(count_decoded(folder, where)[0], folder)
    assert not leftover.exists()


def _open(folder: Path, where: Path, barrier: Barrier, results: "multiprocessing.Queue[tuple[int, int]]") -> None:
    barrier.wait()
    cache, decoded = count_decoded(folder, where)
    assert_same(cache, folder)
    results.put((decoded, len(cache.pictures)))


def test_processes_that_start_together_decode_once(make_folder: MakeFolder, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(3), context.Queue()
    folder = make_folder([(60, 60)] * 12)
    together = [context.Process(target=_open, args=(folder, tmp_path / "cache", barrier, results)) for _ in range(3)]
    for process in together:
        process.start()
    found = sorted(results.get(timeout=60) for _ in together)
    for process in together:
        process.join()
    assert found == [(0, 12), (0, 12), (12, 12)]
    assert [process.exitcode for process in together] == [0, 0, 0]
