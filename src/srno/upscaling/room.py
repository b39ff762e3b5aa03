"""Check before any work that results can be written: their folders, and the room on the disk."""

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from srno.errors import SRNOError
from srno.imaging.formats import Format, capability_of
from srno.upscaling.jobs import Job

LEAST_SHARE: Mapping[Format, float] = MappingProxyType({"BMP": 1.0, "PNM": 1.0, "TGA": 0.5, "TIFF": 0.1, "PNG": 0.1})
"""Share of the bytes of the samples that a file takes at least, apart from flat pictures; 1/50 in other formats."""


def check_outputs(jobs: Iterable[Job], bits: int | None = None) -> None:
    """Raise an SRNOError if a result cannot be created, or if all of them together do not fit on the disk.

    `bits` are those of the results, None as in the sources, which are taken to be 8.
    """
    needed: dict[Path, int] = defaultdict(int)
    for job in jobs:
        if job.output is not None:
            needed[job.output.parent] += _least_bytes(job, bits or 8)
    disks: dict[int, tuple[Path, int]] = {}
    for folder, size in needed.items():
        there = _existing_part(folder)
        _check_writable(there)
        disk = there.stat().st_dev
        disks[disk] = there, size + disks.get(disk, (there, 0))[1]
    for there, size in disks.values():
        _check_room(there, size)


def _least_bytes(job: Job, bits: int) -> int:
    if job.target is None or job.format is None:
        return 0
    width, height = job.target.size
    stored = capability_of(job.format)
    frames = job.frames if stored.sequence else 1
    depth = min(bits, max(stored.bits))
    return int(LEAST_SHARE.get(job.format, 0.02) * width * height * frames * depth / 8)


def _existing_part(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    folder = folder.absolute()
    return next(there for there in (folder, *folder.parents) if there.exists())


def _check_writable(folder: Path) -> None:
    if not folder.is_dir():
        raise SRNOError(f"--output: {folder} is not a folder")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SRNOError(f"--output: cannot write to {folder} ({error.strerror}); give another folder with -o") from None


def _check_room(folder: Path, needed: int) -> None:
    try:
        free = shutil.disk_usage(folder).free
    except OSError:  # not every file system reports it
        return
    if needed > free:
        raise SRNOError(
            f"--output: the results take at least {needed / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free in {folder}"
        )
