"""srno reproduce: a command for every table and figure, and the miniature of the comparison"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import App

from srno.commands import reproduce_figures, reproduce_tables
from srno.commands.options import (
    DEFAULT_EVALUATION_FLAGS,
    DEFAULT_PROTOCOL_FLAGS,
    Evaluating,
    Folders,
    Rules,
    find_data,
    prepare_computing,
)
from srno.commands.output import EXIT_INTERRUPTED, as_json_text, print_message, save, show, watch
from srno.errors import SRNOError
from srno.evaluation.protocols import parse_scales
from srno.reproduce.panel import FIGURES

if TYPE_CHECKING:
    from srno.training.recorder import ReportEvent
    from srno.training.run import Run


def miniature(
    *,
    train: Folders,
    data: Folders,
    out: Path,
    steps: int | None = None,
    minutes: float | None = None,
    training_precision: Literal["fp32", "bf16"] = "fp32",
    preset: str = "light",
    stages: str = "32x16x1024",
    seeds: int = 2,
    scales: str = "2,3,4,6,8",
    protocol: Rules = DEFAULT_PROTOCOL_FLAGS,
    upscaler: Evaluating = DEFAULT_EVALUATION_FLAGS,
) -> None:
    """Run the paper's comparison at small scale: train and score SRNO, its ablations and the other decoders.

    Everything is stored in OUT: the same command resumes a stopped comparison, and a larger --seeds adds runs.

    Parameters
    ----------
    train
        Folder of pictures to train on; may be given several times.
    data
        Sets to score on, such as Set5 and Set14; may be given several times.
    out
        Folder for the runs and the table.
    steps
        Training steps of every model.
    minutes
        Instead of --steps: training time of SRNO; the other models train on the same number of samples.
    training_precision
        Arithmetic of the products in training: fp32, or bf16, which is faster if the hardware has it.
    preset
        SRNO and encoder: light or edsr-baseline.
    stages
        Shape of the samples, PATCHxBATCHxPOINTS.
    seeds
        Number of runs of each model.
    scales
        Factors to score at.
    """
    from srno.files import cache_folder
    from srno.machine import choose_device
    from srno.reproduce.miniature import Miniature, begin, members, score_member, table, to_dict, train_member
    from srno.training.distributed import World

    if seeds < 1:
        raise SRNOError(f"--seeds {seeds}: give at least 1")
    if steps is not None and minutes is not None:
        raise SRNOError(f"--minutes {minutes:g} has no effect with --steps {steps}; give one of them")
    prepare_computing(upscaler.threads)
    wanted, rules, sets = parse_scales(scales), protocol.resolve(), find_data(data)
    all_members = members(preset)
    requested = Miniature(
        minutes=minutes,
        base=preset,
        data=tuple(str(path.resolve()) for path in train),
        stages=stages,
        precision=training_precision,
        steps=steps or 0,
    )
    world = World(0, 1, choose_device(upscaler.device))
    try:
        plan = begin(requested, out, world, _view)
        print_message(f"{plan.steps} steps for each of {len(all_members)} models and {seeds} seeds")
        for seed in range(seeds):
            for member in all_members:
                train_member(plan, member, seed, out, world, _view)
    except KeyboardInterrupt:
        print_message("srno: stopped; the same command resumes")
        raise SystemExit(EXIT_INTERRUPTED) from None
    cache = cache_folder("scores")
    results = [
        score_member(member, range(seeds), out, sets, wanted, rules, upscaler=upscaler, cache=cache, watch=watch)
        for member in all_members
    ]
    text = table(results, plan, rules)
    show(text)
    save(out, "table", {"md": text, "json": as_json_text(to_dict(results, plan, rules))})


@contextmanager
def _view(title: str, _run: "Run") -> "Generator[ReportEvent]":
    """Show a run on stderr."""
    from srno.training.view import RunView

    with RunView(title) as view:
        yield view


reproduce = App(name="reproduce", help="Reproduce the paper's tables and figures from checkpoints and pictures.")

for _name, _text in reproduce_tables.TABLES.items():
    reproduce.command(reproduce_tables.table_command(_name), name=_name, help=_text)
for _name, _figure in FIGURES.items():
    reproduce.command(reproduce_figures.panel_command(_name, _figure), name=_name, help=_figure.title)
for _command in (
    reproduce_tables.table3,
    reproduce_tables.table4,
    reproduce_figures.fig_basis,
    reproduce_figures.fig_rank,
    reproduce_figures.fig_kernel,
    reproduce_figures.fig_samples,
    reproduce_figures.fig_patterns,
    miniature,
):
    reproduce.command(_command)
