"""Flags that the commands of `srno reproduce` share."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from srno.commands.options import Folders, ProtocolFlags, prepare_computing
from srno.evaluation.protocols import LRSource, Protocol, named_protocol

if TYPE_CHECKING:
    from srno.upscaling.upscaler import Upscaler


@dataclass(frozen=True, kw_only=True)
class TableProtocolFlags(ProtocolFlags):
    """Flags of the evaluation protocol; each table has its own unless given."""

    protocol: str = "paper"
    """paper (div2k for DIV2K, benchmark for the other sets), benchmark or div2k; the flags below change its rules."""

    def of_table(self, name: str) -> Protocol:
        """The protocol of a table whose own is `name`."""
        return replace(self, protocol=name if self.protocol == "paper" else self.protocol).resolve()


@dataclass(frozen=True, kw_only=True)
class PaperFlags:
    """Flags of everything that scores checkpoints on the paper's sets."""

    data: Folders | None = None
    """Folder of sets, found by their names (DIV2K/DIV2K_valid_HR, Set5, Set14, B100, Urban100); others are added to the
    table, but never DIV2K's training pictures."""
    checkpoints: Path | None = None
    """Folder of checkpoints (.safetensors, .pth) and training runs, matched to rows by their model config; a name that
    ends in -s means sequential sampling. The shipped models unless given."""
    scales: str | None = None
    """Factors; those of the paper unless given."""
    cache: bool = True
    """Use cached scores and cache new ones."""


@dataclass(frozen=True, kw_only=True)
class AnalysisFlags:
    """Flags of the figures that look into a model."""

    model: str = "default"
    """A shipped model or a checkpoint of SRNO."""
    lr: LRSource = "standard"
    """Low-resolution pictures: matlab, pillow, ready (LR_bicubic/X2 … beside HR), or standard, which is matlab at ×2 ×3
    ×4 and pillow elsewhere."""
    cell_clip: bool = True
    """Above ×4, keep the cell of ×4."""
    max_pixels: int | None = None
    """Cut larger pictures to this many pixels around their centre."""
    memory: str | None = None
    """Memory budget, such as 2G; half of the free memory unless given."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    threads: int | None = None
    """CPU threads; all cores unless given."""

    def protocol(self) -> Protocol:
        """How low-resolution pictures are made; nothing is scored."""
        return named_protocol("benchmark", lr=self.lr, cell_clip=self.cell_clip, max_pixels=self.max_pixels)

    def upscaler(self) -> "Upscaler":
        """The model in fp32, which ranks need."""
        from srno.upscaling.upscaler import Upscaler

        prepare_computing(self.threads)
        return Upscaler(model=self.model, memory=self.memory, device=self.device, precision="fp32", integral="exact")


@dataclass(frozen=True, kw_only=True)
class SetAnalysisFlags(AnalysisFlags):
    """Flags of the figures that look into a model over whole sets."""

    data: Folders
    """A set such as Set5; may be given several times."""
    scales: str = "2,3,4,6,8"
    """Factors by which pictures are enlarged."""


TableRules: TypeAlias = Annotated[TableProtocolFlags, Parameter(name="*")]
Analysing: TypeAlias = Annotated[AnalysisFlags, Parameter(name="*")]
AnalysingSets: TypeAlias = Annotated[SetAnalysisFlags, Parameter(name="*")]
Paper: TypeAlias = Annotated[PaperFlags, Parameter(name="*")]

PAPER_RULES, ANALYSIS, PAPER = TableProtocolFlags(), AnalysisFlags(), PaperFlags()
