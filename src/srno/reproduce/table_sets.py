"""The picture sets of the paper's tables, found in the user's folders by name.

DIV2K comes as DIV2K_train_HR beside DIV2K_valid_HR. Only the validation pictures, 0801 to 0900, are ever scored.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet, SetPicture, find_sets

LAST_TRAINING_PICTURE = 800
"""DIV2K numbers its training pictures from 0001 to 0800."""
DIV2K_FOLDERS = "DIV2K_*_HR"


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
