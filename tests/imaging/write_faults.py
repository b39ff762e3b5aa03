"""Write pictures while the system fails, in forked processes; print what became of the files.

python write_faults.py FOLDER [FORMAT …]

For every format, an old file is replaced, and a new one made that must replace none, while (1) one system call on files
fails with EIO, EACCES or ENOSPC, or (2) the process is killed before it, for every such call from the claim on the
result to its end, (3) a write beyond some number of bytes fails, (4) the process is killed there. Between two calls on
files a kill finds the disk as before the second. Prints a line of JSON per fault.
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
import tifffile  # noqa: F401 (srno imports it when it writes a TIFF; faults of an import say nothing about the write)
from PIL import JpegImagePlugin  # noqa: F401 (otherwise each fork imports it, and fails to)

from imaging.system_calls import AVAILABLE, Traced, run_traced
from srno.errors import SRNOError
from srno.files import open_claims, remove_leftovers
from srno.imaging.formats import CAPABILITIES, Format
from srno.imaging.picture import Picture
from srno.imaging.write import NewFile, write

ERRORS = (errno.EIO, errno.EACCES, errno.ENOSPC)
REFUSED, UNEXPECTED = 3, 4
PICTURE = Picture(colour=np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8))
OLD = b"the old file, which may be the input"


def write_claimed(kind: Format, path: Path, *, new: bool) -> int:
    """Write as a batch does, a file that replaces none if it is `new`; the exit code."""
    try:
        with open_claims() as claims:
            if not claims.take(path):
                return REFUSED
            write(PICTURE, NewFile(path) if new else path, format=kind)
    except SRNOError as error:
        return REFUSED if "\n" not in str(error) else UNEXPECTED
    except BaseException:
        return UNEXPECTED
    return 0


def run_limited(work: Callable[[], int], size: int, *, killed: bool) -> int:
    """Run in a fork in which writes beyond so many bytes of a file fail, or end it."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def faults(work: Callable[[], int], whole: Traced | None, size: int) -> Iterator[tuple[str, Callable[[], int]]]:
    """Name of each fault and a function that works under it, for a file of `size` bytes."""
    for number, call in enumerate([] if whole is None else whole.calls, 1):
        yield f"kill at {call}", lambda n=number: run_traced(work, at=n).code
        for error in ERRORS:
            name = f"{errno.errorcode[error]} at {call}"
            yield name, lambda n=number, e=error: run_traced(work, at=n, error=e).code
    for share in (0, 0.01, 0.3, 0.7, 0.999):
        for killed in (False, True):
            name = f"{'kill' if killed else 'full'} at {100 * share:g} %"
            yield name, lambda s=share, k=killed: run_limited(work, int(s * size), killed=k)


def prepare(path: Path, *, new: bool) -> None:
    if new:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(OLD)


def state_of(path: Path, whole: bytes, *, new: bool) -> str:
    """Whether a file is as before, complete, or neither."""
    content = path.read_bytes() if path.exists() else None
    return "old" if content == (None if new else OLD) else "new" if content == whole else "broken"


def report_faults(kind: Format, folder: Path, *, new: bool) -> Iterator[dict[str, object]]:
    """Try every fault with a format; nothing if it cannot be written."""
    path = folder / f"picture{CAPABILITIES[kind].suffixes[0]}"

    def work() -> int:
        return write_claimed(kind, path, new=new)

    prepare(path, new=new)
    if run_limited(work, 1 << 40, killed=False) != 0:
        return  # its package is not installed, or it holds only small pictures
    whole = path.read_bytes()
    prepare(path, new=new)
    for name, attempt in faults(work, run_traced(work) if AVAILABLE else None, len(whole)):
        prepare(path, new=new)
        report: dict[str, object] = {"format": kind, "new": new, "fault": name, "code": attempt()}
        report["content"] = state_of(path, whole, new=new)
        report["left"] = sorted(other.name for other in folder.iterdir() if other != path)
        remove_leftovers(folder)
        report["cleaned"] = [other.name for other in folder.iterdir() if other != path] == []
        yield report
    path.unlink(missing_ok=True)


def main(folder: Path, kinds: list[Format]) -> None:
    """Try every fault with every format, all unless given."""
    for kind in kinds or CAPABILITIES:
        for new in (False, True):
            for report in report_faults(kind, folder, new=new):
                sys.stdout.write(json.dumps(report) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), cast(list[Format], sys.argv[2:]))
