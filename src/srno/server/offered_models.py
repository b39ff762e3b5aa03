"""The models that the page offers, by name; `light@0.65` is `light` with `clean` 0.65."""

from collections.abc import Mapping
from pathlib import Path

from srno.checkpoints.catalogue import can_clean
from srno.errors import SRNOError
from srno.once import Once
from srno.operator.model import Model
from srno.upscaling.cleaning import STEP
from srno.upscaling.upscaler import Upscaler

MAX_MIXED_MODELS = 8
"""Mixed models that stay loaded: a drag of the slider makes many, of a few megabytes each."""


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
        steps = {f"{number * STEP:g}": round(number * STEP, 2) for number in range(1, round(1 / STEP) + 1)}
        if name not in self.paths or text not in steps:
            raise SRNOError(f"model {model!r} is unknown; choose {', '.join(self.paths)}")
        if name not in self.cleanable:
            raise SRNOError(f"model {model!r}: {name} cannot clean; choose {' or '.join(self.cleanable) or name}")
        return name, steps[text]
