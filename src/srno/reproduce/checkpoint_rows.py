"""Which checkpoint fills which row of the paper, and the commands that train the missing ones."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from srno.checkpoints.catalogue import read_checkpoint, shipped_models
from srno.checkpoints.native import read_metadata
from srno.config import ModelConfig, preset
from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet
from srno.reproduce.published import SEQUENTIAL_SUFFIX, Published
from srno.training.stages import parse_stages

CHECKPOINT_SUFFIXES = (".safetensors", ".pth", ".pt")
TRAINING_DATA = "DATA/DIV2K/DIV2K_train_HR"
"""Folder that the printed commands train on: without DIV2K's validation pictures."""
OWN_RECIPES = frozenset({"liif", "lte", "metasr"})
"""Systems that were published with a recipe of their own, named like them."""


@dataclass(frozen=True, kw_only=True)
class FoundCheckpoint:
    """A checkpoint that can fill a row."""

    name: str
    path: Path
    config: ModelConfig
    sequential: bool = False
    """trained with sequential sampling, which a model config does not show"""
    points: int | None = None
    """supervision points of a sample at the end of training, if known"""
    chosen_on: Path | None = None
    """folder of the validation pictures that chose these weights among those of the run"""
    last: Path | None = None
    """weights at the end of the same run, which no validation chose"""

    def was_chosen_on(self, pictures: PictureSet) -> bool:
        """Whether some of these pictures chose the weights."""
        folder = self.chosen_on
        if folder is None:
            return False
        names = {path.name for path in folder.rglob("*")} if folder.is_dir() else set[str]()
        return any(each.path.is_relative_to(folder) or each.path.name in names for each in pictures.pictures)

    def unchosen(self) -> "FoundCheckpoint":
        """The weights at the end of the same run, or these if there are none."""
        return self if self.last is None else replace(self, path=self.last, chosen_on=None)


def find_checkpoints(folder: Path | None) -> tuple[list[FoundCheckpoint], list[str]]:
    """Find checkpoints and training runs in a folder, or the shipped models; and an error for each unreadable file."""
    if folder is None:
        return [
            FoundCheckpoint(name=each.path.stem, path=each.path, config=each.config) for each in shipped_models()
        ], []
    if not folder.is_dir():
        raise SRNOError(f"--checkpoints {folder} is not a folder")
    found: list[FoundCheckpoint] = []
    unreadable: list[str] = []
    for path in sorted(folder.iterdir()):
        try:
            if path.is_dir():
                found += _in_run(path)
            elif path.suffix in CHECKPOINT_SUFFIXES:
                found.append(_in_file(path))
        except SRNOError as error:
            unreadable.append(str(error))
    return found, unreadable


def _in_file(path: Path) -> FoundCheckpoint:
    side = re.search(r"-(\d+)$", path.stem)
    return FoundCheckpoint(
        name=path.stem,
        path=path,
        config=_config(path),
        sequential=path.stem.endswith("-s"),
        points=int(side[1]) ** 2 if side else None,
    )


def _in_run(run: Path) -> list[FoundCheckpoint]:
    """The best weights of a training run, or the last ones if it has not been validated."""
    best, last = run / "best.safetensors", run / "last.safetensors"
    path = best if best.is_file() else last
    if not path.is_file():
        return []
    settings: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        settings = json.loads((run / "config.json").read_text())
    validation = settings.get("validation")
    return [
        FoundCheckpoint(
            name=run.name,
            path=path,
            config=_config(path),
            sequential=run.name.endswith("-s") or settings.get("sampling") == "sequential",
            points=parse_stages(settings["stages"])[-1][1].points if "stages" in settings else None,
            chosen_on=Path(validation) if validation and path == best else None,
            last=last if path == best and last.is_file() else None,
        )
    ]


def _config(path: Path) -> ModelConfig:
    return read_metadata(path)[0] if path.suffix == ".safetensors" else read_checkpoint(path).config


def match_row(method: str, found: Sequence[FoundCheckpoint], published: Published) -> list[FoundCheckpoint]:
    """Find the checkpoints of a row of the paper by config, the first match of each; several for fixed scales."""
    sequential = method.endswith(SEQUENTIAL_SUFFIX)
    matched: list[FoundCheckpoint] = []
    for name in published.methods[method]:
        if name == "bicubic":
            continue
        config = preset(name)
        matched += [each for each in found if each.config == config and each.sequential == sequential][:1]
    return matched


def training_commands(method: str, published: Published) -> list[str]:
    """The commands that train the checkpoints of a row of the paper."""
    sequential = method.endswith(SEQUENTIAL_SUFFIX)
    flags = " --sampling sequential" if sequential else ""
    return [training_command(name, flags, "-s" if sequential else "") for name in published.methods[method]]


def training_command(name: str, flags: str = "", suffix: str = "") -> str:
    """The command that trains a preset as it was published.

    Fixed-scale networks, of whose training the paper says nothing, get the recipe of LIIF at their factor.
    """
    config = preset(name)
    recipe = config.system if config.system in OWN_RECIPES else "paper"
    if config.only_scale is not None:
        recipe, flags = "liif", f" --r-min {config.only_scale} --r-max {config.only_scale}{flags}"
    out = f"CHECKPOINTS/{name.replace('/', '-')}{suffix}"
    return f"srno train --preset {name} --recipe {recipe}{flags} --data {TRAINING_DATA} --out {out}"
