"""Whether results can be written: folders that take files, and room on their disks, both before any work.

Only what does not fit by its least size is refused; what does not by its likely size is announced and tried.
"""

import math
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from srno.errors import SRNOError
from srno.gigapixel.journal import journal_folder
from srno.imaging.file_sizes import ENLARGED_SHARES, Estimate, detail_of, estimate_from, likely_bytes
from srno.imaging.formats import CAPABILITIES
from srno.machine import describe_bytes
from srno.upscaling.jobs import Job


def estimate_result(job: Job, bits: int | None, quality: int | None) -> Estimate:
    """Estimate the bytes of a job's result; `bits` per channel are those of the source if they are None.

    Nothing is expected of a job whose source is unreadable, of formats in many files, and of what is left of a picture
    that was interrupted: what is made tile by tile counts for itself.
    """
    if job.target is None or job.kind is None or job.format is None or job.format not in CAPABILITIES:
        return Estimate()
    if job.output is not None and journal_folder(job.output).exists():
        return Estimate()
    scale = math.sqrt(job.target.scale[0] * job.target.scale[1])
    photograph = job.kept_frames * likely_bytes(
        job.format, job.target.size, job.channels, bits or job.bits, scale=scale, quality=quality
    )
    if job.format not in ENLARGED_SHARES:  # stored without compression
        return Estimate(photograph, photograph)
    width, height = job.target.source
    detail = detail_of(job.kind, _file_bytes(job), width * height * job.frames * job.channels * job.bits // 8)
    return estimate_from(photograph, detail)


def check_outputs(jobs: Iterable[Job], bits: int | None = None, quality: int | None = None) -> tuple[str, ...]:
    """Raise an SRNOError if a result cannot be created, or if all together cannot fit on the disk.

    Return a line for every disk that is likely to become full all the same.
    """
    needed: dict[Path, Estimate] = defaultdict(Estimate)
    for job in jobs:
        if job.output is not None:
            needed[job.output.parent] += estimate_result(job, bits, quality)
    disks: dict[int, tuple[Path, Estimate]] = {}
    for folder, estimate in needed.items():
        there = _existing_part(folder)
        _check_writable(there)
        disk = there.stat().st_dev
        disks[disk] = there, estimate + disks.get(disk, (there, Estimate()))[1]
    return tuple(line for there, estimate in disks.values() if (line := _check_room(there, estimate)) is not None)


def check_room_now(job: Job, bits: int | None, quality: int | None) -> None:
    """Raise an SRNOError if the disk has become too full for the result of one job since the batch was planned."""
    if job.output is not None:
        estimate = estimate_result(job, bits, quality)
        free = _free_bytes(_existing_part(job.output.parent))
        if free is not None and estimate.least > free:
            raise SRNOError(f"no room for {job.output}: {estimate}, and {describe_bytes(free)} are free")


def _check_room(folder: Path, estimate: Estimate) -> str | None:
    free = _free_bytes(folder)
    if free is None or estimate.likely <= free:
        return None
    facts = f"{estimate}, and {describe_bytes(free)} are free in {folder}"
    if estimate.least > free:
        raise SRNOError(f"--output: the results take {facts}; free some room, or give another folder with -o")
    return f"the disk may become full: the results take {facts}; those that find no room will fail"


def _file_bytes(job: Job) -> int:
    if job.source.path is None:
        return len(job.data or b"")
    try:
        return job.source.path.stat().st_size
    except OSError:  # it is gone, which is reported when its turn comes
        return 0


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:  # not every file system reports it
        return None


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
