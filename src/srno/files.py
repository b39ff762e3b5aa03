"""Files that appear whole or not at all, locks that end with their process, and where caches are kept."""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # not on Windows, where nothing keeps two processes from the same file
    fcntl = None

PARTIAL = ".partial"
"""Ending of unfinished files: not that of a picture, so nothing that looks for pictures finds them."""


@contextmanager
def replacing(path: Path, *, sync: bool = False) -> Generator[BinaryIO]:
    """Open a temporary file beside `path` that takes its name at the end, or is removed if anything fails.

    With `sync`, the content is on the disk before it takes the name, so that a power cut cannot leave an empty file.
    """
    real = path.resolve()  # a link stays a link
    partial = real.with_name(f".{real.name[:40]}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with partial.open("x+b") as stream:
            yield stream
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
        partial.replace(real)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Put `content` at `path`, making its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, sync=True) as stream:
        stream.write(content)


def remove_partial(folder: Path) -> None:
    """Remove what a killed process left unfinished in a folder."""
    for left in folder.glob(f".*{PARTIAL}"):
        left.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool) -> Generator[bool]:
    """Hold the lock file `path`; yields False if another process has it and `wait` is off.

    The lock ends with its process. Where the file system or the system has no locks, it is always had.
    """
    with path.open("w") as file:
        yield _lock(file.fileno(), wait)


def _lock(descriptor: int, wait: bool) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks
    return True


def cache_folder(name: str) -> Path:
    """Where caches of one kind are kept: $XDG_CACHE_HOME/srno/NAME, or the same under ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "srno" / name
