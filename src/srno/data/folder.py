"""Folders of pictures: list the files, and decode one of them to RGB bytes."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from srno.errors import SRNOError

MODES_WITHOUT_RANGE = ("I", "F")
"""Pillow's 32-bit modes: the file does not store which value is white."""


class UnreadableError(Exception):
    """A file that cannot be decoded; the message is the reason, without the file's name."""


@dataclass(frozen=True)
class File:
    """A file as it was when the folder was listed; a change of any field means that it has to be read again."""

    path: Path
    size: int
    mtime_ns: int
    mode: int
    """A file that could not be read may become readable by a change of its permissions alone."""


def list_files(folders: Sequence[Path]) -> tuple[File, ...]:
    """Every file below `folders`, each once, in an order that depends only on the names."""
    found: dict[tuple[int, int], File] = {}
    for folder in folders:
        if not folder.is_dir():
            raise SRNOError(f"{folder} is not a folder; give a folder of pictures")
        for path in _walk(folder.resolve()):
            try:
                status = path.stat()
            except OSError:
                continue  # deleted since it was listed, or a broken link
            if stat.S_ISREG(status.st_mode):  # opening a pipe would block
                identity = status.st_dev, status.st_ino
                found.setdefault(identity, File(path, status.st_size, status.st_mtime_ns, status.st_mode))
    return tuple(found.values())


def _walk(folder: Path) -> Iterator[Path]:
    """Files below `folder`, without hidden ones; follows links to folders, but enters no folder twice."""
    seen: set[str] = set()
    for here, folders, files in os.walk(folder, followlinks=True, onerror=_raise_unlistable):
        seen.add(os.path.realpath(here))
        folders[:] = sorted(f for f in folders if f[0] != "." and os.path.realpath(Path(here, f)) not in seen)
        yield from (Path(here, name) for name in sorted(files) if name[0] != ".")


def _raise_unlistable(error: OSError) -> None:
    raise SRNOError(f"cannot list the folder {error.filename}: {error.strerror}")


def decode(path: Path) -> NDArray[np.uint8]:
    """The picture (its first frame) as (H, W, 3) bytes, fully decoded; alpha is dropped."""
    try:
        with Image.open(path) as image:
            if image.mode in MODES_WITHOUT_RANGE:
                raise UnreadableError(f"32-bit values (mode {image.mode}) have no known range")
            if image.mode.startswith("I;16"):
                image.load()
                return _expand(image)
            return np.asarray(image.convert("RGB"))
    except UnreadableError:
        raise
    except Image.UnidentifiedImageError:
        raise UnreadableError("not a picture that Pillow can read") from None
    except Exception as error:  # Pillow's plugins raise exceptions of many types on damaged files
        detail = error.strerror if isinstance(error, OSError) else None
        raise UnreadableError(f"cannot be decoded: {detail or error or type(error).__name__}") from None


def _expand(image: Image.Image) -> NDArray[np.uint8]:
    """16-bit gray to (H, W, 3) bytes; Pillow's conversion clips everything above 255 to white."""
    gray = (np.asarray(image).astype(np.uint32) + 128) // 257
    return np.repeat(gray.astype(np.uint8)[:, :, None], 3, axis=2)
