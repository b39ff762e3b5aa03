"""Reproduce the paper's tables: its numbers beside ours, and the commands that produce the missing ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from srno.checkpoints.catalogue import read_checkpoint
from srno.evaluation.datasets import PictureSet
from srno.evaluation.evaluate import bicubic
from srno.evaluation.methods import Method, evaluate_method, make_method
from srno.evaluation.protocols import Protocol, Scale
from srno.evaluation.tables import NO_VALUE, markdown_table
from srno.reproduce.costs import BenchTimes
from srno.reproduce.published import Published, PublishedTable
from srno.reproduce.table_inputs import FoundCheckpoint, TableInputs, match_row, training_commands
from srno.upscaling.upscaler import Upscaler


@dataclass(frozen=True)
class TableRow:
    """A row of a table, and the checkpoints that fill it."""

    name: str
    found: tuple[FoundCheckpoint, ...]
    remark: str = ""


@dataclass(frozen=True)
class FilledRow:
    """The paper's numbers and ours on one set."""

    row: TableRow
    paper: Mapping[Scale, float]
    ours: Mapping[Scale, float]
    notes: tuple[str, ...] = ()
    """how the method was evaluated, and pictures that were skipped"""


@dataclass(frozen=True)
class FilledPart:
    """A table on one set."""

    data: str
    rows: tuple[FilledRow, ...]


@dataclass(frozen=True)
class FilledTable:
    """A table of the paper, filled with our numbers."""

    name: str
    table: PublishedTable
    protocol: Protocol
    scales: tuple[Scale, ...]
    rows: tuple[TableRow, ...]
    parts: tuple[FilledPart, ...]
    missing_sets: tuple[str, ...]
    inputs: TableInputs


def fill_table(name: str, inputs: TableInputs) -> FilledTable:
    """Score all checkpoints on all sets: those of the table, and sets that are in none of the paper's tables."""
    table = inputs.published.tables[name]
    protocol, scales = inputs.protocol(table.protocol), inputs.scales or table.scales
    wanted = {data: inputs.sets.find(data) for data in table.psnr}
    in_paper = [inputs.sets.find(data) for each in inputs.published.tables.values() for data in each.psnr]
    extra = {each.name: each for each in inputs.sets.sets if each not in in_paper}
    rows = _rows(table, inputs, [each for each in (*wanted.values(), *extra.values()) if each])
    methods = {row.name: _method(row, inputs.upscaler) for row in rows}
    parts = [
        FilledPart(
            data,
            tuple(_fill(row, methods[row.name], data, pictures, table, protocol, scales, inputs) for row in rows),
        )
        for data, pictures in (wanted | extra).items()
    ]
    missing = tuple(data for data, pictures in wanted.items() if pictures is None)
    return FilledTable(name, table, protocol, tuple(scales), tuple(rows), tuple(parts), missing, inputs)


def _rows(table: PublishedTable, inputs: TableInputs, sets: Sequence[PictureSet]) -> list[TableRow]:
    """List the paper's rows, then bicubic and checkpoints that are not in the paper."""
    found = [_remarked(each, sets) for each in inputs.found]
    checkpoints, remarks = [each for each, _ in found], {each.path: remark for each, remark in found}
    rows = [TableRow(method, tuple(match_row(method, checkpoints, inputs.published))) for method in table.methods]
    if "Bicubic" not in table.methods:
        rows.append(TableRow("Bicubic", ()))
    used = {each.path for row in rows for each in row.found}
    rows += [TableRow(f"{each.name} (not in the paper)", (each,)) for each in checkpoints if each.path not in used]
    return [
        replace(row, remark="; ".join(remark for each in row.found if (remark := remarks[each.path]))) for row in rows
    ]


def _remarked(found: FoundCheckpoint, sets: Sequence[PictureSet]) -> tuple[FoundCheckpoint, str]:
    """Weights that the table's own pictures chose are replaced by the last ones of the run, if there are any."""
    chosen_on = ", ".join(each.name for each in sets if found.was_chosen_on(each))
    if not chosen_on:
        return found, ""
    if found.last is None:
        return found, f"these weights were chosen by their score on {chosen_on}"
    return found.unchosen(), f"the last weights of the run, since pictures of {chosen_on} chose the best ones"


def _method(row: TableRow, upscaler: Upscaler) -> Method | None:
    if row.name == "Bicubic":
        return Method("bicubic", bicubic, "bicubic")
    if not row.found:
        return None
    return make_method(row.name, [read_checkpoint(each.path) for each in row.found], upscaler)


def _fill(
    row: TableRow,
    method: Method | None,
    data: str,
    pictures: PictureSet | None,
    table: PublishedTable,
    protocol: Protocol,
    scales: Sequence[Scale],
    inputs: TableInputs,
) -> FilledRow:
    """Compute mean PSNRs; fixed-scale networks are scored only at their own scales, as in the paper."""
    paper = dict(zip(table.scales, _published(table, data, row.name, inputs.published), strict=False))
    factors = {each.config.only_scale for each in row.found} - {None}
    supported = [scale for scale in scales if not factors or (scale.x == scale.y and scale.x in factors)]
    if method is None or pictures is None or not supported:
        return FilledRow(row, paper, {})
    with inputs.watch(f"{row.name} on {pictures.name}") as progress:
        (found,) = evaluate_method(method, [pictures], supported, protocol, cache=inputs.cache, progress=progress)
    notes = [f"{row.name}: {found.note}"] if found.note else []
    notes += [f"Skipped: {each}" for each in found.skipped]
    return FilledRow(row, paper, {scale: score.psnr for scale, score in found.mean.items()}, tuple(notes))


def _published(table: PublishedTable, data: str, method: str, published: Published) -> tuple[float, ...]:
    literature = published.bicubic.get(data, ()) if method == "Bicubic" and table.protocol == "benchmark" else ()
    return table.psnr.get(data, {}).get(method, literature)


def table_markdown(filled: FilledTable) -> str:
    """Format one part per set, then the commands for the missing numbers."""
    return "\n".join([*(_part(filled, part) for part in filled.parts), _gaps(filled)])


def _part(filled: FilledTable, part: FilledPart) -> str:
    table, inputs = filled.table, filled.inputs
    in_paper = part.data in table.psnr
    timed = bool(table.milliseconds) and in_paper
    header = ["method", *(f"×{scale}" for scale in filled.scales), *(["time, ms", "ours timed as"] if timed else [])]
    lines: list[list[str]] = []
    for each in part.rows:
        if in_paper or each.ours:
            pairs = [_pair(each.paper.get(scale), each.ours.get(scale), ".2f") for scale in filled.scales]
            lines.append([each.row.name, *pairs, *(_time_cells(each.row.name, table, inputs.times) if timed else [])])
    return markdown_table(f"{table.title} – {part.data}", header, lines, _notes(filled, part, timed))


def _notes(filled: FilledTable, part: FilledPart, timed: bool) -> list[str]:
    table, inputs, protocol = filled.table, filled.inputs, filled.protocol
    notes: list[str] = []
    if part.data not in table.psnr:
        notes.append(f"The paper has no numbers for {part.data}.")
    elif "Bicubic" not in table.methods:
        notes.append("Bicubic is not in the paper's table; its numbers are from the literature.")
    if protocol.max_pixels:
        notes.append("Our scores are of centre crops and not comparable with the paper's.")
    notes.append(f"Paper / ours. Paper: {table.source} ({inputs.published.paper}). Ours: protocol {protocol}")
    if timed and inputs.times:
        times = inputs.times
        where = f"Paper's times: {table.timed_on}. Our times: {times.machine}; {times.conditions}"
        notes.append(f"{where} What `srno bench` timed, form and precision, is named in each row.")
    notes += [f"{each.row.name}: {each.row.remark}." for each in part.rows if each.ours and each.row.remark]
    return notes + list(dict.fromkeys(note for each in part.rows for note in each.notes))


def _time_cells(method: str, table: PublishedTable, times: BenchTimes | None) -> list[str]:
    ours = times.times.get(method) if times else None
    milliseconds = ours.milliseconds if ours else None
    return [_pair(table.milliseconds.get(method), milliseconds, ".0f"), str(ours) if ours else NO_VALUE]


def _pair(theirs: float | None, ours: float | None, form: str) -> str:
    return " / ".join(NO_VALUE if value is None else format(value, form) for value in (theirs, ours))


def table_dict(filled: FilledTable) -> dict[str, Any]:
    """Plain data: `{"table": …, "protocol": …, "sets": {set: {method: {"paper": {scale: dB}, "ours": …}}}}`."""

    def row(each: FilledRow) -> dict[str, Any]:
        times = filled.inputs.times
        time = times.times.get(each.row.name) if times and filled.table.milliseconds else None
        return {
            "paper": {str(scale): value for scale, value in each.paper.items()},
            "ours": {str(scale): value for scale, value in each.ours.items()},
            "files": [str(found.path) for found in each.row.found],
            "remark": each.row.remark,
            "notes": list(each.notes),
            "time": (vars(time) | {"machine": times.machine}) if times and time else None,
        }

    return {
        "table": filled.name,
        "protocol": filled.protocol.to_dict(),
        "sets": {part.data: {each.row.name: row(each) for each in part.rows} for part in filled.parts},
    }


def _gaps(filled: FilledTable) -> str:
    """List which file fills which row, and the commands for the missing numbers."""
    rows, inputs = filled.rows, filled.inputs
    lines = [f"- {row.name}: {', '.join(str(each.path) for each in row.found)}" for row in rows if row.found]
    parts = ["Filled from:\n", *lines, ""] if lines else []
    missing = [row.name for row in rows if not row.found and row.name != "Bicubic"]
    commands = [command for method in missing for command in training_commands(method, inputs.published)]
    name = "suppl" if filled.name.startswith("suppl") else filled.name
    command = f"srno reproduce {name} --checkpoints CHECKPOINTS --data DATA"
    if filled.missing_sets:
        folders = {"DIV2K": "DATA/DIV2K/DIV2K_valid_HR"}
        where = ", ".join(folders.get(data, f"DATA/{data}/HR") for data in filled.missing_sets)
        commands.append(f"{command}  # with pictures in {where}")
    elif commands:
        commands.append(command)
    if filled.table.milliseconds and not inputs.times:
        presets = dict.fromkeys(preset for row in filled.table.methods for preset in inputs.published.methods[row])
        commands.append(f"srno bench {' '.join(presets)} --data DATA/Set14 --out bench.json")
        commands.append(f"{command} --bench bench.json --machine MACHINE")
    if commands:
        parts += ["Commands that fill the gaps:\n", "```", *dict.fromkeys(commands), "```"]
    return "\n".join(parts) + "\n" if parts else ""
