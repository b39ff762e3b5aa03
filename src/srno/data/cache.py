"""Decoded pictures on disk: each file is decoded once, into an .npy that is memory-mapped when it is used.

A cache is a folder with two arrays for each picture, its bytes and its running detail sums, and an index.json that
names the files it was made from. A second start only checks whether these files have changed.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srno.data.detail import detail_map
from srno.data.folder import File, UnreadableError, decode, list_files
from srno.errors import SRNOError
from srno.files import cache_folder, locked

FORMAT = 2
"""Raised whenever the layout changes, so that older caches are made again."""


class UnusedFile(NamedTuple):
    """A file that is not used, and why."""

    path: Path
    reason: str


@dataclass(frozen=True)
class CachedPicture:
    """A picture in the cache."""

    path: Path
    """The file that it was decoded from."""
    height: int
    width: int
    number: int
    """Of its arrays in the cache."""


@dataclass(frozen=True, eq=False)
class Cache:
    """Pictures that are decoded, and the files that gave none."""

    folder: Path
    pictures: tuple[CachedPicture, ...]
    skipped: tuple[UnusedFile, ...]

    def pixels(self, index: int) -> NDArray[np.uint8]:
        """Picture number `index`, (H, W, 3), as a read-only view of its file."""
        return np.load(_pixels_path(self.folder, self.pictures[index].number), mmap_mode="r")

    def detail(self, index: int) -> NDArray[np.float64]:
        """Its running detail sums, see `detail_map`."""
        return np.load(_detail_path(self.folder, self.pictures[index].number), mmap_mode="r")

    def take(self, indices: Sequence[int]) -> "Cache":
        """The same cache with these pictures only, for instance all but those held out for validation."""
        return replace(self, pictures=tuple(self.pictures[i] for i in indices))

    def at_least(self, shortest: int) -> "Cache":
        """The same cache without the pictures whose shorter side is less than `shortest`; these become skipped."""
        usable = tuple(p for p in self.pictures if min(p.height, p.width) >= shortest)
        small = (p for p in self.pictures if min(p.height, p.width) < shortest)
        reasons = (UnusedFile(p.path, f"{p.width}×{p.height}, smaller than {shortest}×{shortest}") for p in small)
        return replace(self, pictures=usable, skipped=(*self.skipped, *reasons))


def open_cache(
    folders: Sequence[Path], *, where: Path | None = None, progress: Callable[[int, int], None] | None = None
) -> Cache:
    """The pictures below `folders`, decoded now if this was not done before or if a file has changed since.

    `progress` is called with the number of files decoded so far and in all.
    """
    files = list_files(folders)
    root = cache_folder("pictures") if where is None else where
    home = root / _hash(*(str(folder.resolve()) for folder in folders))
    fingerprint = _hash(*(f"{f.path} {f.size} {f.mtime_ns} {f.mode}" for f in files))
    cache = _load(home, fingerprint) or _make(home, files, fingerprint, progress)
    if not cache.pictures:
        raise SRNOError(f"no readable picture in {', '.join(map(str, folders))} ({len(cache.skipped)} other files)")
    return cache


def _load(home: Path, fingerprint: str) -> Cache | None:
    """The cache in this folder; None if it is missing, damaged, or made from other files."""
    try:
        raw = json.loads((home / "index.json").read_text())
        if (raw["format"], raw["fingerprint"]) != (FORMAT, fingerprint):
            return None
        pictures = tuple(CachedPicture(Path(path), *numbers) for path, *numbers in raw["pictures"])
        cache = Cache(home, pictures, tuple(UnusedFile(Path(path), reason) for path, reason in raw["skipped"]))
        return cache if all(_intact(home, picture) for picture in pictures) else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # whatever a damaged index may lead to
        return None


def _intact(home: Path, picture: CachedPicture) -> bool:
    """Whether both arrays are there and as large as they should be, without reading them."""
    pixels = _pixels_path(home, picture.number).stat().st_size
    return pixels > 3 * picture.height * picture.width and _detail_path(home, picture.number).stat().st_size > 0


def _make(home: Path, files: Sequence[File], fingerprint: str, progress: Callable[[int, int], None] | None) -> Cache:
    """Build the cache beside its place and move it there whole; whoever waited for the lock finds it ready."""
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with locked(home.with_suffix(".lock"), wait=True):
            cache = _load(home, fingerprint)
            if cache is None:
                for left in home.parent.glob(f"{home.name}.*-*"):  # of a process that was killed
                    shutil.rmtree(left, ignore_errors=True)
                _build(home, files, fingerprint, progress)
                cache = _load(home, fingerprint)
    except OSError as error:
        reason = error.strerror or error
        raise SRNOError(f"cannot write the picture cache in {home.parent}: {reason}; choose another folder") from error
    if cache is None:
        raise SRNOError(f"the picture cache {home} changed while it was read; start again")
    return cache


def _build(home: Path, files: Sequence[File], fingerprint: str, progress: Callable[[int, int], None] | None) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{home.name}.new-", dir=home.parent, ignore_cleanup_errors=True) as folder:
        new = Path(folder) / "cache"
        new.mkdir()
        pictures: list[tuple[str, int, int, int]] = []
        skipped: list[UnusedFile] = []
        for number, (path, found) in enumerate(_decode_all(files, progress)):
            if isinstance(found, str):
                skipped.append(UnusedFile(path, found))
            else:
                _save(_pixels_path(new, number), found)
                _save(_detail_path(new, number), detail_map(found))
                pictures.append((os.fspath(path), found.shape[0], found.shape[1], number))
        index = {"format": FORMAT, "fingerprint": fingerprint, "pictures": pictures, "skipped": skipped}
        (new / "index.json").write_text(json.dumps(index, default=os.fspath))
        if home.exists():  # runs that still use the old one have its files open until they end
            home.rename(Path(folder) / "old")
        new.rename(home)


def _decode_all(
    files: Sequence[File], progress: Callable[[int, int], None] | None
) -> Iterator[tuple[Path, NDArray[np.uint8] | str]]:
    """Pictures, or reasons, in the order of `files`; a few are decoded ahead of the writer."""
    threads = min(os.cpu_count() or 1, 16)
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[tuple[Path, Future[NDArray[np.uint8] | str]]] = deque()
        for done in range(-2 * threads, len(files)):
            if done + 2 * threads < len(files):
                path = files[done + 2 * threads].path
                ahead.append((path, pool.submit(_decode_or_reason, path)))
            if done >= 0:
                path, result = ahead.popleft()
                yield path, result.result()
                if progress:
                    progress(done + 1, len(files))


def _decode_or_reason(path: Path) -> NDArray[np.uint8] | str:
    try:
        return decode(path)
    except UnreadableError as reason:
        return str(reason)


def _save(path: Path, array: NDArray[Any]) -> None:
    """np.save by ordinary writes: its own way reports a full disk without the system's reason."""
    array = np.ascontiguousarray(array)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.data)


def _pixels_path(home: Path, number: int) -> Path:
    return home / f"{number}.npy"


def _detail_path(home: Path, number: int) -> Path:
    return home / f"{number}.detail.npy"


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]
