"""The engine of one machine: tile after tile, with features in scratch files if the disk has room for them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from torch import Tensor

from srno.field.engine import Integrals
from srno.files import replacing
from srno.gigapixel.container import Stored
from srno.gigapixel.passes import Summed
from srno.gigapixel.tile_plan import WorkTile
from srno.gigapixel.work import Subject, TileMaker
from srno.imaging.picture import Samples


class LocalEngine:
    """Works on one tile at a time."""

    def __init__(self, maker: TileMaker, *, keep: bool) -> None:
        self.maker, self.keep = maker, keep

    def lift(self, subject: Subject, tiles: list[WorkTile]) -> Iterator[Summed]:
        """z_0 at the integral's points of each tile."""
        scattered = not self.keep and self.maker.plan.window_share < 1
        for tile in tiles:
            features = None if scattered else self._features(subject, tile, keep=self.keep)
            yield (tile.index,), self.maker.lift_points(subject, tile, features)

    def sum(self, subject: Subject, layers: Integrals, tiles: list[WorkTile]) -> Iterator[Summed]:
        """Moments of the layer after `layers`, of each tile."""
        for tile in tiles:
            yield (
                (tile.index,),
                self.maker.sum_moments(subject, tile, self._features(subject, tile, keep=self.keep), layers),
            )

    def render(
        self, tiles: list[WorkTile], layers: dict[Subject, Integrals]
    ) -> Iterator[tuple[WorkTile, list[Stored], Samples | None]]:
        """Finished tiles; their features are removed when they have been written down."""
        for tile in tiles:
            features: dict[Subject, Tensor] = {}
            for subject in self.maker.recipe.subjects:
                features[subject] = self._features(subject, tile, keep=False)
            yield tile, *self.maker.render(tile, features, layers)
            for subject in self.maker.recipe.subjects:
                self._path(subject, tile).unlink(missing_ok=True)

    def _features(self, subject: Subject, tile: WorkTile, *, keep: bool) -> Tensor:
        path = self._path(subject, tile)
        if path.exists():
            return self.maker.unpack_features(np.fromfile(path, np.uint8), tile)
        features = self.maker.encode(subject, tile)
        if keep:
            path.parent.mkdir(exist_ok=True)
            with replacing(path) as stream:
                stream.write(self.maker.pack_features(features).data)
        return features

    def _path(self, subject: Subject, tile: WorkTile) -> Path:
        return self.maker.recipe.folder / f"features-{subject}" / str(tile.index)
