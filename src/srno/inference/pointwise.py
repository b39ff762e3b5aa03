"""Models whose decoder looks at one point at a time: any chunks give the same picture."""

from collections.abc import Iterator

import torch
from torch import Tensor

from srno.inference.engine import Advance, Points
from srno.inference.latent import Chunk
from srno.inference.plan import Plan
from srno.inference.sampling import Sampling
from srno.rivals.fused import Rival, prepare


def render_pointwise(
    model: Rival, features: Tensor, image: Tensor, sampling: Sampling, cell_clip: bool, plan: Plan, advance: Advance
) -> Iterator[Points]:
    """Every chunk of a sampling with its RGB (points, 3)."""
    true_cell = sampling.cell(clip=False, device=image.device)
    clipped = sampling.cell(clip=cell_clip, device=image.device)
    answer = prepare(model, features.permute(2, 0, 1).unsqueeze(0), image, clipped)
    y, x = sampling.axis(0, image.device), sampling.axis(1, image.device)
    height, width = sampling.size
    rows = max(1, plan.chunk // width)
    for top in range(0, height, rows):
        for left in range(0, width, plan.chunk):
            chunk = Chunk(top, min(top + rows, height), left, min(left + plan.chunk, width))
            axes = (y[chunk.top : chunk.bottom], x[chunk.left : chunk.right])
            coords = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).reshape(1, -1, 2)
            if cell_clip:
                coords, _ = model.clip_cell(coords, true_cell, sampling.lr)
            yield chunk, answer(coords)[0]
            advance(chunk.points)
