"""The paper's numbers, read from published.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from srno.config import ModelConfig, preset
from srno.evaluation.forms import Form
from srno.evaluation.protocols import Scale

SEQUENTIAL_SUFFIX = "(-s)"
"""Suffix of methods that were trained with sequential sampling; the model config does not differ."""


@dataclass(frozen=True)
class PublishedTable:
    """A table of PSNRs."""

    title: str
    source: str
    protocol: str
    """name of the protocol"""
    scales: tuple[Scale, ...]
    psnr: Mapping[str, Mapping[str, tuple[float, ...]]]
    """set → method → dB at the first scales"""
    milliseconds: Mapping[str, float]
    """running time of each method, if the table has it"""
    timed_on: str = ""
    """machine of the running times, and what the paper says of them"""

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(method for rows in self.psnr.values() for method in rows))


@dataclass(frozen=True)
class PublishedCost:
    """A row of table 3."""

    parameters: float
    """millions"""
    flops: float
    """billions, at 128² pixels and 128² points"""


@dataclass(frozen=True)
class Published:
    """All numbers of the paper."""

    paper: str
    methods: Mapping[str, tuple[str, ...]]
    """the paper's name of a method → our preset, or presets by scale"""
    tables: Mapping[str, PublishedTable]
    bicubic: Mapping[str, tuple[float, ...]]
    """set → dB at ×2 ×3 ×4 in the literature"""
    costs: Mapping[str, PublishedCost]


def load_published() -> Published:
    """Read published.toml."""
    raw = tomllib.loads((files("srno.reproduce") / "published.toml").read_text())
    tables = {
        name: PublishedTable(
            title=table["title"],
            source=table["source"],
            protocol=table["protocol"],
            scales=tuple(Scale.parse(scale) for scale in table["scales"]),
            psnr={data: {row: tuple(values) for row, values in rows.items()} for data, rows in table["psnr"].items()},
            milliseconds=table.get("milliseconds", {}),
            timed_on=table.get("timed_on", ""),
        )
        for name, table in raw["tables"].items()
    }
    return Published(
        paper=raw["paper"],
        methods={name: tuple(presets) for name, presets in raw["methods"].items()},
        tables=tables,
        bicubic={name: tuple(values) for name, values in raw["bicubic"].items()},
        costs={name: PublishedCost(**cost) for name, cost in raw["costs"].items()},
    )


def paper_name(config: ModelConfig, form: Form, published: Published) -> str | None:
    """The method's name in table 4 of the paper, or None; SRNO is the form exact, LTE points, LTE+ maps."""
    if form in ("textbook", "quadrature"):
        return None
    for method in published.tables["table4"].methods:
        presets = [preset(name) for name in published.methods[method]]
        if config in presets and (method == "LTE+") == (form == "maps"):
            return method
    return None
