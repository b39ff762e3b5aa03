"""Opened pictures and models, and the field of each pair of them: what tiles and files are computed from."""

import threading
from collections.abc import Mapping
from pathlib import Path

from srno.errors import SRNOError
from srno.field.blocks import BlockField, Pixels
from srno.server.offered_models import Models
from srno.server.opened import Opened
from srno.server.store import Store
from srno.server.tiles import FILTERS


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
