"""All that happens behind the page, without a word of HTTP: open, lift, look, export."""

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from srno.checkpoints.catalogue import load
from srno.errors import SRNOError
from srno.field.field import Field, lift
from srno.imaging.formats import CAPABILITIES
from srno.imaging.read import read
from srno.machine import choose_device
from srno.once import Once
from srno.operator.encoder import channels
from srno.operator.model import Model
from srno.progress import Progress
from srno.server import exports
from srno.server.exports import Exported
from srno.server.opened import Opened
from srno.server.store import Store
from srno.server.tiles import Tile, paint
from srno.server.workers import Task, Worker

NICE = 10
"""How far an export, which nobody watches pixel by pixel, steps back for those who look."""


TILES = 8_000_000
"""Bytes that a view needs beside the picture and its features."""


class GoneError(SRNOError):
    """Something that is no longer in memory, or never was."""


class NotLiftedError(SRNOError):
    """A picture that has to be lifted before it can be seen through this model."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What may be opened."""

    bytes: int = 100_000_000
    pixels: int = 16_000_000


class Studio:
    """Pictures, what models make of them, and the workers that compute it."""

    def __init__(
        self,
        models: Mapping[str, Path],
        *,
        memory: int,
        threads: int,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        examples: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self.models, self.examples, self.limits, self.threads = dict(models), dict(examples), limits, threads
        self._store = Store(memory)
        self._models: Once[str, Model] = Once(len(self.models))
        # Tiles are small: each takes one thread, and so many are computed at once. Lifts and exports have queues of
        # their own, so that no view waits for them.
        self._tiles = Worker("tiles", threads, _prepare(1))
        self._lifting = Worker("lifting", 1, _prepare(threads))
        self._exporting = Worker("exporting", 1, _prepare(threads, NICE))

    def open(self, data: bytes, name: str) -> Task[Opened]:
        """Decode a picture file and keep it under an id that cannot be guessed."""

        def work(_progress: Progress) -> Opened:
            picture = read(data, max_pixels=self.limits.pixels, name=name)
            opened = Opened(secrets.token_urlsafe(16), name, picture)
            self._store.put(("picture", opened.id), opened, opened.bytes)
            return opened

        return self._tiles.submit(work)

    def opened(self, picture: str) -> Opened:
        """The picture with this id."""
        opened = self._store.get(("picture", picture), Opened)
        if opened is None:
            raise GoneError("the picture is no longer in memory; open it again")
        return opened

    def lift(self, picture: str, model: str) -> Task[None]:
        """Lift a picture with a model, unless that is done."""
        opened, key = self.opened(picture), ("field", picture, self._known(model))

        def work(progress: Progress) -> None:
            if self._store.get(key, Field) is None:
                operator = self._load(model)
                size = bytes_when_lifted(operator, opened.size)
                self._store.check(size + opened.bytes + TILES, f"{opened.name}, lifted by {model},")
                self._store.put(key, lift(operator, opened.tensor(), progress=progress), size)

        return self._lifting.submit(work)

    def tile(self, picture: str, tile: Tile) -> Task[bytes]:
        """A part of a picture at a zoom level, as a PNG."""
        opened = self.opened(picture)
        tile.check(opened.size)
        key = ("tile", picture, tile)
        lifted = self._lifted(picture, tile.source) if tile.enlarges(opened.size) else None

        def work(progress: Progress) -> bytes:
            progress(0.0)
            data = self._store.get(key, bytes)
            if data is None:
                data = paint(opened, lifted, tile, progress)
                self._store.put(key, data, len(data))
            return data

        return self._tiles.submit(work, urgency=int(lifted is not None))

    def export(self, picture: str, given: Mapping[str, Any]) -> Task[str]:
        """Begin an export; its result is the id of the file."""
        opened, model = self.opened(picture), self._known(str(given.get("model")))
        order = exports.read_order(given, opened.picture)

        def work(progress: Progress) -> str:
            done = exports.export(opened, self._load(model), order, progress)
            name = secrets.token_urlsafe(16)
            self._store.put(("export", name), done, len(done.data))
            return name

        return self._exporting.submit(work)

    def exported(self, name: str) -> Exported:
        """A finished export."""
        done = self._store.get(("export", name), Exported)
        if done is None:
            raise GoneError("the exported file is no longer in memory; export it again")
        return done

    def close(self) -> None:
        """Call off all work."""
        for worker in self._workers:
            worker.close()

    def join(self, seconds: float) -> bool:
        """Wait for work that was called off; whether all of it has stopped in time."""
        end = time.monotonic() + seconds
        return all(worker.join(max(0.0, end - time.monotonic())) for worker in self._workers)

    @property
    def _workers(self) -> tuple[Worker, ...]:
        return self._tiles, self._lifting, self._exporting

    def _load(self, name: str) -> Model:
        return self._models(name, lambda: load(self.models[name], device=choose_device("auto")))

    def _known(self, model: str) -> str:
        if model not in self.models:
            raise SRNOError(f"model {model!r} is not here; choose {', '.join(self.models)}")
        return model

    def _lifted(self, picture: str, model: str) -> Field:
        lifted = self._store.get(("field", picture, self._known(model)), Field)
        if lifted is None:
            raise NotLiftedError(f"the picture is not lifted by {model}")
        return lifted


def bundled_examples() -> dict[str, Path]:
    """The pictures that come with the package: file names and files, in alphabetical order."""
    folder = Path(str(files("srno"))) / "examples"
    suffixes = {suffix for capability in CAPABILITIES.values() for suffix in capability.suffixes}
    return {path.name: path for path in sorted(folder.glob("*")) if path.suffix.lower() in suffixes}


def bytes_when_lifted(model: Model, size: tuple[int, int]) -> int:
    """Memory of a picture and its features."""
    return 4 * size[0] * size[1] * (3 + channels(model.encoder))


def _prepare(threads: int, nice: int = 0) -> Callable[[], None]:
    """What a worker's thread does first: claim its share of the machine."""

    def prepare() -> None:
        # How many threads an operation may use is kept by the thread that calls it, and so is niceness on Linux.
        torch.set_num_threads(threads)
        if nice and sys.platform == "linux":
            own = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, own, min(19, os.getpriority(os.PRIO_PROCESS, own) + nice))

    return prepare
