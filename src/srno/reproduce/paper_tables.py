"""Reproduce the paper's tables: its numbers beside ours, and the commands that produce the missing ones."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from srno.checkpoints.catalogue import read_checkpoint, shipped_models
from srno.checkpoints.native import read_metadata
from srno.config import ModelConfig, preset
from srno.errors import SRNOError
from srno.evaluation.cost import profile
from srno.evaluation.datasets import PictureSet
from srno.evaluation.evaluate import Report, bicubic
from srno.evaluation.methods import Method, evaluate_method, make_method
from srno.evaluation.protocols import Protocol, Scale, named_protocol
from srno.evaluation.tables import NO_VALUE, markdown_table
from srno.reproduce.published import SEQUENTIAL_SUFFIX, Published, PublishedTable
from srno.upscaling.upscaler import Upscaler

CHECKPOINT_SUFFIXES = (".safetensors", ".pth", ".pt")
RUN_WEIGHTS = ("best.safetensors", "last.safetensors")
"""Weights of a training run, the preferred file first."""
Watch = Callable[[str], AbstractContextManager[Report]]
"""Opens a progress display with a title."""


@dataclass(frozen=True)
class FoundCheckpoint:
    """A checkpoint that can fill a row."""

    name: str
    path: Path
    config: ModelConfig
    sequential: bool
    """trained with sequential sampling, which a config does not show"""


@dataclass(frozen=True, kw_only=True)
class TableInputs:
    """Everything that tables are filled from."""

    published: Published
    found: Sequence[FoundCheckpoint]
    sets: Sequence[PictureSet]
    upscaler: Upscaler
    watch: Watch
    cache: Path | None = None
    max_pixels: int | None = None
    milliseconds: Mapping[str, float] | None = None
    """measured running times by the paper's method names"""


@dataclass(frozen=True)
class Row:
    """A row of a table, and the checkpoints that fill it."""

    name: str
    found: tuple[FoundCheckpoint, ...]


def reproduce_table(name: str, inputs: TableInputs) -> str:
    """Format a table of PSNRs as Markdown: one part per set, then the commands for the missing numbers."""
    table = inputs.published.tables[name]
    protocol = named_protocol(table.protocol, max_pixels=inputs.max_pixels)
    rows = _rows(table, inputs)
    by_set = {data: find_set(data, inputs.sets) for data in table.psnr}
    elsewhere = [find_set(data, inputs.sets) for each in inputs.published.tables.values() for data in each.psnr]
    others = [each for each in inputs.sets if each not in elsewhere]
    methods = {row.name: _method(row, inputs.upscaler) for row in rows}
    parts: list[str] = []
    for data, pictures in [*by_set.items(), *((each.name, each) for each in others)]:
        ours = {row.name: _scores(methods[row.name], row, pictures, table, protocol, inputs) for row in rows}
        parts.append(_part(table, data, rows, ours, protocol, inputs))
    return "\n".join([*parts, _gaps(name, table, rows, by_set, inputs)])


def find_set(name: str, sets: Sequence[PictureSet]) -> PictureSet | None:
    """Find a set by name; for DIV2K any name that starts with it, since its subsets have longer names."""
    wanted = name.casefold()
    for each in sets:
        if each.name.casefold() == wanted or (wanted == "div2k" and each.name.casefold().startswith(wanted)):
            return each
    return None


def _rows(table: PublishedTable, inputs: TableInputs) -> list[Row]:
    """List the paper's rows, then bicubic and checkpoints that are not in the paper."""
    rows = [Row(method, tuple(match_row(method, inputs.found, inputs.published))) for method in table.methods]
    if "Bicubic" not in table.methods:
        rows.append(Row("Bicubic", ()))
    used = {each.path for row in rows for each in row.found}
    return rows + [Row(f"{each.name} (not in the paper)", (each,)) for each in inputs.found if each.path not in used]


def _method(row: Row, upscaler: Upscaler) -> Method | None:
    if row.name == "Bicubic":
        return Method("bicubic", bicubic, "bicubic")
    if not row.found:
        return None
    return make_method(row.name, [read_checkpoint(each.path) for each in row.found], upscaler)


def _scores(
    method: Method | None,
    row: Row,
    pictures: PictureSet | None,
    table: PublishedTable,
    protocol: Protocol,
    inputs: TableInputs,
) -> dict[Scale, float]:
    """Compute mean PSNRs; fixed-scale networks are scored only at their own scales, as in the paper."""
    if method is None or pictures is None:
        return {}
    factors = {each.config.only_scale for each in row.found} - {None}
    scales = [scale for scale in table.scales if not factors or scale.x in factors]
    with inputs.watch(f"{row.name} on {pictures.name}") as progress:
        (found,) = evaluate_method(method, [pictures], scales, protocol, cache=inputs.cache, progress=progress)
    return {scale: score.psnr for scale, score in found.mean.items()}


def _part(
    table: PublishedTable,
    data: str,
    rows: Sequence[Row],
    ours: Mapping[str, Mapping[Scale, float]],
    protocol: Protocol,
    inputs: TableInputs,
) -> str:
    timed = bool(table.milliseconds) and data in table.psnr
    header = ["method", *(f"×{scale}" for scale in table.scales), *(["time, ms"] if timed else [])]
    lines: list[list[str]] = []
    for row in rows:
        if data not in table.psnr and not ours[row.name]:
            continue
        theirs = dict(zip(table.scales, _published(table, data, row.name, inputs.published), strict=False))
        line = [row.name, *(_pair(theirs.get(scale), ours[row.name].get(scale), ".2f") for scale in table.scales)]
        if timed:
            line.append(_pair(table.milliseconds.get(row.name), (inputs.milliseconds or {}).get(row.name), ".0f"))
        lines.append(line)
    notes = [f"Paper / ours. Paper: {table.source} ({inputs.published.paper}). Ours: protocol {protocol}"]
    if protocol.max_pixels:
        notes.insert(0, "Our scores are of centre crops and not comparable with the paper's.")
    if data not in table.psnr:
        notes.insert(0, f"The paper has no numbers for {data}.")
    elif "Bicubic" not in table.methods:
        notes.insert(0, "Bicubic is not in the paper's table; its numbers are from the literature.")
    return markdown_table(f"{table.title} – {data}", header, lines, notes)


def _published(table: PublishedTable, data: str, method: str, published: Published) -> tuple[float, ...]:
    literature = published.bicubic.get(data, ()) if method == "Bicubic" and table.protocol == "benchmark" else ()
    return table.psnr.get(data, {}).get(method, literature)


def _pair(theirs: float | None, ours: float | None, form: str) -> str:
    return " / ".join(NO_VALUE if value is None else format(value, form) for value in (theirs, ours))


def reproduce_costs(published: Published) -> str:
    """Format table 3, which needs no weights."""
    lines: list[list[str]] = []
    for method, cost in published.costs.items():
        counted = profile(preset(published.methods[method][0])).total
        pairs = [(cost.parameters, counted.parameters / 1e6, ".2f"), (cost.flops, counted.flops_paper / 1e9, ".2f")]
        lines.append([method, *(f"{theirs:.1f} / {format(ours, form)}" for theirs, ours, form in pairs)])
    note = (
        f"Paper / ours. Paper: table 3 ({published.paper}). FLOPs are 2 × multiply-adds of convolutions and linear "
        "maps for a picture of 128² and 128² points, as the paper counts."
    )
    return markdown_table("Table 3: parameters and FLOPs", ["method", "parameters, M", "FLOPs, G"], lines, [note])


def _gaps(
    name: str, table: PublishedTable, rows: Sequence[Row], by_set: Mapping[str, PictureSet | None], inputs: TableInputs
) -> str:
    """List which file fills which row, and the commands for the missing numbers."""
    lines = [f"- {row.name}: {', '.join(str(each.path) for each in row.found)}" for row in rows if row.found]
    parts = ["Filled from:\n", *lines, ""] if lines else []
    commands = [
        command for row in rows if not row.found and row.name != "Bicubic" for command in _train(row.name, inputs)
    ]
    absent = [data for data, pictures in by_set.items() if pictures is None]
    command = f"srno reproduce {'suppl' if name.startswith('suppl') else name} --checkpoints CHECKPOINTS --data DATA"
    if absent:
        where = ", ".join(f"DATA/{data}/HR" for data in absent)
        commands.append(f"{command}  # with pictures in {where}")
    elif commands:
        commands.append(command)
    if table.milliseconds and not inputs.milliseconds:
        presets = dict.fromkeys(preset for row in table.methods for preset in inputs.published.methods[row])
        commands.append(f"srno bench {' '.join(presets)} --data DATA/Set14 --out bench.json")
        commands.append(f"{command} --bench bench.json")
    if commands:
        parts += ["Commands that fill the gaps:\n", "```", *dict.fromkeys(commands), "```"]
    return "\n".join(parts) + "\n" if parts else ""


def _train(method: str, inputs: TableInputs) -> list[str]:
    """The commands that train the checkpoints of a row of the paper."""
    commands: list[str] = []
    for name in inputs.published.methods[method]:
        config, file = preset(name), name.replace("/", "-")
        flags = " --sampling sequential" if method.endswith(SEQUENTIAL_SUFFIX) else ""
        if config.only_scale is not None:
            flags = f" --r-min {config.only_scale} --r-max {config.only_scale}"
        out = f"CHECKPOINTS/{file}{'-s' if method.endswith(SEQUENTIAL_SUFFIX) else ''}"
        commands.append(f"srno train --preset {name} --recipe paper{flags} --data DIV2K --out {out}")
    return commands


def find_checkpoints(folder: Path | None) -> tuple[list[FoundCheckpoint], list[str]]:
    """Find checkpoints and training runs in a folder, or the shipped models; and an error for each unreadable file."""
    if folder is None:
        shipped = shipped_models()
        return [FoundCheckpoint(model.path.stem, model.path, model.config, sequential=False) for model in shipped], []
    if not folder.is_dir():
        raise SRNOError(f"--checkpoints {folder} is not a folder")
    entries = [
        (path.stem, path) for path in sorted(folder.iterdir()) if path.suffix in CHECKPOINT_SUFFIXES and path.is_file()
    ]
    for run in sorted(path for path in folder.iterdir() if path.is_dir()):
        weights = [run / name for name in RUN_WEIGHTS if (run / name).is_file()]
        entries += [(run.name, path) for path in weights[:1]]
    found: list[FoundCheckpoint] = []
    unreadable: list[str] = []
    for name, path in entries:
        try:
            found.append(FoundCheckpoint(name, path, _config(path), name.endswith("-s") or _run_is_sequential(path)))
        except SRNOError as error:
            unreadable.append(str(error))
    return found, unreadable


def _config(path: Path) -> ModelConfig:
    return read_metadata(path)[0] if path.suffix == ".safetensors" else read_checkpoint(path).config


def _run_is_sequential(path: Path) -> bool:
    try:
        return json.loads((path.parent / "config.json").read_text())["sampling"] == "sequential"
    except (OSError, ValueError, KeyError, TypeError):
        return False


def match_row(method: str, found: Sequence[FoundCheckpoint], published: Published) -> list[FoundCheckpoint]:
    """Find the checkpoints of a row of the paper by config, the first match of each; several for fixed scales."""
    sequential = method.endswith(SEQUENTIAL_SUFFIX)
    matched: list[FoundCheckpoint] = []
    for name in published.methods[method]:
        if name == "bicubic":
            continue
        config = preset(name)
        matched += [each for each in found if each.config == config and each.sequential == sequential][:1]
    return matched
