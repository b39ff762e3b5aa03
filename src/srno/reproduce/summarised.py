"""Pictures of a set with the summaries of their latent functions, for the figures of ranks and kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from srno.analysis import LatentSummary, summarise
from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet, SetPicture, load_pair, reason_to_skip
from srno.evaluation.evaluate import ReportProgress
from srno.evaluation.protocols import LR_DESCRIPTIONS, Protocol, Scale
from srno.field.field import Field, lift
from srno.upscaling.upscaler import Upscaler


@dataclass(frozen=True)
class SummarisedPicture:
    """A picture at a scale."""

    name: str
    scale: Scale
    summary: LatentSummary


def describe_inputs(protocol: Protocol) -> str:
    """How the pictures were made; nothing is scored, so the rest of the protocol does not apply."""
    crop = f"centre crops of at most {protocol.max_pixels} pixels" if protocol.max_pixels else "whole pictures"
    clip = "cell clip above ×4" if protocol.cell_clip else "no cell clip"
    return f"{LR_DESCRIPTIONS[protocol.lr]}; {clip}; {crop}."


def lift_pair(
    upscaler: Upscaler, picture: SetPicture, scale: Scale, protocol: Protocol
) -> tuple[Field, NDArray[np.float32], NDArray[np.float32]]:
    """Make the low-resolution picture (h, w, 3) by the protocol and lift it; returns it and the truth, in [0, 1]."""
    if reason := reason_to_skip(picture, scale, protocol):
        raise SRNOError(f"{picture.path} at ×{scale}: {reason}")
    lr, hr = (np.divide(pixels, 255, dtype=np.float32) for pixels in load_pair(picture, scale, protocol))
    return lift_pixels(upscaler, lr), lr, hr


def lift_pixels(upscaler: Upscaler, lr: NDArray[np.float32]) -> Field:
    """Lift a picture (h, w, 3) in [0, 1]."""
    image = torch.from_numpy(np.ascontiguousarray(lr)).permute(2, 0, 1) * 2 - 1
    return lift(upscaler.operator, image, memory=upscaler.memory)


def summarise_set(
    upscaler: Upscaler, sets: Sequence[PictureSet], scales: Sequence[Scale], protocol: Protocol, report: ReportProgress
) -> Iterator[SummarisedPicture]:
    """Summarise every picture at every scale, over the whole output."""
    pictures = [picture for each in sets for picture in each.pictures]
    jobs = [(picture, scale) for scale in scales for picture in pictures]
    for number, (picture, scale) in enumerate(jobs, start=1):
        field, _, truth = lift_pair(upscaler, picture, scale, protocol)
        summary = summarise(field, (truth.shape[0], truth.shape[1]), cell_clip=protocol.cell_clip)
        report(number, len(jobs), f"{picture.name} ×{scale}")
        yield SummarisedPicture(picture.path.stem, scale, summary)
