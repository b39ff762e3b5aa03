"""What a training run is: one frozen record that is the command's flags, the API's argument and the run's memory."""

import json
from dataclasses import asdict, dataclass, fields, replace
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

    @staticmethod
    def parse(text: str) -> "Stage":
        """`0.8:48x16x1152` is 48² patches, batch 16, 1152 points, until 80 % of the budget; `48x16x1152` to the end."""
        until, _, shape = text.rpartition(":")
        try:
            patch, batch, points = (int(number) for number in shape.split("x"))
            return Stage(until=float(until or 1), patch=patch, batch=batch, points=points)
        except ValueError:
            raise SRNOError(f"--stages {text!r}: write UNTIL:PATCHxBATCHxPOINTS, such as 0.8:48x16x1152") from None


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

    stages: tuple[Stage, ...] = (Stage(patch=48, batch=16, points=1152),)
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
        shares = [stage.until for stage in self.stages]
        if not shares or shares != sorted(set(shares)) or shares[-1] != 1.0 or shares[0] <= 0:
            raise SRNOError("--stages: shares must rise, and the last stage must go on to 1")
        if self.accumulate < 1 or any(stage.batch % self.accumulate for stage in self.stages):
            raise SRNOError(f"--accumulate {self.accumulate} must divide every stage's batch")
        if not self.data:
            raise SRNOError("give at least one folder of pictures with --data")

    def stage(self, progress: float) -> Stage:
        """The stage that holds at this share of the budget."""
        return next((stage for stage in self.stages if progress < stage.until), self.stages[-1])


RECIPES: dict[str, dict[str, Any]] = {
    "compact": {"stages": (Stage(patch=48, batch=16, points=1152),)},
    "paper": {
        "epochs": 1050.0,
        "stages": (Stage(patch=128, batch=64, points=128 * 128),),
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


def recipe(name: str, **given: Any) -> TrainConfig:
    """A named recipe with what is given put in; a given budget replaces the recipe's."""
    if name not in RECIPES:
        raise SRNOError(f"--recipe {name!r}: known are {', '.join(RECIPES)}")
    budget = {"steps", "epochs", "minutes"}
    chosen = {key: value for key, value in given.items() if value is not None}
    base = {key: value for key, value in RECIPES[name].items() if not (key in budget and budget & chosen.keys())}
    return TrainConfig(**(base | chosen))


def to_json(config: TrainConfig) -> str:
    """The run's memory of itself."""
    return json.dumps(asdict(config), default=str, indent=1)


def from_json(text: str) -> TrainConfig:
    """The inverse of `to_json`."""
    raw = json.loads(text)
    known = {entry.name for entry in fields(TrainConfig)}
    raw = {key: value for key, value in raw.items() if key in known}
    raw["data"] = tuple(Path(folder) for folder in raw["data"])
    raw["stages"] = tuple(Stage(**stage) for stage in raw["stages"])
    raw["betas"] = tuple(raw["betas"])
    for name in ("init", "validation"):
        raw[name] = Path(raw[name]) if raw[name] else None
    return TrainConfig(**raw)


def with_budget(config: TrainConfig, **budget: float | None) -> TrainConfig:
    """The same run with another budget, for going on longer than was planned."""
    given = {key: value for key, value in budget.items() if value is not None}
    return replace(config, **({"steps": None, "epochs": None, "minutes": None} | given)) if given else config
