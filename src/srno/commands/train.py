"""srno train"""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, ArgumentCollection, Parameter
from cyclopts.config import Dict
from rich.console import Console

from srno.errors import SRNOError
from srno.training.config import BUDGETS, RECIPES, TrainConfig


def fill_in_recipe(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> Any:
    """Give the flags that the user left out the values of the recipe."""
    given = {argument.name: argument.tokens[0].value for argument in arguments if argument.tokens}
    if {"--resume", "--plot"} & given.keys():
        return
    name = given.get("--recipe", "compact")
    if name not in RECIPES:
        raise SRNOError(f"--recipe {name!r}: known are {', '.join(RECIPES)}")
    own_budget = {f"--{budget}" for budget in BUDGETS} & given.keys()
    values = {key: value for key, value in RECIPES[name].items() if not (own_budget and key in BUDGETS)}
    Dict(values, source=f"recipe {name}", use_commands_as_keys=False)(app, commands, arguments)


train = App(name="train", config=fill_in_recipe, default_parameter=Parameter(negative_iterable=()))


@train.default
def run_training(
    config: Annotated[TrainConfig | None, Parameter(name="*")] = None,
    *,
    out: Path | None = None,
    recipe: str = "compact",  # noqa: ARG001 (read by fill_in_recipe)
    resume: Path | None = None,
    plot: Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
) -> None:
    """Train any preset on any folder of pictures, or go on with a run.

    Parameters
    ----------
    out
        Folder of the run; it must not hold one yet.
    recipe
        `compact`, ours for small budgets, or `paper`, the published one; flags given beside it win.
    resume
        Go on with the run in this folder.
    plot
        Draw the curves of the run in this folder to curves.png, and nothing else.
    device
        auto, cpu, cuda or mps.
    threads
        CPU threads; all cores unless given.
    tensorboard
        Write TensorBoard events into the run's folder as well.
    """
    from srno.training.plot import plot as draw
    from srno.training.run import Run

    if plot is not None:
        sys.stdout.write(f"{draw(Run(plot))}\n")
    elif resume is not None:
        run = Run(resume)
        _go(run.config(), run, device, threads, tensorboard)
    elif config is None or out is None:
        raise SRNOError("give --data, --out and a budget (--minutes, --steps or --epochs), or --resume RUN")
    else:
        run = Run(out)
        run.create(config)
        _go(config, run, device, threads, tensorboard)


def _go(config: TrainConfig, run: Any, device: str, threads: int | None, tensorboard: bool) -> None:
    import torch

    from srno.training.loop import train as loop
    from srno.training.view import View, tensorboard_writer
    from srno.training.world import join_world

    if threads is not None:
        torch.set_num_threads(threads)
    extra = tensorboard_writer(run.folder) if tensorboard else None
    with join_world(device) as world, View(f"{config.preset} in {run.folder}", Console(stderr=True)) as view:

        def tell(event: dict[str, Any]) -> None:
            run.write_log(**event)
            view(event)
            if extra is not None:
                extra(event)

        loop(config, run, world, tell if world.main else lambda _: None)
