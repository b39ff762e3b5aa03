"""What a training run is: one frozen record that is the command's flags, the API's argument and the run's memory."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from srno.errors import SRNOError

Optimiser: TypeAlias = Literal["muon", "adam"]
Precision: TypeAlias = Literal["fp32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of a run with samples of one shape."""

    until: float = 1.0
    """Share of the budget at which this stage ends."""
    patch: int
    """Side p of the low-resolution patch."""
    batch: int
    """Samples in a step, over all devices."""
    points: int
    """Supervision points n_q of a sample."""


def parse_stages(text: str) -> tuple[Stage, ...]:
    """`0.8:32x16x512,48x16x1152` is 32² patches, batch 16, 512 points until 80 % of the budget, then 48² and so on."""
    stages: list[Stage] = []
    for part in text.split(","):
        until, _, shape = part.strip().rpartition(":")
        try:
            patch, batch, points = (int(number) for number in shape.split("x"))
            stages.append(Stage(until=float(until or 1), patch=patch, batch=batch, points=points))
        except ValueError:
            raise SRNOError(
                f"--stages {text!r}: write UNTIL:PATCHxBATCHxPOINTS, such as 0.8:32x16x512,48x16x1152"
            ) from None
    shares = [stage.until for stage in stages]
    if shares != sorted(set(shares)) or shares[-1] != 1.0 or shares[0] <= 0:
        raise SRNOError(f"--stages {text!r}: shares must rise, and the last stage must go on to 1")
    return tuple(stages)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything that decides a run's result. A budget is `steps`, `epochs` or `minutes`."""

    data: tuple[Path, ...]
    """Folders of pictures, searched recursively."""
    preset: str = "light"
    """Model to train."""
    init: Path | None = None
    """Weights to start from; the preset may be deeper or wider than they are."""
    validation: Path | None = None
    """Folder of pictures to select by."""
    hold_out: int = 16
    """Without a validation folder: this many pictures are taken out of the data for it."""

    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None

    stages: str = "48x16x1152"
    """Shape of the samples, PATCHxBATCHxPOINTS; with UNTIL: before it, several one after the other."""
    r_min: float = 1.0
    """Smallest scale drawn."""
    r_max: float = 4.0
    """Largest scale drawn."""
    sampling: Literal["random", "sequential"] = "random"
    """Supervision points anywhere in the crop, or as one window (the paper's -s, as we read it)."""
    detail: float = 0.0
    """Share of crops placed where the picture has detail."""
    degradation: str = "bicubic"
    """How low-resolution patches are made."""
    allow_small: bool = False
    """Use pictures that are too small for the largest crop, at the scales they allow."""
    repeat: int = 20
    """Visits of each picture in an epoch."""

    optimiser: Optimiser = "muon"
    rate: float = 2e-3
    """Peak rate of Muon, or of Adam where it is alone."""
    adam_rate: float = 1e-3
    """Peak rate of Adam for what Muon leaves."""
    betas: tuple[float, float] = (0.9, 0.99)
    """Adam's averaging."""
    weight_decay: float = 0.0
    """Muon's decay."""
    warmup: float = 0.05
    """Share of the budget over which the rate rises."""
    warmup_from: float = 0.0
    """Share of the peak at which it begins."""
    constant: float = 0.0
    """Share of the budget, after the warm-up, for which the rate stays at its peak."""
    decay: Literal["cosine", "linear"] = "cosine"
    """How it then falls to zero."""
    rate_per_epoch: bool = False
    """Change the rate once an epoch, as the published recipe does."""
    loss: Literal["l1", "charbonnier"] = "l1"
    l2_from: float = 1.0
    """Share of the budget from which the loss is the squared error."""
    clip: float | None = 1.0
    """Largest gradient norm."""
    ema: float | None = 0.999
    """Averaging of the weights that are evaluated and saved."""
    accumulate: int = 1
    """Parts into which each step's batch is cut to save memory."""
    precision: Precision = "fp32"
    """Arithmetic of the products; weights and sums are always fp32."""
    seed: int = 0

    workers: int = 1
    """Threads that prepare samples."""
    validate_minutes: float = 10.0
    checkpoint_minutes: float = 4.0
    validation_pixels: int = 192 * 192
    """Validation pictures are cut to this many pixels at their centre."""

    def __post_init__(self) -> None:
        budgets = [budget for budget in (self.steps, self.epochs, self.minutes) if budget is not None]
        if len(budgets) != 1 or budgets[0] <= 0:
            raise SRNOError("give one budget above zero: --steps, --epochs or --minutes")
        if self.accumulate < 1 or any(stage.batch % self.accumulate for stage in parse_stages(self.stages)):
            raise SRNOError(f"--accumulate {self.accumulate} must divide every stage's batch")
        if not self.data:
            raise SRNOError("give at least one folder of pictures with --data")

    def stage(self, progress: float) -> Stage:
        """The stage that holds at this share of the budget."""
        stages = parse_stages(self.stages)
        return next((stage for stage in stages if progress < stage.until), stages[-1])


BUDGETS = ("steps", "epochs", "minutes")

RECIPES: dict[str, dict[str, Any]] = {
    "compact": {"stages": "48x16x1152"},
    "paper": {
        "epochs": 1050.0,
        "stages": f"128x64x{128 * 128}",
        "optimiser": "adam",
        "rate": 4e-4,
        "betas": (0.9, 0.999),
        "warmup": 50 / 1050,
        "warmup_from": 0.1,
        "rate_per_epoch": True,
        "clip": None,
        "ema": None,
        "repeat": 20,
        "accumulate": 16,
    },
}


def to_json(config: TrainConfig) -> str:
    """The run's memory of itself."""
    return json.dumps(asdict(config), default=str, indent=1)


def from_json(text: str) -> TrainConfig:
    """The inverse of `to_json`."""
    raw = json.loads(text)
    known = {entry.name for entry in fields(TrainConfig)}
    raw = {key: value for key, value in raw.items() if key in known}
    raw["data"] = tuple(Path(folder) for folder in raw["data"])
    raw["betas"] = tuple(raw["betas"])
    for name in ("init", "validation"):
        raw[name] = Path(raw[name]) if raw[name] else None
    return TrainConfig(**raw)
