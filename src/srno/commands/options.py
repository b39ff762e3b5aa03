"""Flags that several commands share."""

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from srno.errors import SRNOError
from srno.evaluation.protocols import LRSource, Protocol, named_protocol
from srno.upscaling.upscaler import AlphaBy, Precision, Upscaler

if TYPE_CHECKING:
    from torch import nn

    from srno.evaluation.datasets import PictureSet

Folders: TypeAlias = Annotated[list[Path], Parameter(negative_iterable="")]
"""A flag that may be given several times."""


@dataclass(frozen=True, kw_only=True)
class ProtocolFlags:
    """Flags of the evaluation protocol."""

    protocol: str = "benchmark"
    """benchmark (Y, border = scale) or div2k (RGB, border = scale + 6); the flags below change its rules."""
    channel: str | None = None
    """PSNR over y or rgb."""
    border: str | None = None
    """Pixels left out at each edge: scale, scale+6 or a number."""
    lr: LRSource | None = None
    """Low-resolution pictures: matlab, pillow, ready (LR_bicubic/X2 … beside HR), or standard, which is matlab at ×2 ×3
    ×4 and pillow elsewhere."""
    jpeg: int | None = None
    """Save the low-resolution pictures as JPEG of this quality (4:2:0) first, as most photographs are."""
    cell_clip: bool = True
    """Above ×4, keep the cell of ×4."""
    max_pixels: int | None = None
    """Cut larger pictures to this many pixels around their centre, for a quick evaluation."""

    def resolve(self) -> Protocol:
        """The protocol; changed rules are part of its name."""
        return named_protocol(
            self.protocol,
            channel=self.channel,
            border=self.border,
            lr=self.lr,
            jpeg=self.jpeg,
            cell_clip=self.cell_clip,
            max_pixels=self.max_pixels,
        )


@dataclass(frozen=True, kw_only=True)
class EvaluationFlags(Upscaler):
    """How models are evaluated: the settings of `srno upscale`, exact and in the weights' precision unless given."""

    model: Annotated[str, Parameter(parse=False)] = "default"
    alpha: Annotated[AlphaBy, Parameter(parse=False)] = "operator"
    ensemble: Annotated[bool, Parameter(negative="")] = False
    """Mean over the eight flips and rotations: slightly better, eight times slower."""
    precision: Precision = "fp32"
    """Precision of the products: fp32, bf16, fp16, or auto, the fastest on this machine."""
    clean: Annotated[str | float, Parameter(parse=False)] = 0.0
    integral: str | int = "exact"
    """Kernel integral over every output pixel (exact), from this many of them, or auto: one in 32, 24576 to 131072."""
    memory: str | int | None = None
    """Memory budget, such as 2G; half of the free memory unless given."""
    threads: int | None = None
    """CPU threads; all cores unless given."""


@dataclass(frozen=True, kw_only=True)
class CleaningFlags(EvaluationFlags):
    """The same, with a choice of how strongly pictures are cleaned."""

    clean: str | float = 0.0
    """How strongly to remove compression artefacts, 0 to 1; auto suits --jpeg. Only for the model light."""


@dataclass(frozen=True, kw_only=True)
class ScoringFlags:
    """Flags of the commands that score models on sets."""

    data: Folders
    """A set (HR/, perhaps LR_bicubic/X2 …), a folder of pictures, or a parent of such; may be given several times."""
    scales: str = "2,3,4"
    """Factors, such as 2,3,6.6,2x3 (width×height)."""
    cache: bool = True
    """Use cached scores and cache new ones."""


Rules: TypeAlias = Annotated[ProtocolFlags, Parameter(name="*")]
Evaluating: TypeAlias = Annotated[EvaluationFlags, Parameter(name="*")]
Cleaning: TypeAlias = Annotated[CleaningFlags, Parameter(name="*")]
Scoring: TypeAlias = Annotated[ScoringFlags, Parameter(name="*")]

DEFAULT_PROTOCOL_FLAGS = ProtocolFlags()
DEFAULT_EVALUATION_FLAGS = EvaluationFlags()
DEFAULT_CLEANING_FLAGS = CleaningFlags()


def import_encoder(text: str) -> "nn.Module":
    """Make an encoder from MODULE:CLASS; modules in the current folder are found too."""
    module, colon, name = text.partition(":")
    if not colon:
        raise SRNOError(f"--encoder {text!r}: write MODULE:CLASS, such as mynets:Tiny")
    sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError, TypeError) as error:
        raise SRNOError(f"--encoder {text!r}: {error}") from None
    finally:
        sys.path.remove("")


def prepare_computing(threads: int | None) -> None:
    """Use so many CPU threads, all cores unless given, and keep freed memory for the next picture."""
    from srno.machine import keep_freed_memory

    keep_freed_memory()
    if threads is None:
        return
    if threads < 1:
        raise SRNOError(f"--threads {threads}: give at least 1")
    import torch

    torch.set_num_threads(threads)


def find_data(folders: list[Path]) -> "list[PictureSet]":
    """Find the sets in all folders."""
    from srno.evaluation.datasets import find_sets

    return [found for folder in folders for found in find_sets(folder)]
