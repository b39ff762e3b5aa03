"""The paper's tables again: its numbers beside ours for what is there, and what to type for what is not."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from srno.checkpoints.catalogue import read_checkpoint
from srno.config import FixedScaleConfig, preset
from srno.evaluation.cost import profile
from srno.evaluation.datasets import PictureSet
from srno.evaluation.evaluate import Progress, bicubic
from srno.evaluation.found import Found, match_row
from srno.evaluation.methods import Method, Settings, evaluate_method, make_method
from srno.evaluation.protocols import Protocol, Scale, named_protocol
from srno.evaluation.published import SEQUENTIAL, Published, PublishedTable
from srno.evaluation.tables import NOTHING, markdown_table

Watch = Callable[[str], AbstractContextManager[Progress]]
"""Opens a progress display for a titled piece of work."""


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """What there is to fill tables with."""

    published: Published
    found: Sequence[Found]
    sets: Sequence[PictureSet]
    settings: Settings
    watch: Watch
    cache: Path | None = None
    max_pixels: int | None = None
    milliseconds: Mapping[str, float] | None = None
    """measured running times by the paper's method names"""


@dataclass(frozen=True)
class Row:
    """A line of a table, and the checkpoints that fill it."""

    name: str
    found: tuple[Found, ...]


def reproduce_table(name: str, shop: Workshop) -> str:
    """A table of PSNRs as Markdown: one part per set, then what fills the gaps."""
    table = shop.published.tables[name]
    protocol = named_protocol(table.protocol, max_pixels=shop.max_pixels)
    rows = _rows(table, shop)
    by_set = {data: find_set(data, shop.sets) for data in table.psnr}
    elsewhere = [find_set(data, shop.sets) for each in shop.published.tables.values() for data in each.psnr]
    others = [each for each in shop.sets if each not in elsewhere]
    methods = {row.name: _method(row, shop.settings) for row in rows}
    parts: list[str] = []
    for data, pictures in [*by_set.items(), *((each.name, each) for each in others)]:
        ours = {row.name: _scores(methods[row.name], row, pictures, table, protocol, shop) for row in rows}
        parts.append(_part(table, data, rows, ours, protocol, shop))
    return "\n".join([*parts, _gaps(name, table, rows, by_set, shop)])


def find_set(name: str, sets: Sequence[PictureSet]) -> PictureSet | None:
    """The set of that name; for DIV2K any folder whose name begins so, as its parts have names of their own."""
    wanted = name.casefold()
    for each in sets:
        if each.name.casefold() == wanted or (wanted == "div2k" and each.name.casefold().startswith(wanted)):
            return each
    return None


def _rows(table: PublishedTable, shop: Workshop) -> list[Row]:
    """The paper's rows, then bicubic and checkpoints that the paper does not have."""
    rows = [Row(method, tuple(match_row(method, shop.found, shop.published))) for method in table.methods]
    if "Bicubic" not in table.methods:
        rows.append(Row("Bicubic", ()))
    used = {each.path for row in rows for each in row.found}
    return rows + [Row(f"{each.name} (ours alone)", (each,)) for each in shop.found if each.path not in used]


def _method(row: Row, settings: Settings) -> Method | None:
    if row.name == "Bicubic":
        return Method("bicubic", bicubic, "bicubic")
    if not row.found:
        return None
    return make_method(row.name, [read_checkpoint(each.path) for each in row.found], settings)


def _scores(
    method: Method | None,
    row: Row,
    pictures: PictureSet | None,
    table: PublishedTable,
    protocol: Protocol,
    shop: Workshop,
) -> dict[Scale, float]:
    """Mean PSNRs; networks of a fixed scale count at their own scales alone, as in the paper."""
    if method is None or pictures is None:
        return {}
    factors = {each.config.scale for each in row.found if isinstance(each.config, FixedScaleConfig)}
    scales = [scale for scale in table.scales if not factors or scale.x in factors]
    with shop.watch(f"{row.name} on {pictures.name}") as progress:
        (found,) = evaluate_method(method, [pictures], scales, protocol, cache=shop.cache, progress=progress)
    return {scale: score.psnr for scale, score in found.mean.items()}


def _part(
    table: PublishedTable,
    data: str,
    rows: Sequence[Row],
    ours: Mapping[str, Mapping[Scale, float]],
    protocol: Protocol,
    shop: Workshop,
) -> str:
    timed = bool(table.milliseconds) and data in table.psnr
    header = ["method", *(f"×{scale}" for scale in table.scales), *(["time, ms"] if timed else [])]
    lines: list[list[str]] = []
    for row in rows:
        if data not in table.psnr and not ours[row.name]:
            continue
        theirs = dict(zip(table.scales, _published(table, data, row.name, shop.published), strict=False))
        line = [row.name, *(_pair(theirs.get(scale), ours[row.name].get(scale), ".2f") for scale in table.scales)]
        if timed:
            line.append(_pair(table.milliseconds.get(row.name), (shop.milliseconds or {}).get(row.name), ".0f"))
        lines.append(line)
    notes = [f"Paper / ours. Paper: {table.source} ({shop.published.paper}). Ours: protocol {protocol}"]
    if protocol.max_pixels:
        notes.insert(0, "Ours are scores of centre crops, which do not compare with the paper's.")
    if data not in table.psnr:
        notes.insert(0, f"The paper has no numbers for {data}.")
    elif "Bicubic" not in table.methods:
        notes.insert(0, "Bicubic is not in the paper's table; its numbers are those of the literature.")
    return markdown_table(f"{table.title} – {data}", header, lines, notes)


def _published(table: PublishedTable, data: str, method: str, published: Published) -> tuple[float, ...]:
    literature = published.bicubic.get(data, ()) if method == "Bicubic" and table.protocol == "benchmark" else ()
    return table.psnr.get(data, {}).get(method, literature)


def _pair(theirs: float | None, ours: float | None, form: str) -> str:
    return " / ".join(NOTHING if value is None else format(value, form) for value in (theirs, ours))


def reproduce_costs(published: Published) -> str:
    """Table 3, which needs no weights."""
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
    name: str, table: PublishedTable, rows: Sequence[Row], by_set: Mapping[str, PictureSet | None], shop: Workshop
) -> str:
    """Which file fills which row, and the command lines for what is missing."""
    lines = [f"- {row.name}: {', '.join(str(each.path) for each in row.found)}" for row in rows if row.found]
    parts = ["Filled from:\n", *lines, ""] if lines else []
    commands = [
        command for row in rows if not row.found and row.name != "Bicubic" for command in _train(row.name, shop)
    ]
    absent = [data for data, pictures in by_set.items() if pictures is None]
    command = f"srno reproduce {'suppl' if name.startswith('suppl') else name} --checkpoints CHECKPOINTS --data DATA"
    if absent:
        where = ", ".join(f"DATA/{data}/HR" for data in absent)
        commands.append(f"{command}  # with pictures in {where}")
    elif commands:
        commands.append(command)
    if table.milliseconds and not shop.milliseconds:
        presets = dict.fromkeys(preset for row in table.methods for preset in shop.published.methods[row])
        commands.append(f"srno bench {' '.join(presets)} --data DATA/Set14 --out bench.json")
        commands.append(f"{command} --bench bench.json")
    if commands:
        parts += ["What would fill the gaps:\n", "```", *dict.fromkeys(commands), "```"]
    return "\n".join(parts) + "\n" if parts else ""


def _train(method: str, shop: Workshop) -> list[str]:
    """How to get a checkpoint for a row of the paper."""
    commands: list[str] = []
    for name in shop.published.methods[method]:
        config, file = preset(name), name.replace("/", "-")
        flags = " --sampling sequential" if method.endswith(SEQUENTIAL) else ""
        if isinstance(config, FixedScaleConfig):
            flags = f" --r-min {config.scale} --r-max {config.scale}"
        out = f"CHECKPOINTS/{file}{'-s' if method.endswith(SEQUENTIAL) else ''}"
        commands.append(f"srno train --preset {name} --recipe paper{flags} --data DIV2K --out {out}")
    return commands
