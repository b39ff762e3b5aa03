"""The state of a run: weights, optimisers (Muon for matrices and kernels, Adam for the rest) and counters."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from srno.checkpoints.build import create_model
from srno.checkpoints.catalogue import find, read_checkpoint
from srno.config import preset
from srno.errors import SRNOError
from srno.operator.model import Model
from srno.training.config import TrainConfig
from srno.training.grow import grow
from srno.training.revive import hold, revive

LOSS_SPIKE_FACTOR = 5.0
"""A step whose loss is this many times the running mean is skipped."""
LOSS_AVERAGE_DECAY = 0.98
"""Decay of the running mean of the loss."""


class KernelMuon(torch.optim.Muon):
    """Muon that takes convolution kernels as well, each as the matrix out × (in·k·k).

    The matrices share the kernels' storage, so an update of one is an update of the other.
    """

    def __init__(self, kernels: Iterable[nn.Parameter], *, lr: float, weight_decay: float) -> None:
        self.kernels = list(kernels)
        self.matrices = [nn.Parameter(kernel.detach().view(kernel.shape[0], -1)) for kernel in self.kernels]
        super().__init__(self.matrices, lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for kernel, matrix in zip(self.kernels, self.matrices, strict=True):
            matrix.grad = None if kernel.grad is None else kernel.grad.reshape(matrix.shape)
        return super().step(closure)


def muon_weights(model: nn.Module) -> list[nn.Parameter]:
    """Weights of linear maps and convolutions, except those with the 3 channels of the picture."""
    chosen: list[nn.Parameter] = []
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            weight = module.weight
            if isinstance(weight, nn.Parameter) and weight.requires_grad and 3 not in weight.shape[:2]:
                chosen.append(weight)
    return chosen


def make_optimisers(model: nn.Module, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """The optimisers of a run; each keeps its peak rate in its groups as `peak`."""
    matrices = muon_weights(model) if config.optimiser == "muon" else []
    ids = {id(matrix) for matrix in matrices}
    rest = [parameter for parameter in model.parameters() if parameter.requires_grad and id(parameter) not in ids]
    rate = config.adam_rate if matrices else config.rate
    optimisers: list[torch.optim.Optimizer] = [torch.optim.Adam(rest, lr=rate, betas=config.betas)]
    if matrices:
        optimisers.append(KernelMuon(matrices, lr=config.rate, weight_decay=config.weight_decay))
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["peak"] = group["lr"]
    return optimisers


def set_rate(optimisers: list[torch.optim.Optimizer], factor: float) -> None:
    """Set every rate to this share of its peak."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * factor


class Average:
    """Exponential moving average of weights; the decay starts low, so that the first weights lose influence soon."""

    def __init__(self, model: nn.Module, decay: float | None) -> None:
        self.decay = decay
        self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        keep = 0.0 if self.decay is None else min(self.decay, (1 + step) / (10 + step))
        current: dict[str, Tensor] = model.state_dict()
        for name, mean in self.weights.items():
            mean.lerp_(current[name], 1 - keep)


@dataclass
class Position:
    """Counters and scores of a run, which are saved beside its tensors."""

    step: int = 0
    sample: int = 0
    running_loss: float = math.nan
    bad_steps: int = 0
    """Consecutive bad steps up to now."""
    rollbacks: int = 0
    best: float = -math.inf

    def accepts(self, loss: float, norm: float) -> bool:
        """Whether a step with this loss and gradient norm should be taken."""
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return False
        return math.isnan(self.running_loss) or loss < LOSS_SPIKE_FACTOR * self.running_loss


@dataclass(frozen=True)
class Learner:
    """Weights, their average, the optimisers' state and the position: everything that a step changes."""

    model: Model
    average: Average
    optimisers: list[torch.optim.Optimizer]
    position: Position = field(default_factory=Position)
    fresh: list[Tensor] = field(default_factory=list)
    """Units that --revive restarted, for each block of the encoder; empty without --revive."""

    @classmethod
    def begin(cls, config: TrainConfig, device: torch.device, encoder: nn.Module | None = None) -> Self:
        """Make the state before the first step, with fresh weights or those of --init."""
        torch.manual_seed(config.seed)
        model = _first_model(config, encoder).to(device)
        model.encoder.requires_grad_(not config.fixed_encoder)
        return cls(model, Average(model, config.ema), make_optimisers(model, config))

    def revive(self, patches: Tensor) -> int:
        """Restart the units that are dead on patches (B, 3, p, p), before the first step; returns their number."""
        self.fresh[:] = revive(self.model.encoder, patches.to(next(self.model.parameters()).device))
        for name, tensor in self.model.state_dict().items():
            self.average.weights[name].copy_(tensor)
        return sum(map(len, self.fresh))

    def hold_fresh(self) -> None:
        """Zero the gradient of the filters of restarted units, so that the next update does not change them."""
        if self.fresh:
            hold(self.model.encoder, self.fresh)

    def update(self, loss: float) -> None:
        """Take a step with the gradient that the parameters hold."""
        for optimiser in self.optimisers:
            optimiser.step()
        position = self.position
        position.step += 1
        position.bad_steps = 0
        mean = position.running_loss
        position.running_loss = (
            loss if math.isnan(mean) else LOSS_AVERAGE_DECAY * mean + (1 - LOSS_AVERAGE_DECAY) * loss
        )
        self.average.update(self.model, position.step)

    def state(self, seconds: float) -> dict[str, Any]:
        """Everything that an exact resumption needs."""
        return {
            "step": self.position.step,
            "position": dict(vars(self.position)),
            "seconds": seconds,
            "model": self.model.state_dict(),
            "average": self.average.weights,
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "random": torch.get_rng_state(),
            "fresh": self.fresh,
        }

    def restore(self, state: dict[str, Any]) -> float:
        """Restore a saved state; returns its seconds of training."""
        try:
            self.model.load_state_dict(state["model"])
        except RuntimeError:
            raise SRNOError(
                "the run has another model than this; give its own --preset, and its --encoder if any"
            ) from None
        for name, tensor in self.average.weights.items():
            tensor.copy_(state["average"][name])
        for optimiser, saved in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)
        for name, value in state["position"].items():
            setattr(self.position, name, value)
        torch.set_rng_state(state["random"])
        self.fresh[:] = state.get("fresh", [])  # not in states that are older than --revive
        return float(state["seconds"])


def _first_model(config: TrainConfig, encoder: nn.Module | None) -> Model:
    target = preset(config.preset)
    only = target.only_scale
    if only is not None and not config.r_min == config.r_max == only:
        raise SRNOError(f"--preset {config.preset}: give --r-min {only} --r-max {only}, its only factor")
    if config.init is None:
        model = create_model(target, encoder=encoder)
        return model if config.init_encoder is None else _with_encoder_of(model, config.init_encoder)
    checkpoint = read_checkpoint(find(config.init))
    return checkpoint.model(encoder).train() if encoder is not None else grow(checkpoint, target)


def _with_encoder_of(model: Model, init_encoder: Path) -> Model:
    """The model with the encoder weights of a checkpoint, whose decoder may be any."""
    checkpoint = read_checkpoint(find(init_encoder))
    if checkpoint.config.encoder != model.config.encoder:
        raise SRNOError(
            f"--init-encoder {init_encoder}: its encoder is {checkpoint.config.encoder}, but the preset's is "
            f"{model.config.encoder}; choose another --preset"
        )
    model.encoder.load_state_dict(checkpoint.model().encoder.state_dict())
    return model
