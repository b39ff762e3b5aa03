"""What the paper's tables are filled from: checkpoints by row, picture sets by name, and commands that train the rest.

DIV2K comes as DIV2K_train_HR beside DIV2K_valid_HR. Only the validation pictures, 0801 to 0900, are ever scored.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from srno.checkpoints.catalogue import read_checkpoint, shipped_models
from srno.checkpoints.native import read_metadata
from srno.config import ModelConfig, preset
from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet, SetPicture, find_sets
from srno.evaluation.evaluate import ReportProgress
from srno.evaluation.protocols import Protocol, Scale
from srno.reproduce.costs import BenchTimes
from srno.reproduce.published import SEQUENTIAL_SUFFIX, Published
from srno.training.stages import parse_stages
from srno.upscaling.upscaler import Upscaler

Watch = Callable[[str], AbstractContextManager[ReportProgress]]
"""Opens a progress display with a title."""

CHECKPOINT_SUFFIXES = (".safetensors", ".pth", ".pt")
TRAINING_DATA = "DATA/DIV2K/DIV2K_train_HR"
"""Folder that the printed commands train on: without DIV2K's validation pictures."""
OWN_RECIPES = frozenset({"liif", "lte", "metasr"})
"""Systems that were published with separate recipes, which have their names."""

LAST_TRAINING_PICTURE = 800
"""DIV2K numbers its training pictures from 0001 to 0800."""
DIV2K_FOLDERS = "DIV2K_*_HR"


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


@dataclass(frozen=True)
class TableSets:
    """Sets to score."""

    sets: tuple[PictureSet, ...]
    left_out: tuple[str, ...] = ()
    """what was not taken, and why"""

    def find(self, name: str) -> PictureSet | None:
        """The set with this name in the paper."""
        wanted = name.casefold()
        return next((each for each in self.sets if each.name.casefold() == wanted), None)


def find_table_sets(folders: Sequence[Path]) -> TableSets:
    """Find the sets in the folders; those of DIV2K become one set of its validation pictures, named DIV2K."""
    found = [each for folder in folders for each in _sets_in(folder)]
    div2k = [each for each in found if each.name.casefold().startswith("div2k")]
    others = [each for each in found if each not in div2k]
    pictures: dict[str, SetPicture] = {}
    for each in sorted(div2k, key=lambda one: "valid" not in one.name.casefold()):
        for picture in each.pictures:
            if not _is_training(each, picture):
                pictures.setdefault(picture.path.stem, _with_ready_files(picture))
    training = [each for each in div2k if any(_is_training(each, picture) for picture in each.pictures)]
    left_out = [f"{each.name}: DIV2K's training pictures are not scored" for each in training]
    if pictures:
        others.insert(0, PictureSet("DIV2K", tuple(pictures.values())))
    return TableSets(tuple(others), tuple(left_out))


def _sets_in(folder: Path) -> list[PictureSet]:
    """The sets of a folder as every command finds them, and DIV2K's one level deeper."""
    deeper = [path for path in sorted(folder.glob(f"*/{DIV2K_FOLDERS}")) if path.is_dir()]
    try:
        found = list(find_sets(folder))
    except SRNOError:
        if not deeper:
            raise
        found = []
    return found + [each for path in deeper for each in find_sets(path)]


def _is_training(pictures: PictureSet, picture: SetPicture) -> bool:
    number = re.fullmatch(r"(\d{4})(?:x\d)?", picture.path.stem)
    if number:
        return int(number[1]) <= LAST_TRAINING_PICTURE
    return "train" in pictures.name.casefold()


def _with_ready_files(picture: SetPicture) -> SetPicture:
    """The picture with DIV2K's own low-resolution files, DIV2K_valid_LR_bicubic/X2/0801x2.png …"""
    folder = picture.path.parent
    ready = folder.with_name(folder.name.replace("_HR", "_LR_bicubic"))
    if picture.ready_folder is not None or ready == folder or not ready.is_dir():
        return picture
    return replace(picture, ready_folder=ready)


@dataclass(frozen=True, kw_only=True)
class TableInputs:
    """Everything that tables are filled from."""

    published: Published
    found: Sequence[FoundCheckpoint]
    sets: TableSets
    upscaler: Upscaler
    watch: Watch
    protocol: Callable[[str], Protocol]
    """the protocol to use, from the name of the table's own"""
    scales: tuple[Scale, ...] | None = None
    """the table's own unless given"""
    cache: Path | None = None
    times: BenchTimes | None = None
