"""srno reproduce table1 … table4 and suppl: the paper's numbers beside ours"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from srno.commands.options import EXACT, Evaluating, EvaluationFlags, prepare_computing
from srno.commands.output import PRINTED, Result, ResultFlags, as_json_text, print_message, watch
from srno.commands.reproduce_flags import PAPER, PAPER_RULES, Paper, PaperFlags, TableProtocolFlags, TableRules
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

    def table(
        *,
        paper: Paper = PAPER,
        result: Result = PRINTED,
        protocol: TableRules = PAPER_RULES,
        upscaler: Evaluating = EXACT,
    ) -> None:
        """Print a table of the paper with its numbers beside ours, and the commands that fill the gaps."""
        tables = ("suppl-div2k", "suppl-benchmark") if name == "suppl" else (name,)
        _give_out(name, tables, result, table_inputs(paper, protocol, upscaler))

    return table


def table3(*, result: Result = PRINTED) -> None:
    """Count parameters and FLOPs of the models in the paper's table 3 and print them beside its numbers."""
    from srno.reproduce.costs import costs_dict, costs_markdown, count_costs
    from srno.reproduce.published import load_published

    published = load_published()
    counted = count_costs(published)
    result.give_out("table3", {"md": costs_markdown(counted, published), "json": as_json_text(costs_dict(counted))})


def table4(
    *,
    bench: Path | None = None,
    machine: str | None = None,
    paper: Paper = PAPER,
    result: Result = PRINTED,
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
    from srno.reproduce.costs import read_bench

    if machine and not bench:
        raise SRNOError(f"--machine {machine!r} has no effect without --bench")
    times = read_bench(bench, machine) if bench else None
    _give_out("table4", ("table4",), result, replace(table_inputs(paper, protocol, upscaler), times=times))


def table_inputs(paper: PaperFlags, protocol: TableProtocolFlags, upscaler: EvaluationFlags) -> "TableInputs":
    """Find checkpoints and sets, and say what was left out of them."""
    from srno.files import cache_folder
    from srno.reproduce.checkpoint_rows import find_checkpoints
    from srno.reproduce.paper_tables import TableInputs
    from srno.reproduce.published import load_published
    from srno.reproduce.table_sets import find_table_sets

    prepare_computing(upscaler.threads)
    found, unreadable = find_checkpoints(paper.checkpoints)
    sets = find_table_sets(paper.data or [])
    for reason in (*unreadable, *sets.left_out):
        print_message(f"left out {reason}")
    return TableInputs(
        published=load_published(),
        found=found,
        sets=sets,
        upscaler=upscaler,
        watch=watch,
        protocol=protocol.of_table,
        scales=parse_scales(paper.scales) if paper.scales else None,
        cache=cache_folder("scores") if paper.cache else None,
    )


def _give_out(name: str, tables: tuple[str, ...], result: ResultFlags, inputs: "TableInputs") -> None:
    from srno.reproduce.paper_tables import fill_table, table_dict, table_markdown

    filled = [fill_table(each, inputs) for each in tables]
    text = "\n".join(table_markdown(each) for each in filled)
    result.give_out(name, {"md": text, "json": as_json_text([table_dict(each) for each in filled])})
