"""Write pictures while the system fails, in forked processes; print what became of the files.

python write_faults.py FOLDER [FORMAT …]

For every format, an old file is replaced while (1) a system call of the write path fails with EIO, EACCES or ENOSPC,
(2) the process is killed before that call, (3) a write beyond some number of bytes fails, (4) the process is killed
there. Prints a line of JSON for each fault.
"""

import errno
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import numpy as np

from srno.errors import SRNOError
from srno.files import remove_leftovers
from srno.imaging.formats import CAPABILITIES, Format
from srno.imaging.picture import Picture
from srno.imaging.write import write

WATCHED = ("open", "os.rename", "os.link", "os.remove", "os.truncate")
"""Audit events of the system calls that create, rename and remove files."""
ERRORS = (errno.EIO, errno.EACCES, errno.ENOSPC)
MOST_CALLS = 4
"""One more than there are: open, rename, remove, and the opening of libraries' own files."""
REFUSED, UNEXPECTED = 3, 4
OLD = b"the old file, which may be the input"


def picture() -> Picture:
    rng = np.random.default_rng(0)
    return Picture(colour=rng.integers(0, 256, (48, 48, 3), dtype=np.uint8))


def at_event(number: int, folder: Path, act: Callable[[], None]) -> None:
    """Call `act` before the watched system call `number` that concerns the folder."""
    seen = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event in WATCHED and str(folder) in str(arguments[0]):
            seen += 1
            if seen == number:
                act()

    sys.addaudithook(hook)


def fail(number: int) -> None:
    raise OSError(number, os.strerror(number))


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def limit_size(size: int, *, killed: bool) -> None:
    """Let writes beyond so many bytes of a file fail, or end the process."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def faults(folder: Path, size: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Name and preparation of each fault, for a file of `size` bytes."""
    for event in range(1, MOST_CALLS + 1):
        for error in ERRORS:
            yield (
                f"{errno.errorcode[error]} at call {event}",
                lambda e=event, n=error: at_event(e, folder, lambda: fail(n)),
            )
        yield f"kill at call {event}", lambda e=event: at_event(e, folder, kill)
    for share in (0, 0.01, 0.3, 0.7, 0.999):
        for killed in (False, True):
            name = f"{'kill' if killed else 'full'} at {100 * share:g} %"
            yield name, lambda s=share, k=killed: limit_size(int(s * size), killed=k)


def attempt(kind: Format, path: Path, prepare: Callable[[], None]) -> int:
    """Write in a fork; its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            prepare()
            write(picture(), path, format=kind)
            os._exit(0)
        except SRNOError as error:
            os._exit(REFUSED if "\n" not in str(error) else UNEXPECTED)
        except BaseException:
            os._exit(UNEXPECTED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path, kinds: list[Format]) -> None:
    """Try every fault with every format, all unless given."""
    for kind in kinds or CAPABILITIES:
        path = folder / f"picture{CAPABILITIES[kind].suffixes[0]}"
        if attempt(kind, path, lambda: None) != 0:
            continue  # its package is not installed, or it holds only small pictures
        whole = path.read_bytes()
        for name, prepare in faults(folder, len(whole)):
            path.write_bytes(OLD)
            code = attempt(kind, path, prepare)
            content = path.read_bytes() if path.exists() else b""
            left = sorted(other.name for other in folder.iterdir() if other != path)
            remove_leftovers(folder)
            report = {"format": kind, "fault": name, "code": code, "left": left}
            report["content"] = "old" if content == OLD else "new" if content == whole else "broken"
            report["cleaned"] = [other.name for other in folder.iterdir()] == [path.name]
            sys.stdout.write(json.dumps(report) + "\n")
        path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), cast(list[Format], sys.argv[2:]))
