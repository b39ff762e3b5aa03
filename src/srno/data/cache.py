"""Decoded pictures on disk: each file is decoded once, into arrays that are memory-mapped.

A cache is a folder with pixels.npy, the bytes of all pictures one after the other, detail.npy, their running detail
sums, and an index.json that names the files it was made from and where each picture begins. A second start only checks
whether these files have changed. An open cache stays as it is when another process rebuilds it.
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
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from srno.data.folder import File, UnreadableError, decode, list_files
from srno.data.samples import blocks, detail_map
from srno.errors import SRNOError
from srno.files import cache_folder, locked

FORMAT_VERSION = 3
"""Version of the layout; a cache of another version is rebuilt."""


class UnusedFile(NamedTuple):
    """A skipped file and the reason."""

    path: Path
    reason: str


@dataclass(frozen=True)
class CachedPicture:
    """A picture in the cache."""

    path: Path
    """The file that it was decoded from."""
    height: int
    width: int
    pixels_at: int
    """Where its bytes begin in pixels.npy."""
    detail_at: int
    """Where its running detail sums begin in detail.npy."""


@dataclass(frozen=True, eq=False)
class Cache:
    """Decoded pictures, and the files that were skipped."""

    folder: Path
    pictures: tuple[CachedPicture, ...]
    skipped: tuple[UnusedFile, ...]
    all_pixels: NDArray[np.uint8]
    all_details: NDArray[np.float64]

    def __getstate__(self) -> dict[str, Any]:
        """Worker processes map the files themselves instead of receiving the arrays."""
        return vars(self) | {"all_pixels": None, "all_details": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        vars(self).update(zip(("all_pixels", "all_details"), _map_arrays(self.folder), strict=True))

    def pixels(self, index: int) -> NDArray[np.uint8]:
        """Picture number `index`, (H, W, 3), as a read-only view of the file."""
        picture = self.pictures[index]
        part = self.all_pixels[picture.pixels_at : picture.pixels_at + 3 * picture.height * picture.width]
        return part.reshape(picture.height, picture.width, 3)

    def detail(self, index: int) -> NDArray[np.float64]:
        """Its running detail sums, see `detail_map`."""
        picture = self.pictures[index]
        return self.all_details[picture.detail_at : picture.detail_at + prod(blocks(picture.height, picture.width))]

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
    """Open the cache of the pictures below `folders`; builds it if it is missing or if a file has changed.

    `progress` is called with the number of files decoded so far and the number of all files.
    """
    files = list_files(folders)
    root = cache_folder("pictures") if where is None else where
    target = root / _hash(*(str(folder.resolve()) for folder in folders))
    fingerprint = _hash(*(f"{f.path} {f.size} {f.mtime_ns} {f.mode}" for f in files))
    cache = _load(target, fingerprint) or _make(target, files, fingerprint, progress)
    if not cache.pictures:
        raise SRNOError(f"no readable picture in {', '.join(map(str, folders))} ({len(cache.skipped)} other files)")
    return cache


def _load(target: Path, fingerprint: str) -> Cache | None:
    """The cache in this folder; None if it is missing, damaged, or made from other files."""
    try:
        raw = json.loads((target / "index.json").read_text())
        if (raw["format"], raw["fingerprint"]) != (FORMAT_VERSION, fingerprint):
            return None
        pictures = tuple(CachedPicture(Path(path), *numbers) for path, *numbers in raw["pictures"])
        skipped = tuple(UnusedFile(Path(path), reason) for path, reason in raw["skipped"])
        pixels, details = _map_arrays(target)
        intact = [len(pixels), len(details)] == raw["lengths"]
        return Cache(target, pictures, skipped, pixels, details) if intact else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # a damaged index can raise any of these
        return None


def _map_arrays(target: Path) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    return np.load(target / "pixels.npy", mmap_mode="r"), np.load(target / "detail.npy", mmap_mode="r")


def _make(target: Path, files: Sequence[File], fingerprint: str, progress: Callable[[int, int], None] | None) -> Cache:
    """Build the cache under a lock, unless another process built it while this one waited."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.with_suffix(".lock"), wait=True):
            cache = _load(target, fingerprint)
            if cache is None:
                for leftover in target.parent.glob(f"{target.name}.*-*"):  # of a killed process
                    shutil.rmtree(leftover, ignore_errors=True)
                _build(target, files, fingerprint, progress)
                cache = _load(target, fingerprint)
    except OSError as error:
        reason = error.strerror or error
        raise SRNOError(f"cannot write the picture cache in {target.parent}: {reason}; use another folder") from error
    if cache is None:
        raise SRNOError(f"the picture cache {target} changed while it was read; start again")
    return cache


def _build(target: Path, files: Sequence[File], fingerprint: str, progress: Callable[[int, int], None] | None) -> None:
    """Write a new cache to a temporary folder and rename it to `target`."""
    with tempfile.TemporaryDirectory(
        prefix=f"{target.name}.new-", dir=target.parent, ignore_cleanup_errors=True
    ) as folder:
        new = Path(folder) / "cache"
        new.mkdir()
        pictures: list[tuple[str, int, int, int, int]] = []
        skipped: list[UnusedFile] = []
        with (
            _GrowingArray(new / "pixels.npy", np.uint8) as pixels,
            _GrowingArray(new / "detail.npy", np.float64) as detail,
        ):
            for path, found in _decode_all(files, progress):
                if isinstance(found, str):
                    skipped.append(UnusedFile(path, found))
                else:
                    places = pixels.append(found), detail.append(detail_map(found))
                    pictures.append((os.fspath(path), found.shape[0], found.shape[1], *places))
        index = {"format": FORMAT_VERSION, "fingerprint": fingerprint, "lengths": [pixels.length, detail.length]}
        content = json.dumps(index | {"pictures": pictures, "skipped": skipped}, default=os.fspath)
        (new / "index.json").write_text(content)
        if target.exists():  # a process that has the old one open keeps its arrays mapped
            target.rename(Path(folder) / "old")
        new.rename(target)


def _decode_all(
    files: Sequence[File], progress: Callable[[int, int], None] | None
) -> Iterator[tuple[Path, NDArray[np.uint8] | str]]:
    """Pictures, or reasons to skip a file, in the order of `files`; threads decode a few of them ahead."""
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


class _GrowingArray:
    """An .npy of one dimension to which arrays are appended; its header is completed at the end.

    Ordinary writes, so that a full disk is an error when it happens and not a bus error later.
    """

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        self.dtype, self.length = np.dtype(dtype), 0
        self.file = path.open("wb")

    def __enter__(self) -> Self:
        self._write_header()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self.file:
            if kind is None:
                self.file.seek(0)
                self._write_header()

    def append(self, array: NDArray[Any]) -> int:
        """Write the array's values; returns where they begin."""
        start = self.length
        self.file.write(np.ascontiguousarray(array, self.dtype).data)
        self.length += array.size
        return start

    def _write_header(self) -> None:
        # numpy pads headers so that the length of the first axis can grow in place.
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(self.file, header)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]
