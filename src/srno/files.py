"""Atomic file writes, lock files, and the location of caches."""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: there is no lock between processes
    fcntl = None

PARTIAL_SUFFIX = ".partial"
"""Suffix of unfinished files: not one of a picture format, so a search for pictures skips them."""


@contextmanager
def replacing(path: Path, *, sync: bool = False) -> Generator[BinaryIO]:
    """Open a temporary file beside `path` that is renamed to it at the end, or removed if anything fails.

    With `sync`, the content is on disk before the renaming, so that a power failure cannot leave an empty file.
    """
    real = path.resolve()  # replace the target of a symbolic link, not the link
    partial = real.with_name(f".{real.name[:40]}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
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
    """Write `content` to `path` atomically; create its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, sync=True) as stream:
        stream.write(content)


def remove_partial(folder: Path) -> None:
    """Remove the unfinished files of killed processes from a folder."""
    for unfinished in folder.glob(f".*{PARTIAL_SUFFIX}"):
        unfinished.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool) -> Generator[bool]:
    """Hold the lock file `path`; yield False if another process holds it and `wait` is off.

    The lock ends with its process. Without lock support in the system or the file system it always succeeds.
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
    """Folder of the caches of one kind: $XDG_CACHE_HOME/srno/NAME, or the same under ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "srno" / name
