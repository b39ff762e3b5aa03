"""Jobs that lift pictures: pieces and sample windows that tiles wait for, each computed once, small pictures first."""

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from srno.field.block_grid import Piece
from srno.field.blocks import BlockField
from srno.field.field import Region
from srno.operator.encoder import live_channels
from srno.progress import Progress
from srno.server.opened import BLEED_BYTES_PER_PIXEL, Opened
from srno.server.rates import Rates
from srno.server.store import Store
from srno.server.workers import Priority, Shared, Task, Worker

Result = TypeVar("Result")
Needs: TypeAlias = dict[Hashable, Callable[[], Task[Any]]]
"""Jobs that something waits for, by their keys, and how to submit each."""

RENDER, ENCODE = 0, 1
"""Second part of a priority: a tile whose blocks are known is finished before further pieces are encoded."""
REPLACEMENT = 50
"""Added to the first part of a priority: what replaces sharp pixels comes after what shows the first ones."""
LAST: Priority = (99, 0)
"""Of work that no view waits for."""
SMALL_PICTURE_BITS = 20
"""Pictures of up to 2^20 pixels are served before all larger ones, and so on for every power of two."""


def priority(opened: Opened, kind: int, *, replaces: bool = False) -> Priority:
    """Small pictures never wait for large ones, and no first pixels for better ones."""
    return max(0, opened.pixels.bit_length() - SMALL_PICTURE_BITS) + REPLACEMENT * replaces, kind


class BlockJobs:
    """Jobs that encode parts of pictures. They are shared by the tiles that need them, and dropped without one."""

    def __init__(self, worker: Worker, store: Store, rates: Rates) -> None:
        self._worker, self._store, self._rates = worker, store, rates
        self._shared = Shared()
        self._lock = threading.Lock()
        self._settling: set[Hashable] = set()

    def needs(
        self, opened: Opened, field: BlockField, region: Region, version: int, around: Region | None = None
    ) -> Needs:
        """Sample windows and pieces that a tile needs and that are not known yet.

        Tiles of the same window, `around` it, share the pieces.
        """
        order = priority(opened, ENCODE)
        needs: Needs = {}
        if field.version < version:
            needs[*field.key, "samples", version] = lambda: self._worker.submit(
                lambda progress: self._sample(field, version, progress), order
            )
        for piece in field.missing(region, around):
            needs[*field.key, piece] = lambda piece=piece: self._worker.submit(
                lambda progress: self._encode(opened, field, piece, progress), order
            )
        return needs

    def after(self, needs: Needs, submit: Callable[[Sequence[Task[Any]]], Task[Result]]) -> Task[Result]:
        """Submit a job after the jobs that it needs; those run until no job needs them any more."""
        joined: list[Hashable] = []
        try:
            jobs: list[Task[Any]] = []
            for name, start in needs.items():
                jobs.append(self._shared.join(name, start))
                joined.append(name)
            job = submit(jobs)
        except BaseException:
            self._leave(joined)
            raise
        job.future.add_done_callback(lambda _: self._leave(joined))
        return job

    def settle(self, field: BlockField) -> None:
        """Encode the next of the remaining sample windows when there is nothing else to do."""
        with self._lock:
            if field.version >= field.versions or field.key in self._settling:
                return
            self._settling.add(field.key)
        # One batch for each call: a page asks for it only while it does not wait for anything else.
        job = self._worker.submit(lambda _: self._refine(field), LAST)

        def end(_done: Future[None]) -> None:
            with self._lock:
                self._settling.discard(field.key)

        job.future.add_done_callback(end)

    def _leave(self, names: Sequence[Hashable]) -> None:
        for name in names:
            self._shared.leave(name)

    def _encode(self, opened: Opened, field: BlockField, piece: Piece, progress: Progress) -> None:
        progress(0.0)  # stops a job that nothing needs any more
        outer = field.features.cost(piece)
        if not outer:
            return
        fill = 0 if opened.is_filled else BLEED_BYTES_PER_PIXEL * opened.pixels
        self._store.check(fill, f"{opened.name}, which has transparent pixels,")
        with self._store.reserve(4 * live_channels(field.model.encoder) * outer + fill, "a piece", strict=False):
            opened.part(slice(0, 1), slice(0, 1))  # fills in transparent pixels, which is not part of the rate
            with self._rates.measure(str(field.key[-1]), "encode", outer):
                field.features.encode(piece, progress)

    def _sample(self, field: BlockField, version: int, progress: Progress) -> None:
        while field.version < version:
            progress(0.0)
            self._refine(field)

    def _refine(self, field: BlockField) -> None:
        if field.samples is not None:
            with self._store.reserve(field.samples.working_bytes, "samples", strict=False):
                field.refine()
