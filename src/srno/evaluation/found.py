"""Checkpoints in a folder, and which rows of the paper's tables they are."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from srno.checkpoints.catalogue import list_models, read_checkpoint
from srno.checkpoints.native import read_about
from srno.config import ModelConfig, preset
from srno.errors import SRNOError
from srno.evaluation.published import SEQUENTIAL, Published

SUFFIXES = (".safetensors", ".pth", ".pt")
RUN_WEIGHTS = ("best.safetensors", "last.safetensors")
"""What a training run leaves, the better first."""


@dataclass(frozen=True)
class Found:
    """A checkpoint."""

    name: str
    path: Path
    config: ModelConfig
    sequential: bool
    """trained with sequential sampling, which a config does not show"""


def find_checkpoints(folder: Path | None) -> tuple[list[Found], list[str]]:
    """Checkpoints in a folder and training runs below it, or the shipped models; and words on what cannot be read."""
    if folder is None:
        shipped = list_models()
        return [Found(model.path.stem, model.path, model.config, sequential=False) for model in shipped], []
    if not folder.is_dir():
        raise SRNOError(f"--checkpoints {folder} is not a folder")
    entries = [(path.stem, path) for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES and path.is_file()]
    for run in sorted(path for path in folder.iterdir() if path.is_dir()):
        weights = [run / name for name in RUN_WEIGHTS if (run / name).is_file()]
        entries += [(run.name, path) for path in weights[:1]]
    found: list[Found] = []
    unreadable: list[str] = []
    for name, path in entries:
        try:
            found.append(Found(name, path, _config(path), name.endswith("-s") or _run_is_sequential(path)))
        except SRNOError as error:
            unreadable.append(str(error))
    return found, unreadable


def _config(path: Path) -> ModelConfig:
    return read_about(path)[0] if path.suffix == ".safetensors" else read_checkpoint(path).config


def _run_is_sequential(path: Path) -> bool:
    try:
        return json.loads((path.parent / "config.json").read_text())["sampling"] == "sequential"
    except (OSError, ValueError, KeyError, TypeError):
        return False


def match_row(method: str, found: Sequence[Found], published: Published) -> list[Found]:
    """The checkpoints that are this row of the paper: by config, the first of each; several for fixed scales."""
    sequential = method.endswith(SEQUENTIAL)
    matched: list[Found] = []
    for name in published.methods[method]:
        if name == "bicubic":
            continue
        config = preset(name)
        matched += [each for each in found if each.config == config and each.sequential == sequential][:1]
    return matched
