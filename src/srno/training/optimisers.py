"""Muon for matrices and kernels, Adam for the rest."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from srno.training.config import TrainConfig


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
