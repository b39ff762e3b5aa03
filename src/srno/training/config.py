"""Settings of a training run: one frozen record that is the command's flags, the API's argument and config.json."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from srno.errors import SRNOError
from srno.training.stages import Loss, Stage, at, parse_losses, parse_stages

Precision: TypeAlias = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything that decides a run's result. A budget is `steps`, `epochs` or `minutes`."""

    data: tuple[Path, ...]
    """Folders of pictures, searched recursively."""
    preset: str = "light"
    """Model to train."""
    init: Path | None = None
    """Weights to start from: a file or a shipped name; the preset may be deeper or wider than they are."""
    revive: bool = False
    """With --init: restart the dead units of EDSR's blocks with fresh weights, without changing the function."""
    validation: Path | None = None
    """Folder of validation pictures; they are not trained on, even if it lies in a folder of --data."""
    hold_out: int = 16
    """Without --validation: number of pictures held out of the data for validation, at most a third."""

    steps: int | None = None
    """Budget in steps."""
    epochs: float | None = None
    """Budget in epochs, each --repeat visits of every picture."""
    minutes: float | None = None
    """Budget in minutes of training; the schedule ends with it."""

    stages: str = "48x16x1152"
    """Shape of the samples, PATCHxBATCHxPOINTS; UNTIL:SHAPE,SHAPE changes it at the share UNTIL of the budget."""
    r_min: float = 1.0
    """Smallest scale drawn."""
    r_max: float = 4.0
    """Largest scale drawn."""
    sampling: Literal["random", "sequential"] = "random"
    """Supervision points anywhere in the crop, or in one window (our reading of the paper's -s)."""
    detail: float = 0.0
    """Share of crops placed where the picture has detail."""
    flat: float = 0.0
    """Share of crops filled with one colour, so that flat regions keep their colour up to the picture's edge."""
    degradation: str = "bicubic"
    """How low-resolution patches are made."""
    allow_small: bool = False
    """Use pictures that are too small for the largest crop, at the scales that fit."""
    repeat: int = 20
    """Visits of each picture in an epoch."""

    optimiser: Literal["muon", "adam"] = "muon"
    """Muon on matrices and kernels with Adam for the rest, or Adam alone."""
    rate: float = 2e-3
    """Peak learning rate of Muon, or of Adam if it is the only optimiser."""
    adam_rate: float = 1e-3
    """Peak learning rate of Adam for the parameters that Muon does not take."""
    betas: tuple[float, float] = (0.9, 0.99)
    """Decay rates of Adam's moments."""
    weight_decay: float = 0.0
    """Weight decay of Muon."""
    warmup: float = 0.05
    """Share of the budget for the warm-up of the rate."""
    warmup_from: float = 0.0
    """Share of the peak rate at which the warm-up starts."""
    constant: float = 0.0
    """Share of the budget, after the warm-up, for which the rate stays at its peak."""
    decay: Literal["cosine", "linear"] = "cosine"
    """How the rate then falls to zero."""
    rate_per_epoch: bool = False
    """Change the rate once an epoch, as the published recipe does."""
    loss: str = "l1"
    """Loss: l1, charbonnier, l2 or rms, each sample's root mean square error; UNTIL:LOSS,LOSS as with --stages."""
    clip: float | None = 1.0
    """Largest gradient norm, or none."""
    ema: float | None = 0.999
    """Decay of the moving average of the weights, which is evaluated and saved; or none."""
    accumulate: int = 1
    """Parts into which each step's batch is split to save memory."""
    precision: Precision = "auto"
    """Arithmetic of the products; auto is bf16 if the device is faster at it. Weights and sums are always fp32."""
    seed: int = 0
    """Seed of weights and samples."""

    workers: int = 1
    """Threads that prepare samples."""
    validate_minutes: float = 10.0
    """Minutes between validations."""
    checkpoint_minutes: float = 4.0
    """Minutes between checkpoints."""
    validation_pixels: int = 192 * 192
    """Validation pictures are cropped to this many pixels at their centre."""

    def __post_init__(self) -> None:
        if not self.data:
            raise SRNOError("give at least one folder of pictures with --data")
        budgets = [getattr(self, name) for name in BUDGETS if getattr(self, name) is not None]
        if len(budgets) != 1 or budgets[0] <= 0:
            raise SRNOError("give one budget above zero: --steps, --epochs or --minutes")
        if self.accumulate < 1 or any(stage.batch % self.accumulate for stage in self.all_stages):
            raise SRNOError(f"--accumulate {self.accumulate} must divide the batch of every stage in {self.stages}")
        parse_losses(self.loss)
        if self.revive and self.init is None:
            raise SRNOError("--revive restarts dead units of existing weights: give them with --init")
        if self.warmup < 0 or self.constant < 0 or self.warmup + self.constant > 1:
            raise SRNOError(
                f"--warmup {self.warmup:g} and --constant {self.constant:g} must be shares, at most 1 in all"
            )
        if self.ema is not None and not 0 <= self.ema < 1:
            raise SRNOError(f"--ema {self.ema:g}: give a number from 0 to below 1, or none")
        for name in ("rate", "adam_rate", "validate_minutes", "checkpoint_minutes", "validation_pixels"):
            if getattr(self, name) <= 0:
                raise SRNOError(f"--{name.replace('_', '-')} {getattr(self, name):g} must be above zero")

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        return tuple(stage for _, stage in parse_stages(self.stages))

    def stage_at(self, progress: float) -> Stage:
        """The shape of the samples at this share of the budget."""
        return at(parse_stages(self.stages), progress)

    def loss_at(self, progress: float) -> Loss:
        """The loss at this share of the budget."""
        return at(parse_losses(self.loss), progress)


BUDGETS = ("steps", "epochs", "minutes")

CHANGEABLE = frozenset(BUDGETS) | {
    "workers",
    "validation",
    "validate_minutes",
    "checkpoint_minutes",
    "validation_pixels",
}
"""Settings that may change when a run resumes: its budget, and those that do not affect the weights."""


def to_json(config: TrainConfig) -> str:
    """The content of a run's config.json."""
    return json.dumps(asdict(config), default=str, indent=1)


def from_json(text: str) -> TrainConfig:
    """The inverse of `to_json`; fields of other versions are dropped, missing ones have their default."""
    known = {entry.name for entry in fields(TrainConfig)}
    raw: dict[str, Any] = {key: value for key, value in json.loads(text).items() if key in known}
    raw["data"] = tuple(Path(folder) for folder in raw["data"])
    if "betas" in raw:
        raw["betas"] = tuple(raw["betas"])
    for name in ("init", "validation"):
        raw[name] = Path(raw[name]) if raw.get(name) else None
    return TrainConfig(**raw)


RECIPES: dict[str, dict[str, Any]] = {
    # Ours, for small budgets: measured on two cores, see docs/training.md.
    "compact": {
        "stages": "48x16x1152",
        "detail": 0.5,
        "warmup": 0.02,
        "constant": 0.6,
        "decay": "linear",
    },
    # The published recipe: on DIV2K's 800 pictures, of which none is held out, an epoch is 250 steps.
    "paper": {
        "epochs": 1050.0,
        "hold_out": 0,
        "stages": f"128x64x{128 * 128}",
        "r_min": 1.0,
        "r_max": 4.0,
        "sampling": "random",
        "detail": 0.0,
        "flat": 0.0,
        "degradation": "bicubic",
        "repeat": 20,
        "optimiser": "adam",
        "rate": 4e-4,
        "betas": (0.9, 0.999),
        "weight_decay": 0.0,
        "warmup": 50 / 1050,
        "warmup_from": 0.1,
        "constant": 0.0,
        "decay": "cosine",
        "rate_per_epoch": True,
        "loss": "l1",
        "clip": None,
        "ema": None,
        "precision": "fp32",
        "accumulate": 16,
    },
}
"""Named sets of flags: `--recipe paper` and `--recipe compact`; explicit flags override them."""
