"""The passes over the tiles of a picture: integrals, rendering, coarser levels, the finished file.

An engine does the work on tiles, here or on a cluster, in any order; this module asks for what the journal does not
have yet, and writes down what comes back.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np

from srno.field.engine import Integrals
from srno.gigapixel.container import Stored
from srno.gigapixel.journal import Journal
from srno.gigapixel.tile_plan import WorkTile
from srno.gigapixel.work import Recipe, Subject, TileMaker, add_up
from srno.imaging.picture import Samples

Summed: TypeAlias = tuple[tuple[int, ...], bytes]
"""Numbers of tiles and the sum of their parts of an integral."""


@dataclass(frozen=True)
class Status:
    """How far a job is."""

    name: str
    """Of the pass."""
    number: int
    passes: int
    tile: int
    tiles: int
    pixels_per_second: float
    seconds_left: float | None
    """Of this pass; None until it is known."""

    @property
    def share(self) -> float:
        """Share of the passes that is done."""
        return (self.number - 1 + self.tile / max(1, self.tiles)) / self.passes

    def __str__(self) -> str:
        left = "" if self.seconds_left is None else f", {_duration(self.seconds_left)} left"
        rate = f"{self.pixels_per_second / 1e6:.2f} Mpx/s"
        return f"pass {self.number} of {self.passes}, {self.name}: tile {self.tile} of {self.tiles}, {rate}{left}"


Report: TypeAlias = Callable[[Status], None]


class Engine(Protocol):
    """Does the work on tiles and yields results as they are ready."""

    def lift(self, subject: Subject, tiles: list[WorkTile]) -> Iterator[Summed]:
        """z_0 at the integral's points of each tile."""
        ...

    def sum(self, subject: Subject, layers: Integrals, tiles: list[WorkTile]) -> Iterator[Summed]:
        """Moments of the layer after `layers`, of one or several tiles at once."""
        ...

    def render(
        self, tiles: list[WorkTile], layers: dict[Subject, Integrals]
    ) -> Iterator[tuple[WorkTile, list[Stored], Samples | None]]:
        """Finished tiles."""
        ...


class TileJob:
    """A recipe in progress."""

    def __init__(self, maker: TileMaker, journal: Journal, engine: Engine, report: Report) -> None:
        self.maker, self.journal, self.engine, self.report = maker, journal, engine, report
        self.recipe: Recipe = maker.recipe
        self.plan = maker.plan
        self.passes = len(self.recipe.subjects) * self.plan.integral_passes + 1
        self.number = 0

    def run(self, output: Path) -> None:
        """Do what is left, and give the result its name."""
        container, folder = self.recipe.container, self.recipe.folder
        container.discard(folder, self._records())
        layers: dict[Subject, Integrals] = {}
        for subject in self.recipe.subjects:
            layers[subject] = self._integrate(subject)
        self._render(layers)
        self._coarser_levels()
        container.finish(folder, self._records(), output)

    def _records(self) -> Iterator[bytes]:
        yield from (record for kind in ("tile", "level") for record in self.journal.entries(kind).values() if record)

    # Integrals

    def _integrate(self, subject: Subject) -> Integrals:
        if not self.plan.layers:
            return ()
        if self.plan.points is not None:
            self._collect(f"lift {subject}", self.plan.tiles_with_points(), partial(self.engine.lift, subject))
            found = self.journal.entries(f"lift {subject}")
            return self.maker.layers_from_points([found[key] for key in sorted(found)])
        layers: Integrals = ()
        for number in range(self.plan.layers):
            kind = f"integral {number + 1} of {subject}"
            self._collect(kind, list(self.plan.tiles()), partial(self.engine.sum, subject, layers))
            found = self.journal.entries(kind)
            layers = self.maker.next_layer(layers, add_up([found[key] for key in sorted(found)]))
        return layers

    def _collect(self, kind: str, tiles: list[WorkTile], work: Callable[[list[WorkTile]], Iterator[Summed]]) -> None:
        """Do the work of a pass on the tiles that have no record yet."""
        done = {index for key in self.journal.entries(kind) for index in key}
        waiting = [tile for tile in tiles if tile.index not in done]
        clock = self._clock(kind, tiles, len(done))
        for indices, content in work(waiting) if waiting else ():
            self.journal.add(kind, indices, content)
            clock([self.plan.tile(index) for index in indices])

    # Output

    def _render(self, layers: dict[Subject, Integrals]) -> None:
        tiles = list(self.plan.output_tiles())
        done = self.journal.entries("tile")
        waiting = [tile for tile in tiles if (tile.index,) not in done]
        clock = self._clock("render", tiles, len(done))
        for tile, stored, rest in self.engine.render(waiting, layers) if waiting else ():
            assert tile.place is not None
            if rest is not None:
                self._save_rest(0, tile.place, rest)
            self.journal.add("tile", (tile.index,), self.recipe.container.collect(self.recipe.folder, stored))
            clock([tile])

    def _coarser_levels(self) -> None:
        """Make the levels that are coarser than what a single tile gives, stage by stage."""
        levels, container = self.recipe.container.levels, self.recipe.container
        done = self.journal.entries("level")
        for stage in range(1, levels.stages):
            rows, columns = levels.places(stage)
            for place in ((row, column) for row in range(rows) for column in range(columns)):
                if (stage, *place) in done:
                    continue
                cuts, rest = levels.cut(stage, place, self._gather(stage, place))
                if rest is not None:
                    self._save_rest(stage, place, rest)
                stored = container.store(self.recipe.folder, cuts)
                self.journal.add("level", (stage, *place), container.collect(self.recipe.folder, stored))

    def _gather(self, stage: int, place: tuple[int, int]) -> Samples:
        """Assemble a work tile of a coarser stage from what remains of finer ones."""
        levels, like = self.recipe.container.levels, self.recipe.container.like
        out = np.empty((*levels.stage_tile(stage, place), like.channels), like.colour.dtype)
        for child, where in levels.children(stage, place):
            out[where] = np.load(self._rest_path(stage - 1, child), allow_pickle=False)
        return out

    def _save_rest(self, stage: int, place: tuple[int, int], rest: Samples) -> None:
        path = self._rest_path(stage, place)
        path.parent.mkdir(exist_ok=True)
        np.save(path, rest)  # its tile is journalled later, so a half file is written again

    def _rest_path(self, stage: int, place: tuple[int, int]) -> Path:
        return self.recipe.folder / f"rest-{stage}" / f"{place[0]}_{place[1]}.npy"

    # Progress

    def _clock(self, name: str, tiles: list[WorkTile], done: int) -> Callable[[list[WorkTile]], None]:
        """Begin a pass; return what is called with finished tiles."""
        self.number += 1
        number, start = self.number, time.monotonic()
        count, pixels, left = done, 0, sum(tile.points for tile in tiles[done:])

        def advance(finished: list[WorkTile]) -> None:
            nonlocal count, pixels
            count += len(finished)
            pixels += sum(tile.points for tile in finished)
            rate = pixels / max(1e-9, time.monotonic() - start)
            seconds = max(0, left - pixels) / rate if rate else None
            self.report(Status(name, number, self.passes, count, len(tiles), rate, seconds))

        advance([])
        return advance


def _duration(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"
