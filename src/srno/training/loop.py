"""The training loop, to be read from top to bottom.

srno train --preset light --data pictures --out runs/light --minutes 150
srno train --resume runs/light
torchrun --nproc-per-node=8 -m srno train --preset rdn --data DIV2K --out runs/rdn --recipe paper
"""

import copy
import math
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from srno.checkpoints.catalogue import read_checkpoint
from srno.checkpoints.native import Card
from srno.config import preset
from srno.data.cache import Cache, open_cache
from srno.data.loader import Batch, batches, usable
from srno.data.samples import SampleConfig
from srno.errors import SRNOError
from srno.operator.build import build
from srno.operator.model import Model
from srno.training.config import Stage, TrainConfig, parse_stages
from srno.training.grow import grow
from srno.training.objective import Loss, Objective
from srno.training.optimisers import Average, make_optimisers, set_rate
from srno.training.run import Run
from srno.training.schedule import Budget
from srno.training.validation import draw_crops, hold_out, protocol_of, validate
from srno.training.world import World

FIRST_SAVE = 15.0
"""Seconds after the start at which a run first leaves something that can be used."""
SPIKE = 5.0
"""A loss this many times its running mean is not trusted."""
PATIENCE = 5
"""Bad steps in a row after which the run goes back to its last saved state."""
ROLLBACKS = 3
"""Times it may go back before it gives up."""

Tell = Callable[[dict[str, Any]], None]
"""Hears of every event of a run: {"event": "step" | "validation" | "note" | …, …}."""


@dataclass
class Position:
    """Where a run stands, besides its tensors."""

    step: int = 0
    sample: int = 0
    running_loss: float = math.nan
    bad_steps: int = 0
    rollbacks: int = 0
    best: float = -math.inf


def train(config: TrainConfig, run: Run, world: World, tell: Tell) -> None:
    """Train until the budget is used up or the process is asked to stop; goes on from the run's last state if any."""
    cache = open_cache(config.data) if world.main else None
    world.agree()  # the other processes find the cache ready
    cache = cache or open_cache(config.data)
    pictures, held_out = hold_out(cache, config)
    training = usable(pictures, _sample_config(config, max(parse_stages(config.stages), key=lambda stage: stage.patch)))
    if world.main:
        for path, reason in training.skipped:
            tell({"event": "skipped", "path": str(path), "reason": reason})

    torch.manual_seed(config.seed)
    model = _begin(config).to(world.device)
    average = Average(model, config.ema)
    optimisers = make_optimisers(model, config)
    position, seconds = Position(), 0.0
    if (state := run.load_state()) is not None:
        seconds = _restore(state, model, average, optimisers, position)
        tell({"event": "resume", "step": position.step, "seconds": seconds})
    budget = Budget(
        config=config,
        epoch_samples=len(training.pictures) * config.repeat,
        seconds_before=seconds,
        started=time.monotonic(),
    )
    objective: nn.Module = Objective(model)
    if world.size > 1:
        objective = DistributedDataParallel(objective)

    saver = _Saver(config, run, budget, model, average, optimisers, held_out, tell)
    stream, stage = _no_batches(), config.stage(0)
    streaming = False
    next_save, next_validation = FIRST_SAVE, 60 * config.validate_minutes
    started = time.monotonic()
    with _stop_requests() as requests:
        while True:
            progress, stop = world.agree(budget.progress(position.step, position.sample), float(bool(requests)))
            if progress >= 1 or stop:
                break
            if not streaming or config.stage(progress) != stage:
                stage, streaming = config.stage(progress), True
                stream.close()
                stream = _stream(training, config, stage, position.sample, world)
            begun = time.monotonic()
            factor = world.agree(budget.rate_factor(position.step, position.sample))[0]
            set_rate(optimisers, factor)
            loss_kind: Loss = "l2" if progress >= config.l2_from else config.loss
            loss, norm = _gradient(objective, next(stream), config, loss_kind, world)
            position.sample += stage.batch
            if _trusted(loss, norm, position):
                for optimiser in optimisers:
                    optimiser.step()
                position.step += 1
                position.running_loss = _smooth(position.running_loss, loss)
                average.update(model, position.step)
                position.bad_steps = 0
            else:
                position.bad_steps += 1
                tell({"event": "note", "text": f"step {position.step}: loss {loss:.4g}, gradient {norm:.4g}; skipped"})
            if position.bad_steps >= PATIENCE:
                _roll_back(run, model, average, optimisers, position, tell)
            if world.main:
                pixels = stage.batch * stage.patch**2 / (time.monotonic() - begun)
                saver.step(position, loss, norm, factor, pixels, progress)
                elapsed = time.monotonic() - started
                if elapsed >= next_validation:
                    saver.validate(position)
                    next_validation = time.monotonic() - started + 60 * config.validate_minutes
                if elapsed >= next_save:
                    saver.save(position)
                    next_save = time.monotonic() - started + 60 * config.checkpoint_minutes
    stream.close()
    if world.main:
        saver.validate(position)
        saver.save(position)
        tell({"event": "stopped" if stop else "done", "step": position.step, "seconds": budget.seconds()})


def _begin(config: TrainConfig) -> Model:
    target = preset(config.preset)
    return build(target) if config.init is None else grow(read_checkpoint(config.init), target)


def _sample_config(config: TrainConfig, stage: Stage) -> SampleConfig:
    return SampleConfig(
        patch=stage.patch,
        points=stage.points,
        r_min=config.r_min,
        r_max=config.r_max,
        sampling=config.sampling,
        detail=config.detail,
        degradation=config.degradation,
        allow_small=config.allow_small,
        repeat=config.repeat,
    )


def _stream(cache: Cache, config: TrainConfig, stage: Stage, sample: int, world: World) -> Generator[Batch]:
    if stage.batch % world.size:
        raise SRNOError(f"batch {stage.batch} cannot be shared by {world.size} processes; change --stages")
    return batches(
        cache,
        _sample_config(config, stage),
        seed=config.seed,
        batch=stage.batch // world.size,
        start_sample=sample,
        rank=world.rank,
        world=world.size,
        workers=config.workers,
    )


def _no_batches() -> Generator[Batch]:
    yield from ()


def _gradient(objective: nn.Module, batch: Batch, config: TrainConfig, kind: Loss, world: World) -> tuple[float, float]:
    """Leave the step's gradient in the parameters; returns the loss and the gradient's norm before clipping."""
    objective.zero_grad(set_to_none=True)
    total = torch.zeros((), device=world.device)
    parts = list(_parts(batch, config.accumulate, world.device))
    for number, part in enumerate(parts, start=1):
        last = number == len(parts)
        hold = nullcontext() if last or world.size == 1 else cast(DistributedDataParallel, objective).no_sync()
        with hold:
            with torch.autocast(world.device.type, dtype=torch.bfloat16, enabled=config.precision == "bf16"):
                loss = objective(*part, kind)
            (loss / len(parts)).backward()
        total += loss.detach() / len(parts)
    norm = nn.utils.clip_grad_norm_(objective.parameters(), config.clip or math.inf)
    return world.mean(total), float(norm)


def _parts(batch: Batch, count: int, device: torch.device) -> Iterator[tuple[Tensor, ...]]:
    tensors = [torch.from_numpy(array).to(device) for array in (batch.lr, batch.coords, batch.cell, batch.target)]
    return zip(*(tensor.chunk(count) for tensor in tensors), strict=True)


def _trusted(loss: float, norm: float, position: Position) -> bool:
    if not (math.isfinite(loss) and math.isfinite(norm)):
        return False
    return math.isnan(position.running_loss) or loss < SPIKE * position.running_loss


def _smooth(mean: float, value: float) -> float:
    return value if math.isnan(mean) else 0.98 * mean + 0.02 * value


def _state(
    model: nn.Module, average: Average, optimisers: list[torch.optim.Optimizer], position: Position, seconds: float
) -> dict[str, Any]:
    return {
        "step": position.step,
        "position": dict(vars(position)),
        "seconds": seconds,
        "model": model.state_dict(),
        "average": average.weights,
        "optimisers": [optimiser.state_dict() for optimiser in optimisers],
        "random": torch.get_rng_state(),
    }


def _restore(
    state: dict[str, Any],
    model: nn.Module,
    average: Average,
    optimisers: list[torch.optim.Optimizer],
    position: Position,
) -> float:
    """Put everything back; returns the seconds that the run had taken."""
    model.load_state_dict(state["model"])
    for name, tensor in average.weights.items():
        tensor.copy_(state["average"][name])
    for optimiser, saved in zip(optimisers, state["optimisers"], strict=True):
        optimiser.load_state_dict(saved)
    for name, value in state["position"].items():
        setattr(position, name, value)
    torch.set_rng_state(state["random"])
    return float(state["seconds"])


def _roll_back(
    run: Run,
    model: nn.Module,
    average: Average,
    optimisers: list[torch.optim.Optimizer],
    position: Position,
    tell: Tell,
) -> None:
    """Go back to the last saved weights, but on to other samples, and not for ever."""
    state = run.load_state()
    if state is None or position.rollbacks >= ROLLBACKS:
        raise SRNOError("training diverges: try a lower --rate, or --precision fp32")
    sample, rollbacks = position.sample, position.rollbacks + 1
    _restore(state, model, average, optimisers, position)
    position.sample, position.rollbacks, position.bad_steps = sample, rollbacks, 0
    tell({"event": "note", "text": f"{PATIENCE} bad steps in a row: back to the state of step {position.step}"})


@contextmanager
def _stop_requests() -> Generator[list[int]]:
    """Collect SIGTERM and Ctrl-C instead of dying of them; a second Ctrl-C is not caught."""
    requests: list[int] = []

    def ask(number: int, _: object) -> None:
        requests.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Saver:
    """Everything that a run leaves on disk and tells, while it goes on."""

    def __init__(
        self,
        config: TrainConfig,
        run: Run,
        budget: Budget,
        model: Model,
        average: Average,
        optimisers: list[torch.optim.Optimizer],
        held_out: Any,
        tell: Tell,
    ) -> None:
        self.config, self.run, self.budget, self.tell = config, run, budget, tell
        self.model, self.average, self.optimisers = model, average, optimisers
        self.pictures = held_out
        self.protocol = protocol_of(config)
        self.results: dict[str, float] = {}
        self.shadow = copy.deepcopy(model)

    def step(self, position: Position, loss: float, norm: float, factor: float, pixels: float, progress: float) -> None:
        entry = {"event": "step", "step": position.step, "sample": position.sample, "loss": loss, "norm": norm}
        entry |= {"rate": factor, "pixels": round(pixels), "progress": progress, "seconds": self.budget.seconds()}
        self.tell(entry)

    def validate(self, position: Position) -> None:
        """Score the averaged weights; keep them as `best` if they are."""
        if self.pictures is None:
            return
        self.shadow.load_state_dict(self.average.weights)
        self.shadow.eval()
        self.results = validate(self.shadow, self.pictures, self.protocol)
        seconds = self.budget.seconds()
        self.tell({"event": "validation", "step": position.step, "seconds": seconds, **self.results})
        draw_crops(self.shadow, self.pictures, self.protocol, self.run.folder / "crops" / f"{position.step:07d}.png")
        if self.results["mean"] > position.best:
            position.best = self.results["mean"]
            self._weights("best", position)

    def save(self, position: Position) -> None:
        """Write state and weights; a full disk is told and survived."""
        try:
            state = _state(self.model, self.average, self.optimisers, position, self.budget.seconds())
            self._weights("last", position)
            if not (self.run.folder / "best.safetensors").exists():
                self._weights("best", position)
            self.run.save_state(state)
        except OSError as error:
            self.tell({"event": "note", "text": f"could not save ({error.strerror}); the last checkpoint is kept"})

    def _weights(self, which: str, position: Position) -> None:
        hours = self.budget.seconds() / 3600
        card = Card(
            name=f"{self.config.preset}, {position.step} steps",
            data=", ".join(Path(folder).name for folder in self.config.data),
            recipe=f"{position.step} steps, {position.sample} samples, {hours:.2f} hours, {self.config.precision}",
            results={"validation": {"protocol": str(self.protocol), **self.results}} if self.results else {},
        )
        self.run.save_weights(which, self.model.config, self.average.weights, card)
