"""A model as evaluation wants it: arrays in, arrays out, by the engine and always over the whole picture."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from srno.inference.ensemble import render_ensemble, render_once
from srno.inference.field import Integral
from srno.operator.model import Model


@dataclass(frozen=True)
class Upscaler:
    """A function from a low-resolution picture and a size to a picture."""

    model: Model
    integral: Integral = "exact"
    memory: int | None = None
    ensemble: bool = False

    def __call__(
        self,
        lr: NDArray[np.float32],
        *,
        size: tuple[int, int],
        scale: tuple[float, float],  # noqa: ARG002 (the sizes say it exactly)
        cell_clip: bool,
    ) -> NDArray[np.float32]:
        """`lr` (h, w, 3) in [0, 1] → (*size, 3), not clamped; `size` is (height, width)."""
        image, wanted = torch.from_numpy(lr).permute(2, 0, 1) * 2 - 1, (size[1], size[0])
        render = render_ensemble if self.ensemble else render_once
        rgb = render(self.model, image, wanted, integral=self.integral, memory=self.memory, cell_clip=cell_clip)
        return (rgb.permute(1, 2, 0).float() * 0.5 + 0.5).cpu().numpy()
