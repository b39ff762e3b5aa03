"""The operations behind the page, independent of HTTP: open pictures, compute tiles, make files."""

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from srno.errors import SRNOError
from srno.field.blocks import RENDER_MEMORY, BlockField
from srno.imaging.formats import CAPABILITIES
from srno.imaging.head import read_head
from srno.imaging.read import read
from srno.progress import Progress
from srno.server.block_jobs import RENDER, BlockJobs, priority
from srno.server.file_jobs import FileJobs
from srno.server.gallery import Gallery
from srno.server.inside import Channels, choose_channels, describe, look_inside
from srno.server.long_jobs import State
from srno.server.opened import Opened, as_png
from srno.server.rates import Rates
from srno.server.resample import bicubic
from srno.server.store import Store
from srno.server.tiles import FILTERS, LARGEST_WINDOW_PIXELS, Tile, evaluate
from srno.server.workers import FIRST, Priority, Task, Worker

EXPORT_NICENESS = 10
"""Added to the niceness of export threads, so that tiles run first."""
SMALL_FILE_BYTES = 1_000_000
"""Files up to this size are decoded by the threads of the tiles; larger ones wait for one another."""
DECODING_BYTES_PER_PIXEL = 8
"""Memory for decoding: the decoder's samples and an upright copy."""
CHANNELS_BYTES = 2000
"""Memory of the choice of channels that are shown of a picture."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The largest file and picture that can be opened."""

    bytes: int = 400_000_000
    pixels: int = 200_000_000


class Studio:
    """Opened pictures, what models compute from them, and the worker threads."""

    def __init__(
        self,
        models: Mapping[str, Path],
        *,
        memory: int,
        threads: int,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        examples: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self.examples, self.limits, self.threads = dict(examples), limits, threads
        self.memory = Store(memory)
        self.gallery = Gallery(models, self.memory)
        rates = self._rates = Rates()
        # A block and a tile are small: one thread computes each, and several are computed in parallel. Large files and
        # exports have separate queues, so that tiles do not wait for them.
        self._tiles = Worker("tiles", threads, _prepare(1))
        self._blocks = BlockJobs(self._tiles, self.memory, rates)
        self._reading = Worker("reading", 1, _prepare(1))
        self._exporting = Worker("exporting", 1, _prepare(threads, EXPORT_NICENESS))
        self.files = FileJobs(self.gallery, self._exporting, rates, threads)

    # Pictures

    def hold(self, size: int, what: str) -> AbstractContextManager[None]:
        """Count `size` bytes towards the memory for the duration of a block."""
        return self.memory.reserve(size, what)

    def open(self, data: bytes, name: str) -> Task[str]:
        """Decode a picture file and store it; the result is an id that cannot be guessed."""

        def work(_progress: Progress) -> str:
            head = read_head(data)
            pixels = head.size[0] * head.size[1] if head else 0
            with self.hold(DECODING_BYTES_PER_PIXEL * pixels * (pixels <= self.limits.pixels), name):
                picture = read(data, max_pixels=self.limits.pixels, name=name)
            opened = Opened(secrets.token_urlsafe(16), name, picture, len(data))
            self.gallery.add(opened)
            return opened.id

        if len(data) <= SMALL_FILE_BYTES:
            return self._tiles.submit(work, FIRST)
        return self._reading.submit(work, (len(data), 0))

    # Models

    def load(self, model: str) -> Task[None]:
        """Load a model unless it is loaded."""
        if model in FILTERS or self.gallery.models.is_loaded(model):
            return Task.finished(None)
        return self._tiles.submit(lambda _: self.gallery.models.load(model) and None, FIRST)

    def state(self, picture: str, model: str) -> State:
        """Versions of the kernel integral: the newest that is known, and how many there will be.

        Each call starts some work on the missing ones. The model has to be loaded.
        """
        field = self.gallery.field(self.gallery.opened(picture), model)
        self._blocks.settle(field)
        return {"version": field.version, "versions": field.versions}

    # Tiles

    def tile(self, picture: str, tile: Tile, around: Tile | None = None, *, replaces: bool = False) -> Task[bytes]:
        """A part of a picture at a zoom level, as a PNG. A model has to be loaded.

        `around` is the window that the tile is part of: its tiles share what they need. A tile that `replaces` one with
        an earlier version of the integral is computed after those of all windows that have none.
        """
        opened, key = self.gallery.opened(picture), ("tile", picture, tile)
        tile.check(opened.size)
        if around is not None:
            around.check(opened.size, LARGEST_WINDOW_PIXELS)
        if tile.source not in FILTERS:
            self.gallery.models.check(tile.source)
        known = self.memory.get(key, bytes)
        if known is not None:
            return Task.finished(known)
        if tile.is_operator(opened.size):
            return self._evaluate(opened, tile, around, key, priority(opened, RENDER, replaces=replaces))
        # Below ×1 nothing is enlarged, and the tile of a model is bicubic.
        reduce, box = FILTERS.get(tile.source, bicubic), tile.box(opened.size)
        return self._tiles.submit(lambda _: self._keep(key, as_png(reduce(opened, box, tile.rect[2:]))), FIRST)

    def _evaluate(self, opened: Opened, tile: Tile, around: Tile | None, key: Hashable, order: Priority) -> Task[bytes]:
        """Queue a tile behind the blocks and sample windows that it needs."""
        field = self.gallery.field(opened, tile.source)
        version = self._version(field, tile)

        def work(progress: Progress) -> bytes:
            progress(0.0)
            with (
                self.memory.reserve(RENDER_MEMORY, "a tile", strict=False),
                self._rates.measure(tile.source, "render", tile.rect[2] * tile.rect[3]),
            ):
                image = evaluate(opened, field, tile.box(opened.size), tile.rect[2:], tile.version, progress)
                return self._keep(key, as_png(image))

        shared = None if around is None else around.region(opened.size)
        needs = self._blocks.needs(opened, field, tile.region(opened.size), version, shared)
        return self._blocks.after(needs, lambda jobs: self._tiles.submit(work, order, jobs))

    def inside(self, picture: str, view: Tile) -> Task[State]:
        """What the operator computes on its way to a window, as maps. The model has to be loaded."""
        opened = self.gallery.opened(picture)
        view.check(opened.size, LARGEST_WINDOW_PIXELS)
        field = self.gallery.field(opened, view.source)
        if not view.is_operator(opened.size):
            raise SRNOError("below ×1 nothing is enlarged, and the operator is not evaluated: zoom in")
        version, region = self._version(field, view), view.region(opened.size)

        def work(progress: Progress) -> State:
            progress(0.0)
            with self.memory.reserve(RENDER_MEMORY, "the maps", strict=False):
                channels = self._channels(field)
                groups = look_inside(field, (view.level[1], view.level[0]), region, version, channels, progress)
                return describe(groups) | {"version": version}

        needs = self._blocks.needs(opened, field, region, version)
        return self._blocks.after(needs, lambda jobs: self._tiles.submit(work, priority(opened, RENDER), jobs))

    def _channels(self, field: BlockField) -> Channels:
        """The channels that are shown of a picture, chosen once."""
        key = ("channels", field.key)
        channels = self.memory.get(key, Channels)
        if channels is None:
            channels = choose_channels(field)
            self.memory.offer(key, channels, CHANNELS_BYTES)
        return channels

    def _version(self, field: BlockField, tile: Tile) -> int:
        version = field.versions if tile.version is None else tile.version
        if not 1 <= version <= field.versions:
            raise SRNOError(f"version {version}: this picture has {field.versions}")
        return version

    def _keep(self, key: Hashable, data: bytes) -> bytes:
        self.memory.offer(key, data, len(data))
        return data

    # Files

    def estimate(self, picture: str, fields: Mapping[str, Any]) -> Task[State]:
        """What an export will cost; the model has to be loaded."""
        return self._tiles.submit(lambda _: self.files.estimate(picture, fields), FIRST)

    # Life

    def close(self) -> None:
        """Cancel all jobs."""
        for worker in self._workers:
            worker.close()

    def join(self, seconds: float) -> bool:
        """Wait for jobs that were cancelled; return whether all of them stopped in time."""
        end = time.monotonic() + seconds
        return all(worker.join(max(0.0, end - time.monotonic())) for worker in self._workers)

    @property
    def _workers(self) -> tuple[Worker, ...]:
        return self._tiles, self._reading, self._exporting


def bundled_examples() -> dict[str, Path]:
    """The pictures that come with the package: file names and paths, in alphabetical order."""
    folder = Path(str(files("srno"))) / "examples"
    suffixes = {suffix for capability in CAPABILITIES.values() for suffix in capability.suffixes}
    return {path.name: path for path in sorted(folder.glob("*")) if path.suffix.lower() in suffixes}


def _prepare(threads: int, nice: int = 0) -> Callable[[], None]:
    """Make the function that a worker thread calls first: it sets the thread count and the niceness."""

    def prepare() -> None:
        # Both settings belong to the calling thread: the thread count of torch, and on Linux the niceness.
        torch.set_num_threads(threads)
        if nice and sys.platform == "linux":
            thread = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + nice))

    return prepare
