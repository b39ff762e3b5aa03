"""Cost of a model: parameters and floating-point operations, counted on the textbook forward without running it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from srno.checkpoints.build import create_model
from srno.config import ModelConfig
from srno.operator.grid import cell_of, make_grid
from srno.operator.model import Model

ATTENTION_OPERATIONS = frozenset({"bmm", "baddbmm"})
"""Products of activations with activations, k̃ᵀṽ and q·M, which the paper leaves out of its count."""


@dataclass(frozen=True)
class Cost:
    """Cost of a model or of a part of it."""

    parameters: int
    flops_paper: int
    """2 × MACs of convolutions and linear maps."""
    flops: int
    """2 × MACs of these and of the kernel integrals."""


@dataclass(frozen=True)
class Profile:
    """A model's cost for one input and output size, whole and by part."""

    total: Cost
    parts: Mapping[str, Cost]
    lr_size: tuple[int, int]
    """(height, width) of the input."""
    output_size: tuple[int, int]
    """(height, width) of the output, or of the set of queries."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data: `parameters`, `flops_paper`, `flops`, `parts` and the sizes, width first as users write them."""
        return {
            **vars(self.total),
            "parts": {name: vars(cost) for name, cost in self.parts.items()},
            "input": list(reversed(self.lr_size)),
            "output": list(reversed(self.output_size)),
        }


def profile(
    config: ModelConfig, lr_size: tuple[int, int] = (128, 128), output: tuple[int, int] = (128, 128)
) -> Profile:
    """Count a model on tensors without storage; sizes are (height, width)."""
    with torch.device("meta"), FlopCounterMode(display=False, depth=4) as counter:
        model = create_model(config)
        counted = _TextbookForward(model)
        scales = (output[0] / lr_size[0], output[1] / lr_size[1])
        with torch.no_grad():
            counted(torch.empty(1, 3, *lr_size), make_grid(*output).reshape(1, -1, 2), cell_of(*scales))
    counts: Mapping[str, Mapping[Any, int]] = counter.get_flop_counts()
    root = f"{type(counted).__name__}.model"
    parts = {name: _cost(module, counts.get(f"{root}.{name}", {})) for name, module in _parts(model)}
    return Profile(_cost(model, counts["Global"]), parts, lr_size, output)


class _TextbookForward(torch.nn.Module):
    """Calls the textbook forward as a module, since the counter attributes operations to modules."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        return self.model.reference(image, coords, cell)


def _parts(model: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """List the model's parts by name; each layer of a module list is a part."""
    parts: list[tuple[str, torch.nn.Module]] = []
    for name, module in model.named_children():
        if isinstance(module, torch.nn.ModuleList):
            parts += [(f"{name}.{i}", layer) for i, layer in enumerate(module)]
        else:
            parts.append((name, module))
    return parts


def _cost(module: torch.nn.Module, counts: Mapping[Any, int]) -> Cost:
    parameters = sum(parameter.numel() for parameter in module.parameters())
    paper = sum(flops for operation, flops in counts.items() if operation.__name__ not in ATTENTION_OPERATIONS)
    return Cost(parameters, paper, sum(counts.values()))
