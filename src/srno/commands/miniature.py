"""srno reproduce miniature"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from srno.commands.options import EvaluationFlags, ProtocolFlags, find_data, set_threads
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
    threads: int | None = None,
    upscaler: Annotated[EvaluationFlags, Parameter(name="*")] = EvaluationFlags(),  # noqa: B008 (frozen)
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
    threads
        CPU threads; all cores unless given.
    """
    from srno.field.machine import choose_device
    from srno.files import cache_folder
    from srno.reproduce.miniature import Miniature, begin, members, score_member, table, to_dict, train_member
    from srno.training.distributed import World

    if seeds < 1:
        raise SRNOError(f"--seeds {seeds}: give at least 1")
    set_threads(threads)
    wanted, rules, sets = parse_scales(scales), protocol.resolve(), find_data(data)
    everyone = members(preset)
    asked = Miniature(minutes=minutes, base=preset, data=tuple(str(path.resolve()) for path in train), stages=stages)
    world = World(0, 1, choose_device(upscaler.device))
    try:
        plan = begin(asked, out, world, _view)
        say(f"{plan.steps} steps for each of {len(everyone)} models and {seeds} seeds")
        for seed in range(seeds):
            for member in everyone:
                train_member(plan, member, seed, out, world, _view)
    except KeyboardInterrupt:
        say("srno: stopped; the same command goes on from there")
        raise SystemExit(STOPPED) from None
    cache = cache_folder("scores")
    results = [
        score_member(member, range(seeds), out, sets, wanted, rules, upscaler=upscaler, cache=cache, watch=watch)
        for member in everyone
    ]
    text = table(results, plan, rules)
    show(text)
    content = json.dumps(to_dict(results, plan, rules), indent=1, ensure_ascii=False) + "\n"
    say("saved " + ", ".join(map(str, save(out, "table", {"md": text, "json": content}))))


@contextmanager
def _view(title: str, run: "Run") -> "Generator[Tell]":
    """Show a run on stderr and log it."""
    from srno.training.view import RunView

    with RunView(title) as view:

        def tell(event: dict[str, Any]) -> None:
            if event["event"] != "reading":
                run.write_log(**event)
            view(event)

        yield tell
