"""srno reproduce table1 … table4 and suppl: the paper's numbers beside ours; and the flags that figures share"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from srno.commands.options import (
    DEFAULT_EVALUATION_FLAGS,
    Evaluating,
    EvaluationFlags,
    Folders,
    ProtocolFlags,
    prepare_computing,
)
from srno.commands.output import DEFAULT_RESULT_FLAGS, Result, ResultFlags, as_json_text, print_message, watch
from srno.errors import SRNOError
from srno.evaluation.protocols import LRSource, Protocol, named_protocol, parse_scales

if TYPE_CHECKING:
    from srno.reproduce.table_inputs import TableInputs
    from srno.upscaling.upscaler import Upscaler


TABLES = {
    "table1": "PSNR on the DIV2K validation set.",
    "table2": "PSNR on the benchmark sets.",
    "suppl": "Random and sequential sampling.",
}
"""Tables that differ in their name alone, and what they show."""


@dataclass(frozen=True, kw_only=True)
class TableProtocolFlags(ProtocolFlags):
    """Flags of the evaluation protocol; each table has its own unless given."""

    protocol: str = "paper"
    """paper (div2k for DIV2K, benchmark for the other sets), benchmark or div2k; the flags below change its rules."""

    def of_table(self, name: str) -> Protocol:
        """The protocol of a table whose own is `name`."""
        return replace(self, protocol=name if self.protocol == "paper" else self.protocol).resolve()


@dataclass(frozen=True, kw_only=True)
class PaperFlags:
    """Flags of everything that scores checkpoints on the paper's sets."""

    data: Folders | None = None
    """Folder of sets, found by their names (DIV2K/DIV2K_valid_HR, Set5, Set14, B100, Urban100); others are added to the
    table, but never DIV2K's training pictures."""
    checkpoints: Path | None = None
    """Folder of checkpoints (.safetensors, .pth) and training runs, matched to rows by their model config; a name that
    ends in -s means sequential sampling. The shipped models unless given."""
    scales: str | None = None
    """Factors; those of the paper unless given."""
    cache: bool = True
    """Use cached scores and cache new ones."""


@dataclass(frozen=True, kw_only=True)
class AnalysisFlags:
    """Flags of the figures that look into a model."""

    model: str = "default"
    """A shipped model or a checkpoint of SRNO."""
    lr: LRSource = "standard"
    """Low-resolution pictures: matlab, pillow, ready (LR_bicubic/X2 … beside HR), or standard, which is matlab at ×2 ×3
    ×4 and pillow elsewhere."""
    cell_clip: bool = True
    """Above ×4, keep the cell of ×4."""
    max_pixels: int | None = None
    """Cut larger pictures to this many pixels around their centre."""
    memory: str | None = None
    """Memory budget, such as 2G; half of the free memory unless given."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    threads: int | None = None
    """CPU threads; all cores unless given."""

    def protocol(self) -> Protocol:
        """How low-resolution pictures are made; nothing is scored."""
        return named_protocol("benchmark", lr=self.lr, cell_clip=self.cell_clip, max_pixels=self.max_pixels)

    def upscaler(self) -> "Upscaler":
        """The model in fp32, which ranks need."""
        from srno.upscaling.upscaler import Upscaler

        prepare_computing(self.threads)
        return Upscaler(model=self.model, memory=self.memory, device=self.device, precision="fp32", integral="exact")


@dataclass(frozen=True, kw_only=True)
class SetAnalysisFlags(AnalysisFlags):
    """Flags of the figures that look into a model over whole sets."""

    data: Folders
    """A set such as Set5; may be given several times."""
    scales: str = "2,3,4,6,8"
    """Factors by which pictures are enlarged."""


TableRules: TypeAlias = Annotated[TableProtocolFlags, Parameter(name="*")]
Analysing: TypeAlias = Annotated[AnalysisFlags, Parameter(name="*")]
AnalysingSets: TypeAlias = Annotated[SetAnalysisFlags, Parameter(name="*")]
Paper: TypeAlias = Annotated[PaperFlags, Parameter(name="*")]

PAPER_RULES, ANALYSIS, PAPER = TableProtocolFlags(), AnalysisFlags(), PaperFlags()


def table_command(name: str) -> Callable[..., None]:
    """The command of one of these tables."""

    def table(
        *,
        paper: Paper = PAPER,
        result: Result = DEFAULT_RESULT_FLAGS,
        protocol: TableRules = PAPER_RULES,
        upscaler: Evaluating = DEFAULT_EVALUATION_FLAGS,
    ) -> None:
        """Print a table of the paper with its numbers beside ours, and the commands that fill the gaps."""
        tables = ("suppl-div2k", "suppl-benchmark") if name == "suppl" else (name,)
        _write_tables(name, tables, result, table_inputs(paper, protocol, upscaler))

    return table


def table3(*, result: Result = DEFAULT_RESULT_FLAGS) -> None:
    """Count parameters and FLOPs of the models in the paper's table 3 and print them beside its numbers."""
    from srno.reproduce.costs import costs_dict, costs_markdown, count_costs
    from srno.reproduce.published import load_published

    published = load_published()
    counted = count_costs(published)
    result.write("table3", {"md": costs_markdown(counted, published), "json": as_json_text(costs_dict(counted))})


def table4(
    *,
    bench: Path | None = None,
    machine: str | None = None,
    paper: Paper = PAPER,
    result: Result = DEFAULT_RESULT_FLAGS,
    protocol: TableRules = PAPER_RULES,
    upscaler: Evaluating = DEFAULT_EVALUATION_FLAGS,
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
    _write_tables("table4", ("table4",), result, replace(table_inputs(paper, protocol, upscaler), times=times))


def table_inputs(paper: PaperFlags, protocol: TableProtocolFlags, upscaler: EvaluationFlags) -> "TableInputs":
    """Find checkpoints and sets, and say what was left out of them."""
    from srno.files import cache_folder
    from srno.reproduce.published import load_published
    from srno.reproduce.table_inputs import TableInputs, find_checkpoints, find_table_sets

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


def _write_tables(name: str, tables: tuple[str, ...], result: ResultFlags, inputs: "TableInputs") -> None:
    from srno.reproduce.paper_tables import fill_table, table_dict, table_markdown

    filled = [fill_table(each, inputs) for each in tables]
    text = "\n".join(table_markdown(each) for each in filled)
    result.write(name, {"md": text, "json": as_json_text([table_dict(each) for each in filled])})
