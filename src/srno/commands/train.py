"""srno train"""

import json
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, ArgumentCollection, Parameter
from cyclopts.config import Dict

from srno.commands.options import import_encoder, prepare_computing
from srno.errors import SRNOError
from srno.training.config import BUDGETS, CHANGEABLE, TrainConfig
from srno.training.recipes import RECIPES

if TYPE_CHECKING:
    from torch import nn

    from srno.training.run import Run

EXIT_USAGE = 2
COMMAND_FLAGS = frozenset({"out", "recipe", "resume", "plot", "encoder", "device", "threads", "tensorboard"})
"""Flags that are not part of a run's config."""


def fill_in(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> Any:
    """Set the flags that were not given to the values of the recipe, or of the resumed run."""
    tokens = {argument.name.removeprefix("--"): argument.tokens[0].value for argument in arguments if argument.tokens}
    given = {name.replace("-", "_"): value for name, value in tokens.items()}
    if "plot" in given:
        if others := sorted(given.keys() - {"plot"}):
            raise SRNOError(f"--{_flag(others[0])} has no effect with --plot, which only draws")
        return
    values = _run_values(given) if "resume" in given else _recipe_values(given)
    if given.keys() & set(BUDGETS):
        values = {key: value for key, value in values.items() if key not in BUDGETS}
    Dict(values, source="recipe or run", use_commands_as_keys=False)(app, commands, arguments)


def _recipe_values(given: dict[str, str]) -> dict[str, Any]:
    name = given.get("recipe", "compact")
    if name not in RECIPES:
        raise SRNOError(f"--recipe {name!r}: known are {', '.join(RECIPES)}")
    if {"validation", "hold_out"} <= given.keys():
        raise SRNOError(f"--hold-out {given['hold_out']} has no effect with --validation; give one of them")
    return RECIPES[name]


def _run_values(given: dict[str, str]) -> dict[str, Any]:
    for name in sorted(given.keys() - COMMAND_FLAGS - CHANGEABLE | given.keys() & {"out", "recipe"}):
        changeable = ", ".join(f"--{_flag(each)}" for each in sorted(CHANGEABLE))
        raise SRNOError(f"--{_flag(name)} cannot change when a run is resumed; {changeable} can")
    from srno.training.run import Run, to_json

    return json.loads(to_json(Run(Path(given["resume"])).config()))


def _flag(name: str) -> str:
    return name.replace("_", "-")


train = App(name="train", config=fill_in, default_parameter=Parameter(negative_iterable=(), consume_multiple=True))


@train.default
def run_training(
    config: Annotated[TrainConfig | None, Parameter(name="*")] = None,
    *,
    out: Path | None = None,
    recipe: str = "compact",  # noqa: ARG001 (read by fill_in)
    resume: Path | None = None,
    plot: Path | None = None,
    encoder: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
) -> None:
    """Train any preset on any folder of pictures, or resume a run.

    Parameters
    ----------
    out
        Folder of the run; it must not hold one yet.
    recipe
        `compact`, ours for small budgets; `paper`, SRNO as published; `liif`, `lte` or `metasr`, as those were
        published. Other flags override its values.
    resume
        Resume the run in this folder; a larger budget extends it.
    plot
        Only draw the curves of the run in this folder to curves.png.
    encoder
        MODULE:CLASS of a custom encoder that replaces the preset's: a module with `channels` and `radius`.
    device
        auto, cpu, cuda, cuda:N or mps.
    threads
        CPU threads; all cores unless given.
    tensorboard
        Write TensorBoard events into the run's folder as well.
    """
    from srno.training.run import Run
    from srno.training.view import plot as draw

    if plot is not None:
        sys.stdout.write(f"{draw(Run(plot))}\n")
        return
    folder = resume or out
    if config is None or folder is None:
        raise SRNOError("give --data, --out and a budget (--minutes, --steps or --epochs), or --resume RUN")
    if resume is None:
        config = _with_absolute_paths(config)
    prepare_computing(threads)
    custom_encoder = None if encoder is None else import_encoder(encoder)
    _train(config, Run(folder), new=resume is None, encoder=custom_encoder, device=device, tensorboard=tensorboard)


def _with_absolute_paths(config: TrainConfig) -> TrainConfig:
    """The config with absolute paths, so that the run can be resumed from any folder."""
    return replace(
        config,
        data=tuple(folder.resolve() for folder in config.data),
        validation=config.validation and config.validation.resolve(),
        init=_absolute_file(config.init),
        init_encoder=_absolute_file(config.init_encoder),
    )


def _absolute_file(init: Path | None) -> Path | None:
    """Absolute path of a file; the name of shipped weights as it is."""
    return init.resolve() if init and init.exists() else init


def _train(
    config: TrainConfig, run: "Run", *, new: bool, encoder: "nn.Module | None", device: str, tensorboard: bool
) -> None:
    from srno.training.distributed import end_process, join_world
    from srno.training.loop import loop

    with ExitStack() as stack:
        world = stack.enter_context(join_world(device))
        try:
            if new:
                world.share(run.check_new)
            report = stack.enter_context(_watch(config, run, tensorboard)) if world.main else _ignore
            stopped = loop(config, run, world, report, encoder=encoder)
        except SRNOError:
            if world.main:
                raise
            sys.exit(EXIT_USAGE)  # the main process prints the error
    if stopped and world.main:
        sys.stderr.write(f"resume with: srno train --resume {run.folder}\n")
    code = 128 + stopped if stopped else 0  # the exit code of a process ended by a signal
    if world.size > 1:
        end_process(code)
    if code:
        sys.exit(code)


@contextmanager
def _watch(config: TrainConfig, run: "Run", tensorboard: bool) -> Generator[Callable[[dict[str, Any]], None]]:
    """Yield a function that shows the events of a run."""
    from srno.training.view import RunView, tensorboard_writer

    extra = tensorboard_writer(run.folder) if tensorboard else _ignore
    with RunView(f"{config.preset} in {run.folder}") as view:

        def report(event: dict[str, Any]) -> None:
            view(event)
            extra(event)

        yield report


def _ignore(_: dict[str, Any]) -> None:
    pass
