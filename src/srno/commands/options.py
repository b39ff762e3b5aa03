"""Flags that several commands share, and what they stand for."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from srno.errors import SRNOError
from srno.evaluation.protocols import LRSource, Protocol, named_protocol

if TYPE_CHECKING:
    from srno.evaluation.datasets import PictureSet
    from srno.evaluation.methods import Settings


@dataclass(frozen=True, kw_only=True)
class ProtocolFlags:
    """What a number means."""

    protocol: str = "benchmark"
    """benchmark (Y, border = scale) or div2k (RGB, border = scale + 6); the flags below change single rules of it."""
    channel: str | None = None
    """PSNR over y or rgb."""
    border: str | None = None
    """Pixels left out at each edge: scale, scale+6 or a number."""
    lr: LRSource | None = None
    """Low-resolution pictures: matlab, pillow, ready (LR_bicubic/X2 … beside HR), or standard, which is matlab at ×2 ×3
    ×4 and pillow elsewhere."""
    cell_clip: bool = True
    """Hold the cell at that of ×4 beyond ×4."""
    max_pixels: int | None = None
    """Cut larger pictures to this many pixels around their centre, to keep an evaluation short."""

    def resolve(self) -> Protocol:
        """The protocol, named after what was changed."""
        return named_protocol(
            self.protocol,
            channel=self.channel,
            border=self.border,
            lr=self.lr,
            cell_clip=self.cell_clip,
            max_pixels=self.max_pixels,
        )


@dataclass(frozen=True, kw_only=True)
class EngineFlags:
    """How models are evaluated."""

    ensemble: Annotated[bool, Parameter(negative="")] = False
    """Mean over the eight flips and transposes of the picture, at eight times the work."""
    integral: str = "exact"
    """Kernel integral over every output pixel (exact), or from this many of them."""
    memory: str | None = None
    """Memory to work in, such as 2G; results do not depend on it."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    threads: int | None = None
    """CPU threads; all cores unless given."""

    def resolve(self) -> "Settings":
        """Settings for the evaluation; the number of threads is set here."""
        import torch

        from srno.evaluation.methods import Settings
        from srno.inference.device import choose_device
        from srno.inference.memory import parse_memory

        if self.threads is not None:
            if self.threads < 1:
                raise SRNOError(f"--threads {self.threads}: give at least 1")
            torch.set_num_threads(self.threads)
        if self.integral != "exact" and not (self.integral.isdigit() and int(self.integral) > 0):
            raise SRNOError(f"--integral {self.integral!r}: write exact, or a number of points such as 16384")
        return Settings(
            integral="exact" if self.integral == "exact" else int(self.integral),
            ensemble=self.ensemble,
            memory=None if self.memory is None else parse_memory(self.memory),
            device=str(choose_device(self.device)),
        )


def find_data(folders: list[Path]) -> "list[PictureSet]":
    """The sets in all folders."""
    from srno.evaluation.datasets import find_sets

    return [found for folder in folders for found in find_sets(folder)]
