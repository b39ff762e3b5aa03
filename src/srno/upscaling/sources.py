"""Find the pictures to read: files, folders, patterns, and `-` for standard input."""

import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from srno.errors import SRNOError
from srno.imaging.formats import EXTRAS, READ_SUFFIXES, is_zarr

STDIN = "-"
MAX_LISTED_SUFFIXES = 6
"""Kinds of left-out files that are listed by name."""


@dataclass(frozen=True)
class Source:
    """A picture to read."""

    path: Path | None
    """None is standard input."""
    relative: Path
    """Path within the folder or pattern that it was found by; only the name if the file itself was given."""
    listed: bool = False
    """Found in a folder, not named by the user."""

    @property
    def name(self) -> str:
        return "standard input" if self.path is None else str(self.path)


def find_sources(inputs: Iterable[str], *, recursive: bool = False, excluded: Path | None = None) -> list[Source]:
    """Find the pictures of `inputs`, each once, in the order given and by name within a folder.

    Folders are listed, with `recursive` including subfolders, except for the folder `excluded`, where results go.
    """
    found: dict[Path | None, Source] = {}
    for text in inputs:
        before = len(found)
        for source in _expand(text, recursive, excluded):
            found.setdefault(source.path and source.path.resolve(), source)
        if len(found) == before and not any(True for _ in _expand(text, recursive, excluded)):
            raise SRNOError(_nothing_found(text, recursive))
    if not found:
        raise SRNOError("no pictures given; name files, folders or patterns, or - for standard input")
    return list(found.values())


def report_left_out(inputs: Iterable[str], *, recursive: bool = False, excluded: Path | None = None) -> str | None:
    """Describe the files of folders and patterns that are not taken: their number and kinds; None if there are none.

    Hidden files are not counted.
    """
    left_out: set[Path] = set()
    for text in inputs:
        path = Path(text)
        if path.is_dir() and not is_zarr(path):
            left_out |= {file for file in _files(path, recursive, excluded) if not _is_picture(file.name)}
        elif glob.has_magic(text) and not path.exists() and text != STDIN:
            root = _fixed_part(path)
            left_out |= {file for file in root.glob(str(path.relative_to(root))) if _is_left_out(file)}
    if not left_out:
        return None
    counts = Counter(file.suffix.lower() or "without suffix" for file in left_out)
    kinds = sorted(counts.items(), key=lambda kind: (-kind[1], kind[0]))
    parts = [f"{count} {kind}{_advice(kind)}" for kind, count in kinds[:MAX_LISTED_SUFFIXES]]
    others = sum(count for _, count in kinds[MAX_LISTED_SUFFIXES:])
    files = "1 file" if len(left_out) == 1 else f"{len(left_out)} files"
    return f"{files} left out: {', '.join(parts)}{f', {others} others' if others else ''}"


def _expand(text: str, recursive: bool, excluded: Path | None) -> Iterator[Source]:
    path = Path(text)
    if text == STDIN:
        yield Source(None, Path("stdin"))
    elif path.is_dir() and not is_zarr(path):
        yield from (Source(file, file.relative_to(path), listed=True) for file in _pictures(path, recursive, excluded))
    elif path.exists():
        yield Source(path, Path(path.name))
    elif glob.has_magic(text):
        root = _fixed_part(path)
        yield from (Source(file, file.relative_to(root)) for file in _matches(root, path.relative_to(root)))
    elif text.startswith("-"):
        raise SRNOError(f"unknown option {text}; a file of that name would be ./{text}")
    else:
        raise SRNOError(f"{text}: no such file or folder")


def _pictures(folder: Path, recursive: bool, excluded: Path | None) -> Iterator[Path]:
    return (file for file in _files(folder, recursive, excluded) if _is_picture(file.name))


def _files(folder: Path, recursive: bool, excluded: Path | None) -> Iterator[Path]:
    """Yield the files of a folder that are not hidden."""
    for here, folders, files in os.walk(folder, onerror=_refuse):
        below = (name for name in folders if recursive and not name.startswith("."))
        folders[:] = sorted(name for name in below if excluded is None or not _same(Path(here, name), excluded))
        yield from (Path(here, name) for name in sorted(files) if not name.startswith("."))


def _matches(root: Path, pattern: Path) -> Iterator[Path]:
    try:
        files = sorted(root.glob(str(pattern)))
    except ValueError as error:  # such as a**b
        raise SRNOError(f"{root / pattern}: {error}") from None
    yield from (file for file in files if _is_picture(file.name) and file.is_file())


def _is_picture(name: str) -> bool:
    """Decide by the suffix; hidden files are left out, and formats whose package is not installed."""
    suffix = Path(name).suffix.lower()
    return not name.startswith(".") and suffix in READ_SUFFIXES and not _advice(suffix)


def _is_left_out(file: Path) -> bool:
    return not file.name.startswith(".") and not _is_picture(file.name) and file.is_file()


def _advice(suffix: str) -> str:
    """Name the command that installs the package for a suffix, in brackets; empty if none is missing."""
    kind = READ_SUFFIXES.get(suffix)
    module, extra = EXTRAS.get(kind, ("", "")) if kind is not None else ("", "")
    return f" (pip install 'srno[{extra}]')" if module and find_spec(module) is None else ""


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _refuse(error: OSError) -> None:
    raise SRNOError(f"{error.filename}: cannot read this folder ({error.strerror})")


def _fixed_part(pattern: Path) -> Path:
    """The folder before the first part with a wildcard."""
    parts = pattern.parts[:-1]
    fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return Path(*parts[:fixed])


def _nothing_found(text: str, recursive: bool) -> str:
    left_out = report_left_out([text], recursive=recursive)
    others = f"; {left_out}" if left_out else ""
    if not Path(text).is_dir():
        return f"no picture matches {text!r}{others}"
    advice = "" if recursive else "; -r includes subfolders"
    known = ", ".join(sorted(READ_SUFFIXES))
    return f"{text}: no pictures in this folder ({known}){advice}{others}"
