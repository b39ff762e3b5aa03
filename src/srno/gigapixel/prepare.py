"""Decisions before a large picture is made: the format's settings, the tiles, the room on disk, the fingerprint."""

import hashlib
import math
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from srno._version import __version__
from srno.errors import SRNOError, require
from srno.field.quadrature import Integral, integral_points
from srno.gigapixel.bigtiff import BigTiff
from srno.gigapixel.budget import LARGEST_SIDE, STORED_TILE, choose_pieces, memory_limit
from srno.gigapixel.container import Compression, Container, check_jpeg
from srno.gigapixel.deep_zoom import DeepZoom
from srno.gigapixel.journal import Journal
from srno.gigapixel.levels import Levels, level_count
from srno.gigapixel.ome import is_ome_tiff
from srno.gigapixel.ome_zarr import OmeZarr
from srno.gigapixel.tile_plan import TilePlan
from srno.imaging.file_sizes import Estimate, detail_of, estimate_from, likely_bytes
from srno.imaging.formats import Format
from srno.imaging.picture import Picture
from srno.imaging.windows import WindowFile
from srno.imaging.write import DEFAULT_QUALITY, adapt
from srno.machine import describe_bytes
from srno.operator.encoder import channels, radius
from srno.operator.model import Model

if TYPE_CHECKING:
    from srno.gigapixel.cluster import Cluster

LARGE_FORMATS: tuple[Format, ...] = ("TIFF", "ZARR", "DZI")
"""Formats that are written tile by tile."""
SMALL_WINDOW_SHARE = 0.05
"""Share of a picture that is encoded twice rather than kept."""
KEPT_SHARE = 0.8
"""Share of the free disk that features may take."""
_CONTAINERS: dict[Format, type[Container]] = {"TIFF": BigTiff, "ZARR": OmeZarr, "DZI": DeepZoom}


@dataclass(frozen=True, kw_only=True)
class LargeSettings:
    """How large results are stored and made."""

    compression: Compression | None = None
    """None is deflate, and JPEG for Deep Zoom."""
    pyramid: bool = False
    """Reduced levels in a TIFF file; the other formats always have them."""
    resume: bool = False
    overwrite: bool = False
    cluster: "Cluster | None" = None
    """Workers that do the work; None is this process."""
    side: int | None = None
    """Pixels along a side of a work tile; None follows from the memory."""
    tile: int = STORED_TILE
    """Pixels along a side of a stored tile."""


@dataclass(frozen=True, kw_only=True)
class LargeRequest:
    """One picture to make. Sizes are (height, width)."""

    source: Path
    output: Path
    format: Format
    whole: tuple[int, int]
    """Size of the enlarged picture."""
    origin: tuple[int, int]
    """Top and left of the output in it."""
    size: tuple[int, int]
    """Size of the output."""
    bits: int | None = None
    quality: int | None = None
    metadata: bool = True
    integral: Integral = "auto"
    memory: str | int | None = None
    settings: LargeSettings = field(default_factory=LargeSettings)


@dataclass(frozen=True)
class Needs:
    """Bytes that a job takes on disk beside the output, and for the output at most."""

    source: int
    features: int
    output: int
    journal: int
    """Lifted points, or sums of tiles."""
    kept: bool
    """Whether features are kept, or computed in every pass."""
    missing: int = 0
    """Bytes that the disk is likely to lack."""

    def __str__(self) -> str:
        parts = [f"up to {describe_bytes(self.output)} for the result"]
        parts += [f"{describe_bytes(self.features)} for features"] if self.kept else []
        parts += [f"{describe_bytes(self.journal)} for the journal"] if self.journal else []
        parts += [f"{describe_bytes(self.source)} for a copy of the source"] if self.source else []
        warning = f"; the disk is likely to lack {describe_bytes(self.missing)}" if self.missing else ""
        return "on disk: " + ", ".join(parts) + warning


def plan_tiles(request: LargeRequest, model: Model, file: WindowFile, journal: Journal) -> tuple[TilePlan, int]:
    """Decide the tiles; a resumed job keeps those that it began with."""
    layers, points = len(model.kernel_layers()), integral_points(request.integral, request.whole)
    scale = request.whole[0] / file.size[0], request.whole[1] / file.size[1]
    began = journal.entries("side").get(())
    side = int(began) if began else request.settings.side
    limit, most = memory_limit(request.memory), LARGEST_SIDE
    if request.settings.cluster is not None:
        limit = request.settings.cluster.memory_limit(request.memory)
        most = request.settings.cluster.largest_side(request.size)
    pieces = choose_pieces(model, file, scale, limit, points=points, side=side, most=most)
    if not began:
        journal.add("side", (), str(pieces.side).encode())
    halo = radius(model.encoder)
    plan = TilePlan(
        file.size, request.whole, request.origin, request.size, pieces.side, halo, layers, points if layers else None
    )
    return plan, pieces.memory


def make_container(request: LargeRequest, file: WindowFile) -> tuple[Container, tuple[str, ...]]:
    """The tiled format with its settings, and what it cannot store."""
    settings, kind = request.settings, request.format
    bits = request.bits or file.like.bits
    like = file.like.with_bits(bits) if bits != file.like.bits else file.like
    like, notes = adapt(like, kind, metadata=request.metadata)
    default: Compression = "jpeg" if kind == "DZI" and like.alpha is None else "deflate"
    compression = settings.compression or default
    _check_compression(kind, compression, like)
    smallest = 1 if kind == "DZI" else settings.tile
    count = level_count(request.size, smallest) if settings.pyramid or kind != "TIFF" else 1
    levels = Levels(request.size, count, settings.tile, settings.tile)
    ome = {"ome": True} if kind == "TIFF" and is_ome_tiff(request.output) else {}
    return _CONTAINERS[kind](levels, like, compression, request.quality or DEFAULT_QUALITY, **ome), notes


def _check_compression(kind: Format, compression: Compression, like: Picture) -> None:
    if compression == "jpeg":
        if kind == "ZARR":
            raise SRNOError("--compression jpeg: OME-Zarr holds deflate, zstd or none")
        check_jpeg(like, "--compression jpeg")
    if kind == "DZI" and compression in ("zstd", "none"):
        raise SRNOError(f"--compression {compression}: Deep Zoom holds jpeg, or deflate as PNG")
    if compression == "zstd":
        require("numcodecs.zstd", "cluster")


def disk_needs(
    request: LargeRequest, model: Model, plan: TilePlan, file: WindowFile, container: Container, folder: Path
) -> Needs:
    """Count the bytes on disk, and refuse a job that cannot fit; what an interrupted run has taken is counted.

    A job that is likely not to fit begins all the same: if the disk becomes full, what is done is kept.
    """
    output = math.prod(request.size) * container.like.channels * container.like.bits // 8
    output += output // 3 if container.levels.count > 1 else 0
    source = file.sample_bytes if file.storage == "stream" else 0
    subjects = 1 if file.like.alpha is None else 2
    features = subjects * _feature_bytes(model, plan) if plan.integral_passes else 0
    journal = subjects * _journal_bytes(model, plan)
    taken = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    free = shutil.disk_usage(folder).free + taken
    fixed = source + journal
    needed = Estimate(fixed, fixed) + _estimate_output(output, request, file, container.compression)
    if needed.least > free:
        raise SRNOError(
            f"{request.output}: this needs {needed} on disk, "
            f"and {describe_bytes(free)} are free; free some room or choose another disk"
        )
    kept = (
        request.settings.cluster is None
        and worth_keeping(plan)
        and 0 < features <= KEPT_SHARE * (free - fixed - output)
    )
    return Needs(source, features, output, journal, kept, max(0, needed.likely - free))


def _estimate_output(output: int, request: LargeRequest, file: WindowFile, compression: Compression) -> Estimate:
    """Estimate the bytes of a result whose samples take `output`."""
    if compression == "none":
        return Estimate(output, output)
    kind: Format = "JPEG" if compression == "jpeg" else "TIFF"
    scale = math.sqrt(math.prod(request.whole) / math.prod(file.size))
    bits = request.bits or file.like.bits
    share = likely_bytes(kind, (1000, 1000), 3, bits, scale=scale, quality=request.quality) / (375_000 * bits)
    stored = request.source.stat().st_size if request.source.is_file() else None
    detail = None if stored is None else detail_of(file.like.format, stored, file.sample_bytes)
    return estimate_from(math.ceil(share * output), detail)


def worth_keeping(plan: TilePlan) -> bool:
    """Whether features save work: not if the windows of the integral's points are a small part of the picture."""
    return plan.integral_passes > 0 and (plan.points is None or plan.window_share > SMALL_WINDOW_SHARE)


def _journal_bytes(model: Model, plan: TilePlan) -> int:
    """Bytes of what the passes of one subject write down: z_0 at the points, or the moments of every tile and layer."""
    layers = model.kernel_layers()
    if plan.points is not None:
        return plan.points * layers[0].query.in_features * torch.float32.itemsize
    widths = ((layer.heads, layer.query.out_features // layer.heads) for layer in layers)
    numbers = sum(heads * (width**2 + 2 * width) + 1 for heads, width in widths)
    return plan.count * numbers * torch.float64.itemsize


def _feature_bytes(model: Model, plan: TilePlan) -> int:
    pixels = sum((y.stop - y.start) * (x.stop - x.start) for y, x in map(plan.window, plan.tiles()))
    return pixels * channels(model.encoder) * next(model.parameters()).element_size()


def fingerprint(request: LargeRequest, model: Model, container: Container) -> dict[str, Any]:
    """What a journal is bound to: source, model and settings."""
    path = request.source.resolve()
    state = (path / "zarr.json" if path.is_dir() else path).stat() if path.exists() else None
    source = [str(path), *(() if state is None else (state.st_size, state.st_mtime_ns))]
    settings = [
        *(request.format, request.whole, request.origin, request.size, request.bits, request.metadata),
        *(request.integral, container.compression, container.quality, asdict(container.levels)),
    ]
    return {"source": source, "model": weights_digest(model), "settings": settings, "version of srno": __version__}


def weights_digest(model: Model) -> str:
    """A checksum of a model's configuration and weights."""
    digest = hashlib.sha256(repr(model.config).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
