"""Opened pictures and models, and the field of each pair of them: what tiles and files are computed from."""

import threading
from collections.abc import Mapping
from pathlib import Path

from srno.checkpoints.catalogue import STRENGTH_STEP, can_clean
from srno.errors import SRNOError
from srno.field.blocks import BlockField, Pixels
from srno.once import Once
from srno.operator.model import Model
from srno.server.opened import Opened
from srno.server.store import Store
from srno.server.tiles import FILTERS
from srno.upscaling.upscaler import Upscaler

MAX_MIXED_MODELS = 8
"""Mixed models that stay loaded: a drag of the slider makes many, of a few megabytes each."""


class GoneError(SRNOError):
    """The requested object is not in memory."""


class Gallery:
    """Pictures by their ids, models by their names. Threads share it."""

    def __init__(self, models: Mapping[str, Path], store: Store) -> None:
        self.models, self.store = Models(models), store
        self._lock = threading.Lock()

    def add(self, opened: Opened) -> None:
        """Keep a picture until its memory is needed."""
        self.store.put(("picture", opened.id), opened, opened.bytes, opened.name)

    def opened(self, picture: str) -> Opened:
        """The picture with this id."""
        opened = self.store.get(("picture", picture), Opened)
        if opened is None:
            raise GoneError("the picture is no longer in memory; open it again")
        return opened

    def field(self, opened: Opened, model: str) -> BlockField:
        """A picture as a function, by a model."""
        key = ("field", opened.id, self.models.check(model))
        with self._lock:
            field = self.store.get(key, BlockField)
            if field is None:
                field = BlockField(
                    model=self.models.load(model),
                    size=(opened.size[1], opened.size[0]),
                    pixels=self._pixels(opened.id),
                    cache=self.store,
                    key=("block", opened.id, model),
                )
                self.store.offer(key, field, field.bytes)
        return field

    def field_of(self, opened: Opened, source: str) -> BlockField | None:
        """The field of a model; None for a filter."""
        return None if source in FILTERS else self.field(opened, source)

    def _pixels(self, picture: str) -> Pixels:
        """Parts of a picture by its id, so that its field does not keep alive what the store has dropped."""
        return lambda rows, columns: self.opened(picture).part(rows, columns)


class Models:
    """Loads models once; threads may share it."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.paths = dict(paths)
        self._loaded: Once[str, Model] = Once(len(self.paths) + MAX_MIXED_MODELS)

    @property
    def names(self) -> list[str]:
        return list(self.paths)

    @property
    def cleanable(self) -> list[str]:
        """The models that have weights for compressed pictures to be mixed with."""
        return [name for name, path in self.paths.items() if can_clean(path)]

    def check(self, model: str) -> str:
        """Return a model's name; raise an error if there is no such model."""
        self._parse(model)
        return model

    def is_loaded(self, model: str) -> bool:
        return self._loaded.get(self.check(model)) is not None

    def load(self, model: str) -> Model:
        """Return a model; load it if needed."""
        name, clean = self._parse(model)
        return self._loaded(model, lambda: Upscaler(model=self.paths[name], clean=clean).operator)

    def _parse(self, model: str) -> tuple[str, float]:
        """`light@0.65` → light and 0.65; a name with an @ of its own stays a name."""
        if model in self.paths:
            return model, 0.0
        name, _, text = model.rpartition("@")
        steps = {
            f"{number * STRENGTH_STEP:g}": round(number * STRENGTH_STEP, 2)
            for number in range(1, round(1 / STRENGTH_STEP) + 1)
        }
        if name not in self.paths or text not in steps:
            raise SRNOError(f"model {model!r} is unknown; choose {', '.join(self.paths)}")
        if name not in self.cleanable:
            raise SRNOError(f"model {model!r}: {name} cannot clean; choose {' or '.join(self.cleanable) or name}")
        return name, steps[text]
