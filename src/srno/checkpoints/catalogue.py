"""The models that ship with the package, loading and saving by name or path, and how strongly they clean a picture."""

import json
import os
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from srno.checkpoints.build import create_model
from srno.checkpoints.native import Card, Checkpoint, read_metadata, read_native, write_checkpoint
from srno.checkpoints.public import read_public
from srno.config import ModelConfig
from srno.errors import SRNOError
from srno.operator.model import Model

if TYPE_CHECKING:
    from srno.imaging.picture import Compression

DEFAULT_MODEL = "light"
CLEANING_WEIGHTS = {"light": "photo"}
"""Shipped models, and the shipped weights that were fine-tuned from each of them on compressed and noisy pictures."""
UNCOMPRESSED_BITS = 24.0
"""Bits of a pixel of three channels of 8 bits."""
STRENGTH_STEP = 0.05
"""Strengths are rounded to multiples of this, so that a folder of pictures needs few mixed models."""


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """A model inside the package."""

    path: Path
    config: ModelConfig
    card: Card

    @property
    def parameters(self) -> int:
        with torch.device("meta"):
            return sum(parameter.numel() for parameter in create_model(self.config).parameters())


def shipped_models() -> list[Shipped]:
    """List the models that the package ships, the default first."""
    paths = sorted(_weights_folder().glob("*.safetensors"), key=lambda path: (path.stem != DEFAULT_MODEL, path.stem))
    shipped: list[Shipped] = []
    for path in paths:
        config, card = read_metadata(path)
        shipped.append(Shipped(path=path, config=config, card=card))
    return shipped


def list_models() -> list[str]:
    """List the names of the models that the package ships, the default first.

    >>> import srno
    >>> "light" in srno.list_models()
    True
    """
    return [model.path.stem for model in shipped_models()]


def find(name_or_path: str | Path) -> Path:
    """Return the file of a shipped name, `default`, a path, or the folder of a training run."""
    if not isinstance(name_or_path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SRNOError(f"{type(name_or_path).__name__} is no model; give a shipped name or the path of a checkpoint")
    path = Path(name_or_path)
    if path.is_file():
        return path
    if path.is_dir():
        return _weights_of_run(path)
    name = DEFAULT_MODEL if str(name_or_path) == "default" else str(name_or_path)
    shipped = _weights_folder() / f"{name}.safetensors"
    if path.name == str(name_or_path) and shipped.is_file():
        return shipped
    known = ", ".join(entry.stem for entry in _weights_folder().glob("*.safetensors")) or "none"
    raise SRNOError(f"no model {str(name_or_path)!r}: neither a file nor a shipped model (shipped: {known})")


def _weights_of_run(folder: Path) -> Path:
    """The best weights of a training run, or else the last."""
    for name in ("best.safetensors", "last.safetensors"):
        if (folder / name).is_file():
            return folder / name
    raise SRNOError(f"{folder} is a folder without best.safetensors or last.safetensors; give a run's folder or a file")


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a file of our format or a public checkpoint; the content decides which."""
    try:
        with path.open("rb") as file:
            start = file.read(9)
    except OSError as error:
        raise SRNOError(f"{path}: {error.strerror}") from None
    # safetensors begin with the length of a JSON header; pickles and zip archives have no brace there
    if start[8:9] == b"{":
        return read_native(path)
    if not start.startswith((b"PK\3\4", b"\x80")):
        raise SRNOError(f"{path}: not a checkpoint, neither safetensors nor a .pth file")
    return read_public(path)


def can_clean(name_or_path: str | Path) -> bool:
    """Whether there are weights to mix a model with for compressed pictures."""
    path = find(name_or_path)
    return path.parent == _weights_folder() and path.stem in CLEANING_WEIGHTS


def read_cleaning(name_or_path: str | Path, clean: float) -> Checkpoint:
    """Read a model, mixed linearly with its weights for compressed pictures: 0 is the model, 1 those weights.

    The latter were fine-tuned from the former, so that weights between the two work as well as either.
    """
    path = find(name_or_path)
    checkpoint = read_checkpoint(path)
    if clean == 0:
        return checkpoint
    if not can_clean(path):
        raise SRNOError(f"clean {clean:g}: {path.name} has no weights for compressed pictures; {_cleaning_advice()}")
    other = read_checkpoint(_weights_folder() / f"{CLEANING_WEIGHTS[path.stem]}.safetensors")
    mixed = {name: torch.lerp(tensor, other.state[name], clean) for name, tensor in checkpoint.state.items()}
    return replace(checkpoint, state=mixed)


def _cleaning_advice() -> str:
    return f"choose the model {' or '.join(CLEANING_WEIGHTS)}, or clean 0"


def load(
    name: str | Path = "default",
    *,
    device: torch.device | str = "cpu",
    encoder: nn.Module | None = None,
    clean: float = 0.0,
) -> Model:
    """Load a model in evaluation mode: a shipped name, `default`, a checkpoint, ours or public, or a run's folder.

    `encoder` is an instance of the custom encoder if the model was saved with one; no code named in a file is run.
    `clean`, from 0 to 1, mixes `light` with weights that remove compression artefacts.

    >>> import srno
    >>> srno.load("default").training
    False
    """
    if not 0 <= clean <= 1:
        raise SRNOError(f"clean {clean!r}: give a number from 0 to 1")
    model = read_cleaning(name, clean).model(encoder)
    try:
        return model.to(device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError):
        raise SRNOError(f"device {device!r} is not available; give cpu, cuda, cuda:N or mps") from None


def save(model: Model, path: str | Path, *, card: Card | None = None) -> None:
    """Write a model as safetensors with its config and a card (name, licence, data, recipe, results).

    >>> import srno, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> srno.save(srno.create_model("light"), path)
    >>> srno.load(path).config == srno.preset("light")
    True
    """
    if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SRNOError(f"model is a {type(model).__name__}; give a model, such as one from srno.load")
    if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SRNOError(f"path {path!r}: give the path of the file to write")
    if card is not None and not isinstance(card, Card):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SRNOError(f"card is a {type(card).__name__}; give srno.Card(name=…, licence=…, data=…, recipe=…)")
    path = Path(path)
    checkpoint = Checkpoint(config=model.config, state=model.state_dict(), card=card or Card(name=path.stem))
    write_checkpoint(checkpoint, path)


def _weights_folder() -> Path:
    return Path(str(files("srno"))) / "weights"


def choose_strength(compression: "Compression") -> float:
    """The strength from 0 to 1 for a compression, interpolated between the levels that were measured."""
    levels, strengths = _strength_table()[compression.codec]
    return round(round(_interpolate(compression.level, levels, strengths) / STRENGTH_STEP) * STRENGTH_STEP, 2)


@cache
def _strength_table() -> dict[str, tuple[list[float], list[float]]]:
    """Levels in ascending order and the best strength of each, by codec: `tools/measure_clean.py` writes them.

    Beyond the best files that were measured, the strength falls to zero: at quality 100 of JPEG, and at the bits of an
    uncompressed pixel.
    """
    codecs = json.loads((files("srno") / "weights" / "clean.json").read_text())["codecs"]
    best = {codec: 100.0 if codec == "jpeg" else UNCOMPRESSED_BITS for codec in codecs}
    return {codec: ([*one["levels"], best[codec]], [*one["strengths"], 0.0]) for codec, one in codecs.items()}


def _interpolate(x: float, xs: list[float], ys: list[float]) -> float:
    """Piecewise linear, constant beyond the ends."""
    if x <= xs[0]:
        return ys[0]
    for (x0, y0), (x1, y1) in zip(zip(xs, ys, strict=True), zip(xs[1:], ys[1:], strict=True), strict=False):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return ys[-1]
