"""srno reproduce table1 … table4 and suppl: the paper's numbers beside ours"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from srno.commands.options import EvaluationFlags, prepare_computing
from srno.commands.output import print_message, show, watch
from srno.commands.reproduce_flags import (
    EXACT,
    PAPER_RULES,
    TABLE,
    Evaluating,
    ScoringFlags,
    TableFlags,
    TableProtocolFlags,
    TableRules,
    Tabling,
)
from srno.commands.reproduce_output import as_json_text, save_texts
from srno.errors import SRNOError
from srno.evaluation.protocols import parse_scales

if TYPE_CHECKING:
    from srno.reproduce.paper_tables import TableInputs

TABLES = {
    "table1": "PSNR on the DIV2K validation set.",
    "table2": "PSNR on the benchmark sets.",
    "suppl": "Random and sequential sampling.",
}
"""Tables that differ in their name alone, and what they show."""


def table_command(name: str) -> Callable[..., None]:
    """The command of one of these tables."""

    def table(*, flags: Tabling = TABLE, protocol: TableRules = PAPER_RULES, upscaler: Evaluating = EXACT) -> None:
        """Print a table of the paper with its numbers beside ours, and the commands that fill the gaps."""
        tables = ("suppl-div2k", "suppl-benchmark") if name == "suppl" else (name,)
        _print_tables(name, tables, flags, table_inputs(flags, protocol, upscaler))

    return table


def table3(*, out: Path | None = None, as_json: Annotated[bool, Parameter(name="--json", negative="")] = False) -> None:
    """Count parameters and FLOPs of the models in the paper's table 3 and print them beside its numbers.

    Parameters
    ----------
    out
        Save as Markdown and JSON: OUT.md …, or into OUT if that is a folder.
    as_json
        Print JSON.
    """
    from srno.reproduce.costs import costs_dict, costs_markdown, count_costs
    from srno.reproduce.published import load_published

    published = load_published()
    counted = count_costs(published)
    text, content = costs_markdown(counted, published), as_json_text(costs_dict(counted))
    _print(out, "table3", text, content, as_json=as_json)


def table4(
    *,
    bench: Path | None = None,
    machine: str | None = None,
    flags: Tabling = TABLE,
    protocol: TableRules = PAPER_RULES,
    upscaler: Evaluating = EXACT,
) -> None:
    """Print the paper's table of ablations and running times with its numbers beside ours.

    Parameters
    ----------
    bench
        Running times saved by `srno bench --out`.
    machine
        Name of the machine that --bench was measured on, if the file does not have it.
    """
    from srno.reproduce.bench_file import read_bench

    if machine and not bench:
        raise SRNOError(f"--machine {machine!r} has no effect without --bench")
    times = read_bench(bench, machine) if bench else None
    _print_tables("table4", ("table4",), flags, replace(table_inputs(flags, protocol, upscaler), times=times))


def table_inputs(flags: ScoringFlags, protocol: TableProtocolFlags, upscaler: EvaluationFlags) -> "TableInputs":
    """Find checkpoints and sets, and say what was left out of them."""
    from srno.files import cache_folder
    from srno.reproduce.checkpoint_rows import find_checkpoints
    from srno.reproduce.paper_tables import TableInputs
    from srno.reproduce.published import load_published
    from srno.reproduce.table_sets import find_table_sets

    prepare_computing(flags.threads)
    found, unreadable = find_checkpoints(flags.checkpoints)
    sets = find_table_sets(flags.data or [])
    for reason in (*unreadable, *sets.left_out):
        print_message(f"left out {reason}")
    return TableInputs(
        published=load_published(),
        found=found,
        sets=sets,
        upscaler=upscaler,
        watch=watch,
        protocol=protocol.of_table,
        scales=parse_scales(flags.scales) if flags.scales else None,
        cache=cache_folder("scores") if flags.cache else None,
    )


def _print_tables(name: str, tables: tuple[str, ...], flags: TableFlags, inputs: "TableInputs") -> None:
    from srno.reproduce.paper_tables import fill_table, table_dict, table_markdown

    filled = [fill_table(each, inputs) for each in tables]
    text = "\n".join(table_markdown(each) for each in filled)
    content = as_json_text([table_dict(each) for each in filled])
    _print(flags.out, name, text, content, as_json=flags.as_json)


def _print(out: Path | None, name: str, markdown: str, content: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(content)
    else:
        show(markdown)
    save_texts(out, name, {"md": markdown, "json": content})
