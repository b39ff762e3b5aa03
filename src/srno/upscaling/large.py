"""Pictures of a batch that are made tile by tile: those that do not fit into memory, and the tiled formats."""

from collections.abc import Callable

from srno.errors import SRNOError
from srno.gigapixel.budget import in_memory_bytes, process_bytes, resident_bytes
from srno.gigapixel.make import make_large
from srno.gigapixel.ome import is_ome_tiff
from srno.gigapixel.passes import Status
from srno.gigapixel.prepare import LARGE_FORMATS, LargeRequest, LargeSettings
from srno.imaging.formats import LARGE_CAPABILITIES, check_limits
from srno.imaging.picture import Compression
from srno.imaging.read import MAX_PIXELS
from srno.imaging.windows import inspect
from srno.machine import free_memory, parse_memory
from srno.upscaling.jobs import Job
from srno.upscaling.sizes import Size, Target, rows_first
from srno.upscaling.upscaler import Upscaler

TILED_FORMATS_ADVICE = "choose TIFF, OME-Zarr (.zarr) or Deep Zoom (.dzi), which are written tile by tile"


def is_large(job: Job, upscaler: Upscaler, settings: LargeSettings) -> bool:
    """Whether a job is made tile by tile; refuse one that should be and whose format is only written at once."""
    if job.target is None or job.format is None:
        return False
    asked = settings.pyramid or settings.compression is not None
    if asked and job.format not in LARGE_FORMATS:
        flag = "--pyramid" if settings.pyramid else "--compression"
        raise SRNOError(f"{flag}: {job.format} is not written tile by tile; {TILED_FORMATS_ADVICE}")
    if asked or job.format in LARGE_CAPABILITIES or (job.format == "TIFF" and is_ome_tiff(job.output)):
        return True
    width, height = job.target.source
    whole = rows_first(job.target.whole)
    needed, limit = in_memory_bytes(upscaler.operator, (height, width), whole, 4, 8), free_memory()
    if job.format in LARGE_FORMATS:
        return needed > limit or width * height > MAX_PIXELS or _exceeds(upscaler, (height, width), whole)
    if width * height > MAX_PIXELS:
        limit_of_formats = f"more than {MAX_PIXELS / 1e6:.0f} megapixels are not read at once"
        raise SRNOError(f"a picture of {width}×{height} pixels: {limit_of_formats}; {TILED_FORMATS_ADVICE}")
    if needed > limit:
        size = f"{job.target.size[0]}×{job.target.size[1]}"
        gigabytes = f"{needed / 1e9:.1f} GB of memory, and {limit / 1e9:.1f} GB are free"
        raise SRNOError(f"an output of {size} pixels takes {gigabytes}; {TILED_FORMATS_ADVICE}")
    return False


def _exceeds(upscaler: Upscaler, lr: Size, whole: Size) -> bool:
    """Whether the process would take more than `--memory`; less than it has now cannot be meant for all of it."""
    given = 0 if upscaler.memory is None else parse_memory(upscaler.memory)
    if given <= resident_bytes():
        return False
    return process_bytes(upscaler.operator, lr, whole, exact=upscaler.points == "exact") > given


def check_large(job: Job, target: Target, upscaler: Upscaler) -> None:
    """Refuse what is only possible in memory."""
    if upscaler.ensemble or upscaler.alpha == "bicubic":
        name = "--ensemble" if upscaler.ensemble else "--alpha bicubic"
        raise SRNOError(f"{name}: not possible for a picture that is made tile by tile; leave it out")
    if any(new < old for new, old in zip(target.whole, target.source, strict=True)) or target.whole == target.source:
        raise SRNOError(f"{job.format} tile by tile: pictures are only enlarged; choose a scale above 1")
    if job.source.path is None or job.output is None:
        raise SRNOError("a picture that is made tile by tile cannot come from a pipe or go to one; give files")


def enlarge_large(
    job: Job,
    upscaler: Upscaler,
    settings: LargeSettings,
    *,
    bits: int | None,
    quality: int | None,
    metadata: bool,
    report: Callable[[Status], None],
    print_line: Callable[[str], None],
) -> tuple[Target, Compression | None, tuple[str, ...]]:
    """Make one picture tile by tile; return its size, the compression of its source and the notes."""
    target = job.target
    assert target is not None
    assert job.format is not None
    check_large(job, target, upscaler)
    assert job.source.path is not None
    assert job.output is not None
    like = inspect(job.source.path).like
    check_limits(job.format, *target.size, like.channels, bits or like.bits)
    request = LargeRequest(
        source=job.source.path,
        output=job.output,
        format=job.format,
        whole=rows_first(target.whole),
        origin=rows_first(target.origin),
        size=rows_first(target.size),
        bits=bits,
        quality=quality,
        metadata=metadata,
        integral=upscaler.points,
        memory=upscaler.memory,
        settings=settings,
    )
    suited = upscaler.for_picture(like.compression)
    return target, like.compression, make_large(request, suited.operator, report, print_line)
