"""srno reproduce miniature"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from srno.commands.options import EngineFlags, ProtocolFlags, find_data
from srno.commands.output import STOPPED, save, say, show, watch
from srno.errors import SRNOError
from srno.evaluation.protocols import parse_scales

if TYPE_CHECKING:
    from srno.training.recorder import Tell
    from srno.training.run import Run


def miniature(
    *,
    minutes: float,
    train: Annotated[list[Path], Parameter(negative_iterable="")],
    data: Annotated[list[Path], Parameter(negative_iterable="")],
    out: Path,
    preset: str = "light",
    stages: str = "32x16x1024",
    seeds: int = 2,
    scales: str = "2,3,4,6,8",
    protocol: Annotated[ProtocolFlags, Parameter(name="*")] = ProtocolFlags(),  # noqa: B008 (frozen)
    engine: Annotated[EngineFlags, Parameter(name="*")] = EngineFlags(),  # noqa: B008 (frozen)
) -> None:
    """The paper's comparison in small: train SRNO, its ablations and the other decoders alike, and score them.

    Everything is kept in OUT: the same command goes on where it was stopped, and with more --seeds it adds to them.

    Parameters
    ----------
    minutes
        Time for SRNO to train; all others get as many samples.
    train
        Folder of pictures to train on; may be given several times.
    data
        Sets to score on, such as Set5 and Set14; may be given several times.
    out
        Folder of the runs and the table.
    preset
        SRNO and encoder: light or edsr-baseline.
    stages
        Shape of the samples, PATCHxBATCHxPOINTS.
    seeds
        Runs of each model.
    scales
        Factors to score at.
    """
    import torch

    from srno.evaluation.cache import default_cache_folder
    from srno.training.miniature import Miniature, begin, members, train_member
    from srno.training.miniature_table import score_member, table, to_dict
    from srno.training.world import World

    if seeds < 1:
        raise SRNOError(f"--seeds {seeds}: give at least 1")
    wanted, rules, sets, settings = parse_scales(scales), protocol.resolve(), find_data(data), engine.resolve()
    everyone = members(preset)
    asked = Miniature(minutes=minutes, base=preset, data=tuple(str(path.resolve()) for path in train), stages=stages)
    world = World(0, 1, torch.device(settings.device))
    try:
        plan = begin(asked, out, world, _view)
        say(f"{plan.steps} steps for each of {len(everyone)} models and {seeds} seeds")
        for seed in range(seeds):
            for member in everyone:
                train_member(plan, member, seed, out, world, _view)
    except KeyboardInterrupt:
        say("srno: stopped; the same command goes on from there")
        raise SystemExit(STOPPED) from None
    cache = default_cache_folder()
    results = [
        score_member(member, range(seeds), out, sets, wanted, rules, settings=settings, cache=cache, watch=watch)
        for member in everyone
    ]
    text = table(results, plan, rules)
    show(text)
    content = json.dumps(to_dict(results, plan, rules), indent=1, ensure_ascii=False) + "\n"
    say("saved " + ", ".join(map(str, save(out, "table", {"md": text, "json": content}))))


@contextmanager
def _view(title: str, run: "Run") -> "Generator[Tell]":
    """Show a run on stderr and log it."""
    from srno.training.view import View

    with View(title, Console(stderr=True)) as view:

        def tell(event: dict[str, Any]) -> None:
            if event["event"] != "reading":
                run.write_log(**event)
            view(event)

        yield tell
