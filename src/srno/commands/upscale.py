"""srno upscale"""

import json
import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Group, Parameter

from srno.commands.options import import_encoder, prepare_computing
from srno.errors import SRNOError
from srno.upscaling.sizes import Request, make_request
from srno.upscaling.upscaler import AlphaBy, Precision, Upscaler

if TYPE_CHECKING:
    from srno.upscaling.jobs import BatchPlan
    from srno.upscaling.naming import Naming

EXIT_SOME_FAILED = 1
EXIT_TASK_FAILED = 2
EXIT_INTERRUPTED = 130

SIZE = Group("Size", sort_key=1)
INPUT = Group("Input", sort_key=2)
OUTPUT = Group("Output", sort_key=3)
LARGE = Group("Large pictures", sort_key=4)
MODEL = Group("Model and device", sort_key=5)
REPORTING = Group("Reporting", sort_key=6)


HELP_EPILOGUE = """\
PNG, JPEG, WebP, TIFF, BMP, GIF, AVIF, JPEG 2000, PNM, TGA and ICO are read, with 8 or 16 bits per channel; HEIC with
srno[heif], JPEG XL with srno[jxl]. Animations and pages are enlarged frame by frame. Transparency, profile, EXIF, XMP
and IPTC stay. A picture that fails does not stop the others.

Exit codes: 0 success, 1 some pictures failed, 2 wrong usage or the failure of a cluster, 130 interrupted.

`srno upscale cat.jpg -s 4`

`srno upscale photos -r -o large --size 3840x2160 --fit cover --skip-existing`
"""

upscale = App(name="upscale", help_epilogue=HELP_EPILOGUE)


def flag(*names: str, group: Group) -> Parameter:
    """A switch that is off unless given."""
    return Parameter(name=names, group=group, negative="", show_default=False)


def option(*names: str, group: Group, hyphen: bool = False, show_default: bool | None = None) -> Parameter:
    """A value; with `hyphen` it may be `-`."""
    return Parameter(name=names, group=group, negative="", allow_leading_hyphen=hyphen, show_default=show_default)


@dataclass(frozen=True, kw_only=True)
class UpscaleFlags(Upscaler):
    """The fields of `Upscaler` as flags of this command."""

    model: Annotated[str, option("--model", "-m", group=MODEL)] = "default"
    ensemble: Annotated[bool, flag("--ensemble", "-x", group=MODEL)] = False
    integral: Annotated[str, option("--integral", group=MODEL)] = "auto"
    precision: Annotated[Precision, option("--precision", group=MODEL)] = "auto"
    clean: Annotated[str, option("--clean", group=MODEL)] = "auto"
    alpha: Annotated[AlphaBy, option("--alpha", group=MODEL)] = "operator"
    memory: Annotated[str | None, option("--memory", group=MODEL)] = None
    device: Annotated[str, option("--device", "-d", group=MODEL)] = "auto"


@upscale.default
def run_upscale(
    *inputs: Annotated[str, Parameter(group=INPUT, allow_leading_hyphen=True)],
    more: Annotated[tuple[str, ...], option("--input", "-i", group=INPUT, hyphen=True, show_default=False)] = (),
    recursive: Annotated[bool, flag("--recursive", "-r", group=INPUT)] = False,
    scale: Annotated[str | None, option("--scale", "-s", group=SIZE)] = None,
    size: Annotated[str | None, option("--size", group=SIZE)] = None,
    fit: Annotated[Literal["contain", "cover", "stretch"] | None, option("--fit", group=SIZE)] = None,
    width: Annotated[int | None, option("--width", group=SIZE)] = None,
    height: Annotated[int | None, option("--height", group=SIZE)] = None,
    output: Annotated[str | None, option("--output", "-o", group=OUTPUT, hyphen=True)] = None,
    format_name: Annotated[str | None, option("--format", "-f", group=OUTPUT)] = None,
    quality: Annotated[int | None, option("--quality", "-q", group=OUTPUT)] = None,
    bit_depth: Annotated[Literal["keep", "8", "16"], option("--bit-depth", group=OUTPUT)] = "keep",
    frames: Annotated[Literal["all", "first"], option("--frames", group=OUTPUT)] = "all",
    no_metadata: Annotated[bool, flag("--no-metadata", group=OUTPUT)] = False,
    compression: Annotated[
        Literal["deflate", "zstd", "jpeg", "none"] | None, option("--compression", group=LARGE)
    ] = None,
    pyramid: Annotated[bool, flag("--pyramid", group=LARGE)] = False,
    resume: Annotated[bool, flag("--resume", group=LARGE)] = False,
    cluster: Annotated[str | None, option("--cluster", group=LARGE)] = None,
    skip_existing: Annotated[bool, flag("--skip-existing", group=OUTPUT)] = False,
    overwrite: Annotated[bool, flag("--overwrite", group=OUTPUT)] = False,
    flags: Annotated[UpscaleFlags, Parameter(name="*")] = UpscaleFlags(),  # noqa: B008 (frozen)
    encoder: Annotated[str | None, option("--encoder", group=MODEL)] = None,
    threads: Annotated[int | None, option("--threads", group=MODEL)] = None,
    verbose: Annotated[bool, flag("--verbose", "-v", group=REPORTING)] = False,
    as_json: Annotated[bool, flag("--json", group=REPORTING)] = False,
) -> None:
    """Enlarge pictures by any factor, or to any size.

    Parameters
    ----------
    inputs
        Files, folders, quoted patterns such as `'photos/**/*.jpg'`, or - for standard input.
    more
        Same as an input without -i.
    recursive
        Include subfolders; the tree is kept.
    scale
        A factor such as 3.7, or two for width and height such as 2x3; 2 if no size is given. Sides round to the nearest
        pixel. Below 1 pictures are reduced by a bicubic filter instead: the model only enlarges.
    size
        WIDTHxHEIGHT, such as 3840x2160.
    fit
        How to fit --size: contain, within the box and in proportion (the default); cover, filling the box with the rest
        cut off evenly; stretch, out of proportion.
    width
        Width in pixels; the height follows.
    height
        Height in pixels; the width follows.
    output
        A file, a folder (same tree and names), a template such as `'big/{stem}_{scale}x.{ext}'` (also `{width}`,
        `{height}`), or - for standard output. Unless given, `{stem}_{scale}x.{ext}` beside the input, or - for -.
    format_name
        png, jpeg, webp, tiff, bmp, gif, avif, jxl, jp2, pnm, tga, ico, zarr (OME-Zarr) or dzi (Deep Zoom). Unless
        given, the output's suffix decides; then PNG, JPEG, TIFF, Zarr and animations are kept, and other formats become
        PNG to avoid losses: GIF has 256 colours, WebP halves the resolution of colour, AVIF and JPEG XL are written
        with 8 bits, HEIC is not written, BMP has no alpha.
    quality
        1 to 100, of JPEG, WebP, JPEG XL (100 is lossless in both) and AVIF; 95 unless given.
    bit_depth
        Bits per channel: as in the input, 8 or 16.
    frames
        Of animations and files with several pages: all (PNG, WebP and GIF hold animations, TIFF holds pages), or the
        first as a single picture.
    no_metadata
        Drop EXIF, XMP, IPTC, comments, resolution and profile; the colours are converted to sRGB so that they look the
        same.
    compression
        Of tiles: deflate, zstd, jpeg or none. Unless given, deflate, and jpeg in Deep Zoom.
    pyramid
        Store reduced levels in TIFF files too; OME-Zarr and Deep Zoom always have them.
    resume
        Resume a picture that was interrupted.
    cluster
        Make pictures on a Dask cluster: the address of its scheduler, such as tcp://host:8786, or local:4 for four
        workers on this machine.
    skip_existing
        Skip pictures whose result exists, so that a second run finishes a folder.
    overwrite
        Replace files that exist; without --overwrite or --skip-existing they are refused.
    encoder
        MODULE:CLASS of a custom encoder, for a model that was trained with one.
    threads
        CPU threads; all cores unless given.
    verbose
        Report each picture: sizes, time and memory.
    as_json
        Print one JSON object per picture on standard output, and no progress.
    """
    with _interruptible():
        request = make_request(scale, size, width, height, fit)
        if quality is not None and not 1 <= quality <= 100:
            raise SRNOError(f"--quality {quality}: it must be from 1 to 100")
        if skip_existing and overwrite:
            raise SRNOError("--skip-existing and --overwrite contradict each other; leave one out")

        from srno.upscaling.naming import parse_output
        from srno.upscaling.room import check_outputs
        from srno.upscaling.sources import report_left_out

        names = [*more, *inputs]
        bits = None if bit_depth == "keep" else int(bit_depth)
        naming = replace(parse_output(output, format_name, bits, names), frames=frames)
        _check_stdout(naming, as_json)
        existing = "skip" if skip_existing else "overwrite" if overwrite else "refuse"
        batch = _plan(names, recursive, request, naming, existing)
        warnings = check_outputs(batch.jobs, bits, quality)
        left_out = report_left_out(names, recursive=recursive, excluded=naming.folder)
        prepare_computing(threads)

        from srno.gigapixel.cluster import open_cluster
        from srno.gigapixel.prepare import LargeSettings
        from srno.upscaling.batch import run
        from srno.upscaling.batch_view import BatchView
        from srno.upscaling.steps import BatchSettings

        upscaler = flags if encoder is None else flags.with_encoder(import_encoder(encoder))
        _ = upscaler.operator  # a model that cannot be loaded is reported before any work
        failed = False
        with ExitStack() as stack:
            workers = None if cluster is None else stack.enter_context(open_cluster(cluster))
            settings = BatchSettings(
                request=request,
                upscaler=upscaler,
                bits=bits,
                quality=quality,
                metadata=not no_metadata,
                frames=frames,
                large=LargeSettings(
                    compression=compression, pyramid=pyramid, resume=resume, overwrite=overwrite, cluster=workers
                ),
            )
            view = stack.enter_context(BatchView(batch, bars=not as_json, verbose=verbose))
            if left_out is not None:
                view.print(left_out)
            for warning in warnings:
                view.print(f"srno: {warning}")
            if verbose:
                view.print(f"model {upscaler.name} on {next(upscaler.operator.parameters()).device}")
            for outcome in run(batch, settings, view):
                failed |= outcome.status == "failed"
                if as_json:
                    sys.stdout.write(json.dumps(outcome.to_dict()) + "\n")
                    sys.stdout.flush()
    if failed:
        # One picture on a cluster is one job, which ends like every failure of the cluster; a folder continues.
        alone = len(batch.jobs) + len(batch.skipped) == 1
        sys.exit(EXIT_TASK_FAILED if cluster is not None and alone else EXIT_SOME_FAILED)


def _plan(
    names: list[str],
    recursive: bool,
    request: Request,
    naming: "Naming",
    existing: Literal["refuse", "skip", "overwrite"],
) -> "BatchPlan":
    from srno.upscaling.jobs import plan_batch
    from srno.upscaling.sources import STDIN, find_sources

    sources = find_sources(names, recursive=recursive, excluded=naming.folder)
    if STDIN in names and sys.stdin.isatty():
        raise SRNOError("- is standard input, which is a terminal; pipe a picture in, such as: srno upscale - < in.png")
    stdin = sys.stdin.buffer.read() if STDIN in names else None
    return plan_batch(sources, stdin, request, naming, existing)


def _check_stdout(naming: "Naming", as_json: bool) -> None:
    if naming.stdout and as_json:
        raise SRNOError("--json and a picture cannot both go to standard output; give --output FILE")
    if naming.stdout and sys.stdout.isatty():
        raise SRNOError("standard output is a terminal; redirect it, such as: srno upscale - > out.png")


@contextmanager
def _interruptible() -> Generator[None]:
    """Exit without a traceback on Ctrl-C or a closed pipe. Finished files stay, and no partial file is left."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        sys.stderr.write(f"srno: interrupted{interrupt}\n")
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # Python flushes the rest of the buffer at exit, which would raise the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write("srno: standard output was closed\n")
        sys.exit(EXIT_INTERRUPTED)
