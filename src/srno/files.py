"""Atomic file writes, lock files, claims on results, and the location of caches."""

import errno
import hashlib
import os
import secrets
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from srno.errors import SRNOError

try:
    import fcntl
except ImportError:  # Windows: there is no lock between processes
    fcntl = None

PARTIAL_SUFFIX = ".partial"
"""Suffix of unfinished files: not one of a picture format, so a search for pictures skips them."""
CLAIM_SUFFIX = ".claim"
"""Suffix of lock files beside the results that processes work on."""


@contextmanager
def replacing(path: Path, *, sync: bool = False, existing: bool = True) -> Generator[BinaryIO]:
    """Open a temporary file beside `path` that is renamed to it at the end, or removed if anything fails.

    With `sync`, the content is on disk before the renaming, so that a power failure cannot leave an empty file. Without
    `existing`, a file that has appeared under that name in the meantime stays, and FileExistsError is raised.
    """
    real = path.resolve()  # replace the target of a symbolic link, not the link
    partial = real.with_name(f".{real.name[:40]}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
    try:
        with ExitStack() as guard:
            with partial.open("x+b") as stream:
                guard.enter_context(_locked_copy(stream))
                yield stream
                if sync:
                    stream.flush()
                    os.fsync(stream.fileno())
            if existing or not _link(partial, real):
                partial.replace(real)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically; create its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, sync=True) as stream:
        stream.write(content)


@contextmanager
def _locked_copy(stream: BinaryIO) -> Generator[None]:
    """Lock a file until it has its name, beyond its closing, so that `remove_leftovers` leaves it alone."""
    if fcntl is None:
        yield
        return
    copy = os.dup(stream.fileno())
    try:
        _lock(copy, wait=False)
        yield
    finally:
        with suppress(OSError):  # the file has its name, and its content was complete before
            os.close(copy)


def _link(partial: Path, real: Path) -> bool:
    """Give a file a second name that must be new; False if the file system has no links and the name is free."""
    try:
        real.hardlink_to(partial)
    except FileExistsError:
        raise
    except OSError:
        if real.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(real)) from None
        return False
    return True


def remove_leftovers(folder: Path) -> None:
    """Remove the hidden files of killed processes from a folder: those that no process has locked."""
    for path in folder.glob(".*"):
        if path.suffix in (PARTIAL_SUFFIX, CLAIM_SUFFIX):
            with suppress(OSError), path.open("r+b") as file:
                if _lock(file.fileno(), wait=False):
                    path.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool) -> Generator[bool]:
    """Hold the lock file `path`; yield False if another process holds it and `wait` is off.

    The lock ends with its process. Without lock support in the system or the file system it always succeeds.
    """
    with _lock_file(path) as descriptor:
        yield _lock(descriptor, wait)


@contextmanager
def claimed(path: Path) -> Generator[bool]:
    """Claim the result `path` by a lock file beside it; yield False if another process has done so.

    The claim ends with its process, and the lock file is removed.
    """
    real = path.resolve()
    digest = hashlib.sha256(os.fsencode(real.name)).hexdigest()[:8]
    claim = real.with_name(f".{real.name[:40]}.{digest}{CLAIM_SUFFIX}")
    while True:
        with _lock_file(claim) as descriptor:
            if not _lock(descriptor, wait=False):
                yield False
                return
            if not _has_name(descriptor, claim):
                continue  # its holder has removed it in the meantime: lock the next one
            try:
                yield True
            finally:
                with suppress(OSError):
                    claim.unlink()
            return


@contextmanager
def _lock_file(path: Path) -> Generator[int]:
    """Open a lock file, created if needed; nothing is written to it, so that closing it cannot lose anything."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        yield descriptor
    finally:
        with suppress(OSError):
            os.close(descriptor)


def _has_name(descriptor: int, path: Path) -> bool:
    """Whether an open file still has this name."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


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


class ResultClaims:
    """The results that this process works on."""

    def __init__(self) -> None:
        self._held: dict[Path, ExitStack] = {}
        self._folders: set[Path] = set()
        self._lock = threading.Lock()

    def take(self, output: Path) -> bool:
        """Claim a result; False if another process works on it. Its folder is created if needed."""
        with self._lock, ExitStack() as stack:
            try:
                self._prepare(output.parent)
                if not stack.enter_context(claimed(output)):
                    return False
            except OSError as error:
                raise SRNOError(f"{output}: cannot be written ({error.strerror or error})") from None
            self._held[output] = stack.pop_all()
        return True

    def release(self, output: Path | None) -> None:
        """End the claim on a result, if this process has one."""
        with self._lock:
            stack = None if output is None else self._held.pop(output, None)
        if stack is not None:
            stack.close()

    def release_all(self) -> None:
        """End all claims."""
        for output in [*self._held]:
            self.release(output)

    def _prepare(self, folder: Path) -> None:
        """Create a folder, and remove what killed processes left in it, once."""
        if folder not in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(folder)
            self._folders.add(folder)


@contextmanager
def open_claims() -> Generator[ResultClaims]:
    """Yield an empty set of claims, and release those that are left at the end."""
    claims = ResultClaims()
    try:
        yield claims
    finally:
        claims.release_all()
