"""A picture of any size from file to file: prepare, run the passes, clean up."""

import errno
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from srno.errors import SRNOError
from srno.files import locked
from srno.gigapixel.container import Container
from srno.gigapixel.journal import Journal, journal_folder
from srno.gigapixel.local import LocalEngine
from srno.gigapixel.passes import Engine, Report, TileJob
from srno.gigapixel.prepare import LargeRequest, LargeSettings, disk_needs, fingerprint, make_container, plan_tiles
from srno.gigapixel.remote import ClusterEngine
from srno.gigapixel.work import Recipe, TileMaker
from srno.imaging.alpha import CELL, CoarseColours, cell_means, coarse_colours
from srno.imaging.windows import WindowFile, inspect, with_windows
from srno.operator.model import Model

PrintLine: TypeAlias = Callable[[str], None]
"""Takes a line for the user."""


def make_large(
    request: LargeRequest, model: Model, report: Report, print_line: PrintLine = lambda _: None
) -> tuple[str, ...]:
    """Make a large picture; return one line for everything that the format could not store."""
    # Workers may run elsewhere, so no path depends on the current folder.
    request = replace(request, source=Path.cwd() / request.source, output=Path.cwd() / request.output)
    file = inspect(request.source)
    container, notes = make_container(request, file)
    folder = journal_folder(request.output)
    _check_folder(folder, request.settings)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder / "lock", wait=False) as ours:
            if not ours:
                raise OSError(errno.EBUSY, "another process is making this picture")
            _make(request, model, file, container, folder, report, print_line)
        shutil.rmtree(folder)
    except SRNOError:
        if not Journal.has_progress(folder):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise SRNOError(f"{request.output}: cannot be written ({error.strerror or error})") from None
        raise SRNOError(
            f"{request.output}: the disk is full; what is done is kept in {folder}. "
            "Free some room and give the same command with --resume"
        ) from None
    return (*file.like.notes, *notes)


def _make(
    request: LargeRequest,
    model: Model,
    file: WindowFile,
    container: Container,
    folder: Path,
    report: Report,
    print_line: PrintLine,
) -> None:
    facts = fingerprint(request, model, container)
    journal = Journal.resume(folder, facts) if request.settings.resume else _fresh(folder, facts)
    plan, memory = plan_tiles(request, model, file, journal)
    container = replace(container, levels=replace(container.levels, side=plan.side))
    needs = disk_needs(request, model, plan, file, container, folder)
    print_line(f"{plan.count} tiles of {plan.side} pixels; {needs}")
    file = with_windows(file, folder / "source.raw")
    constant, coarse = survey_alpha(file)
    bits = request.bits or file.like.bits
    recipe = Recipe(plan, file, container, bits, request.metadata, memory, folder, constant, coarse)
    maker = TileMaker(model, recipe)
    engine = _engine(request.settings, maker, keep=needs.kept)
    TileJob(maker, journal, engine, report).run(request.output)


def _fresh(folder: Path, facts: dict[str, Any]) -> Journal:
    for path in folder.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return Journal.begin(folder, facts)


def _check_folder(folder: Path, settings: LargeSettings) -> None:
    if (folder / "journal").exists() and not settings.resume and not settings.overwrite:
        raise SRNOError(
            f"{folder} is left of an interrupted run; add --resume to continue, or --overwrite to start again"
        )


def _engine(settings: LargeSettings, maker: TileMaker, *, keep: bool) -> Engine:
    """What does the work on tiles."""
    return LocalEngine(maker, keep=keep) if settings.cluster is None else ClusterEngine(settings.cluster, maker)


BAND_SAMPLES = 1 << 24
"""Samples that are read at once."""


def survey_alpha(file: WindowFile) -> tuple[int | None, CoarseColours | None]:
    """Return the only value of alpha, if there is only one, and the colours under transparency, if some is hidden."""
    if file.like.alpha is None:
        return None, None
    windows, (height, width) = file.open(), file.size
    step = max(1, BAND_SAMPLES // (CELL * width * file.stored[2])) * CELL
    least, largest, hidden = [], [], False
    means, weights = [], []
    for top in range(0, height, step):
        picture = windows.read(slice(top, min(top + step, height)), slice(0, width))
        assert picture.alpha is not None
        least.append(int(picture.alpha.min()))
        largest.append(int(picture.alpha.max()))
        hidden |= least[-1] == 0
        mean, weight = cell_means(picture.colour, picture.alpha)
        means.append(mean)
        weights.append(weight)
    constant = least[0] if min(least) == max(largest) else None
    if not hidden or max(largest) == 0:
        return constant, None
    return constant, coarse_colours(np.concatenate(means), np.concatenate(weights))
