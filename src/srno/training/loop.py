"""The training loop, and one step of it: loss, gradient and precision.

srno train --preset light --data pictures --out runs/light --minutes 150
srno train --resume runs/light
torchrun --nproc-per-node=8 -m srno train --preset rdn --recipe paper --data DIV2K/DIV2K_train_HR --out runs/rdn
"""

import math
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from srno.data.dataset import Sample
from srno.errors import SRNOError
from srno.machine import fastest_precision
from srno.operator.model import Model
from srno.training.config import Precision, TrainConfig
from srno.training.distributed import World, join_world, stop_requests
from srno.training.feed import Feed, first_patches, open_pictures
from srno.training.learner import Learner, Position, set_rate
from srno.training.recorder import Recorder, ReportEvent
from srno.training.run import Run
from srno.training.schedule import Budget, Clock
from srno.training.stages import Loss

BAD_STEPS_BEFORE_ROLLBACK = 5
"""Consecutive bad steps after which the run rolls back to a saved state."""
REVIVAL_PATCHES = 256
"""Number of patches on which a unit must always be zero to be restarted."""
HOLD_SHARE = 0.25
"""Share of the budget for which the filters of restarted units stay fixed."""
MAX_ROLLBACKS = 5
"""Rollbacks after which the run gives up."""

CHARBONNIER_EPSILON = 1e-3
RMS_EPSILON = 1e-3
"""About an eighth of a level of 255: bounds the gradient of samples that are almost exact."""


def train(
    config: TrainConfig,
    out: str | Path,
    *,
    encoder: nn.Module | None = None,
    device: str = "auto",
    report: ReportEvent | None = None,
) -> Path:
    """Train a model into the folder `out`, or resume the run that is there; returns the path of the best weights.

    `encoder` is a module in place of the preset's encoder, see `srno.SRNO`. `report` is called with each event, a dict
    such as {"event": "step", "loss": …} or {"event": "validation", "mean": …}. Under torchrun the processes share the
    work. Ctrl-C ends the run after the current step, saves everything and raises KeyboardInterrupt.

    >>> import srno, tempfile
    >>> from pathlib import Path
    >>> pictures = Path(srno.__file__).parent / "examples"
    >>> config = srno.TrainConfig(data=(pictures,), preset="light", steps=1, stages="16x2x64", hold_out=0)
    >>> srno.train(config, Path(tempfile.mkdtemp()) / "run").name
    'best.safetensors'
    """
    run = Run(Path(out))
    with join_world(device) as world:
        report = report if report is not None and world.main else _ignore
        stopped = loop(config, run, world, report, encoder=encoder)
    if stopped:
        raise KeyboardInterrupt
    return run.folder / "best.safetensors"


def loop(
    config: TrainConfig, run: Run, world: World, report: ReportEvent, *, encoder: nn.Module | None = None
) -> signal.Signals | None:
    """Train until the budget is used up or the process is asked to stop; resumes from the run's last state if any.

    Returns the signal that stopped it, None when it is done. Only the main process writes and reports.
    """
    show, report = (report, _logged(run, report)) if world.main else (_ignore, _ignore)
    precision = world.share(lambda: choose_precision(config.precision, world.device))
    config = replace(config, precision=precision)
    learner = Learner.begin(config, world.device, encoder)
    pictures = open_pictures(config, world, lambda done, of: report({"event": "reading", "done": done, "of": of}))

    with ExitStack() as stack:
        if world.main:
            stack.enter_context(run.opened())
            for path, reason in pictures.training.skipped:
                report({"event": "skipped", "path": str(path), "reason": reason})
        state = world.share(run.load_state)
        clock = stack.enter_context(Clock(learner.restore(state) if state else 0.0))
        budget, position = Budget(config=config, epoch_samples=pictures.epoch_samples, clock=clock), learner.position
        if state:
            world.share(lambda: budget.check_change(run.config(), position))
            if world.share(lambda: budget.progress(position) >= 1 and run.finished(position.step)):
                show({"event": "note", "text": f"{run.folder} is done already; give a larger budget to extend it"})
                return None
        elif config.revive:
            revived = learner.revive(first_patches(pictures, config, REVIVAL_PATCHES))
            report({"event": "note", "text": f"{revived} dead units of the encoder have fresh weights"})
        objective = world.wrap(Objective(learner.model))
        if world.main:
            run.save_config(config)
        feed = stack.enter_context(closing(Feed(pictures, config, world)))
        requests = stack.enter_context(stop_requests(raise_on_second=world.size == 1))
        recorder = Recorder(config, run, learner, clock, pictures, report) if world.main else None
        if recorder:
            recorder.begin(resumed=state is not None)

        while True:
            asked = requests[0] if requests else 0
            progress, rate, stop = world.broadcast(budget.progress(position), budget.rate_factor(position), asked)
            if progress >= 1 or stop:
                break
            stage = config.stage_at(progress)
            set_rate(learner.optimisers, rate)
            batch = feed.batch(stage, position.sample)
            loss, norm = gradient(objective, batch, config, config.loss_at(progress), world)
            position.sample += stage.batch
            if progress < HOLD_SHARE:
                learner.hold_fresh()
            if _accepts(config, position, loss, norm):
                learner.update(loss)
                if recorder:
                    recorder.after_step(stage, loss=loss, norm=norm, rate=rate, progress=progress)
            else:
                position.bad_steps += 1
                text = f"step {position.step}: loss {loss:.4g}, gradient {norm:.4g}; skipped"
                report({"event": "note", "text": text})
                if position.bad_steps >= BAD_STEPS_BEFORE_ROLLBACK:
                    roll_back(run, learner, world)
                    report({"event": "rollback", "step": position.step, "bad_steps": BAD_STEPS_BEFORE_ROLLBACK})

        if recorder:
            recorder.end(done=not stop)
    return signal.Signals(int(stop)) if stop else None


def _accepts(config: TrainConfig, position: Position, loss: float, norm: float) -> bool:
    """Whether to take a step with this loss and gradient norm."""
    return position.accepts(loss, norm) if config.skip_spikes else math.isfinite(loss) and math.isfinite(norm)


def _logged(run: Run, report: ReportEvent) -> ReportEvent:
    """Write every event but the reading of pictures to the run's log, then report it."""

    def emit(event: dict[str, Any]) -> None:
        if event["event"] != "reading":
            run.write_log(**event)
        report(event)

    return emit


def _ignore(_event: dict[str, Any]) -> None:
    pass


def roll_back(run: Run, learner: Learner, world: World) -> None:
    """Restore a saved state but continue with the next samples; too many rollbacks are an error."""
    position = learner.position
    sample, rollbacks = position.sample, position.rollbacks + 1
    state = world.share(lambda: run.load_state(before=position.step) if rollbacks <= MAX_ROLLBACKS else None)
    if state is None:
        advice = f"start again with a lower --rate, perhaps from --init {run.folder / 'best.safetensors'}"
        raise SRNOError(f"training diverges: {advice}")
    learner.restore(state)
    position.sample, position.rollbacks, position.bad_steps = sample, rollbacks, 0


class Objective(nn.Module):
    """A model and its loss as one module, so that DistributedDataParallel sees a single forward."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, lr: Tensor, coords: Tensor, cell: Tensor, target: Tensor, loss: Loss) -> Tensor:
        """lr (B, 3, p, p), coords (B, n, 2), cell (B, 2), target (B, n, 3) → the mean loss."""
        return loss_of(self.model(lr, coords, cell), target, loss)


def loss_of(output: Tensor, target: Tensor, loss: Loss) -> Tensor:
    """Mean over batch, points and channels; rms is the mean over the batch of each sample's root mean square."""
    if loss == "l1":
        return F.l1_loss(output, target)
    if loss == "l2":
        return F.mse_loss(output, target)
    if loss == "rms":
        errors = (output - target).square().flatten(1).mean(1)
        return (errors + RMS_EPSILON**2).sqrt().mean()
    return ((output - target).square() + CHARBONNIER_EPSILON**2).sqrt().mean()


def gradient(objective: nn.Module, batch: Sample, config: TrainConfig, kind: Loss, world: World) -> tuple[float, float]:
    """Compute the step's gradient into the parameters; returns the loss and the gradient's norm before clipping."""
    objective.zero_grad(set_to_none=True)
    total = torch.zeros((), device=world.device)
    for part, share, last in _parts(batch, config.accumulate, world.device):
        synchronise = last or world.size == 1
        with nullcontext() if synchronise else cast(DistributedDataParallel, objective).no_sync():
            with torch.autocast(world.device.type, dtype=torch.bfloat16, enabled=config.precision == "bf16"):
                loss = objective(*part, kind)
            (loss * share).backward()
        total += loss.detach() * share
    norm = nn.utils.clip_grad_norm_(objective.parameters(), config.clip or math.inf)
    return world.mean(total), float(norm)


def _parts(batch: Sample, count: int, device: torch.device) -> Iterator[tuple[tuple[Tensor, ...], float, bool]]:
    """The batch in `count` parts: tensors, share of the samples, and whether it is the last."""
    parts = list(zip(*(tensor.to(device).chunk(count) for tensor in batch), strict=True))
    for number, part in enumerate(parts, start=1):
        yield part, len(part[0]) / len(batch.lr), number == len(parts)


def choose_precision(precision: Precision, device: torch.device) -> Literal["fp32", "bf16"]:
    """Return the precision that `auto` means on this device; fp16 would need loss scaling."""
    if precision != "auto":
        return precision
    return "bf16" if fastest_precision(device) == "bf16" else "fp32"
