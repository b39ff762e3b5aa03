"""Decoded pictures on disk: each file is decoded once, and a second start only looks whether the files have changed."""

import hashlib
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srno.data import store
from srno.data.folder import File, UnreadableError, decode, list_files
from srno.data.store import Picture, Record, Skipped
from srno.errors import SRNOError

try:
    import fcntl
except ImportError:  # not on Windows, where two first starts at once merely do the work twice
    fcntl = None

Progress = Callable[[int, int], None]
"""Called with the number of files decoded so far and in all."""


@dataclass(frozen=True, eq=False)
class Cache:
    """Pictures that can be had at once, and the files that gave none."""

    pictures: tuple[Picture, ...]
    skipped: tuple[Skipped, ...]
    data: NDArray[np.uint8]

    def pixels(self, index: int) -> NDArray[np.uint8]:
        """Picture number `index`, (H, W, 3), as a read-only view of the file."""
        picture = self.pictures[index]
        return self.data[picture.pixels].reshape(picture.height, picture.width, 3)

    def detail(self, index: int) -> NDArray[np.float64]:
        """Its running detail sums, see `detail_map`."""
        return self.data[self.pictures[index].detail].view(np.float64)

    def take(self, indices: Sequence[int]) -> "Cache":
        """The same cache with these pictures only, for instance all but those held out for validation."""
        return replace(self, pictures=tuple(self.pictures[i] for i in indices))

    def at_least(self, shortest: int) -> "Cache":
        """The same cache without the pictures whose shorter side is less than `shortest`; these join the skipped."""
        usable = tuple(p for p in self.pictures if min(p.height, p.width) >= shortest)
        small = (p for p in self.pictures if min(p.height, p.width) < shortest)
        reasons = (Skipped(p.path, f"{p.width}×{p.height}, smaller than {shortest}×{shortest}") for p in small)
        return replace(self, pictures=usable, skipped=(*self.skipped, *reasons))


def default_folder() -> Path:
    """Where caches live unless the user says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "srno" / "pictures"


def open_cache(folders: Sequence[Path], *, where: Path | None = None, progress: Progress | None = None) -> Cache:
    """The pictures below `folders`, decoded now if this was not done before or if a file has changed since."""
    files = list_files(folders)
    root = default_folder() if where is None else where
    home = root / _hash(*(str(folder.resolve()) for folder in folders))
    fingerprint = _hash(*(f"{f.path} {f.size} {f.mtime_ns} {f.mode}" for f in files))
    cache = _load(home, fingerprint) or _make(home, files, fingerprint, progress)
    if not cache.pictures:
        raise SRNOError(f"no readable picture in {', '.join(map(str, folders))} ({len(cache.skipped)} other files)")
    return cache


def _load(home: Path, fingerprint: str) -> Cache | None:
    found = store.read(home)
    if found is None or found[0].fingerprint != fingerprint:
        return None
    return Cache(found[0].pictures, found[0].skipped, found[1])


def _make(home: Path, files: Sequence[File], fingerprint: str, progress: Progress | None) -> Cache:
    """Build the cache beside its place and move it there whole; whoever waited for the lock finds it ready."""
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with _alone(home):
            cache = _load(home, fingerprint)
            if cache is None:
                _build(home, files, fingerprint, progress)
                cache = _load(home, fingerprint)
    except OSError as error:
        reason = error.strerror or error
        raise SRNOError(f"cannot write the picture cache in {home.parent}: {reason}; choose another folder") from error
    if cache is None:
        raise SRNOError(f"the picture cache {home} changed while it was read; start again")
    return cache


@contextmanager
def _alone(home: Path) -> Generator[None]:
    """Hold the lock of this cache, and clear away what a killed builder left; the lock dies with its process."""
    with home.with_suffix(".lock").open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in home.parent.glob(f"{home.name}.*-*"):
                shutil.rmtree(left, ignore_errors=True)
        yield


def _build(home: Path, files: Sequence[File], fingerprint: str, progress: Progress | None) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{home.name}.new-", dir=home.parent, ignore_cleanup_errors=True) as folder:
        new = Path(folder) / "cache"
        new.mkdir()
        store.write(new, fingerprint, _decode_all(files, progress))
        if home.exists():  # runs that still use the old one keep it open until they end
            home.rename(Path(folder) / "old")
        new.rename(home)


def _decode_all(files: Sequence[File], progress: Progress | None) -> Iterator[tuple[Path, Record | str]]:
    """Records in the order of `files`, a few decoded ahead of the writer, so that memory holds only these."""
    threads = min(os.cpu_count() or 1, 16)
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[tuple[Path, Future[Record | str]]] = deque()
        for done in range(-2 * threads, len(files)):
            if done + 2 * threads < len(files):
                path = files[done + 2 * threads].path
                ahead.append((path, pool.submit(_decode_or_reason, path)))
            if done >= 0:
                path, result = ahead.popleft()
                yield path, result.result()
                if progress:
                    progress(done + 1, len(files))


def _decode_or_reason(path: Path) -> Record | str:
    try:
        return store.record(decode(path))
    except UnreadableError as reason:
        return str(reason)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]
