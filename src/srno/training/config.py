"""Settings of a training run: one frozen record that is the command's flags, the API's argument and config.json."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter

from srno.errors import SRNOError
from srno.training.stages import Loss, Parts, Stage, parse_losses, parse_stages, part_at

Precision: TypeAlias = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything that decides a run's result. A budget is `steps`, `epochs` or `minutes`.

    >>> import srno
    >>> config = srno.TrainConfig(data="pictures", minutes=5)
    >>> config.preset, config.loss
    ('light', 'rms')
    """

    data: tuple[Path, ...]
    """Folders of pictures, searched recursively."""
    preset: str = "light"
    """Model to train."""
    init: Annotated[Path | None, Parameter(alias=("--model", "-m"))] = None
    """Weights to start from: a file, a run's folder or a shipped name; the preset may be deeper or wider than they
    are."""
    init_encoder: Path | None = None
    """Weights whose encoder is taken, by a decoder with fresh weights: a file, a run's folder or a shipped name."""
    fixed_encoder: bool = False
    """With --init or --init-encoder: train only the decoder, and leave the encoder as it is."""
    revive: bool = False
    """With --init or --init-encoder: restart the dead units of EDSR's blocks without changing the function."""
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

    stages: str = "48x16x2304"
    """Shape of the samples, PATCHxBATCHxPOINTS; UNTIL:SHAPE,SHAPE changes it at the share UNTIL of the budget."""
    r_min: float = 1.0
    """Smallest scale drawn."""
    r_max: float = 4.0
    """Largest scale drawn."""
    sampling: Literal["random", "sequential"] = "random"
    """Supervision points anywhere in the crop, or in one window (our reading of the paper's -s)."""
    detail: float = 0.5
    """Share of crops placed where the picture has detail."""
    flat: float = 0.0
    """Share of crops filled with one colour, so that flat regions keep their colour up to the picture's edge."""
    degradation: str = "bicubic"
    """How low-resolution patches are made: bicubic, or photo, with blur, noise and JPEG as photographs have them."""
    jpeg_min: int = 30
    """Of photo: lowest JPEG quality."""
    jpeg_max: int = 98
    """Of photo: highest JPEG quality."""
    jpeg_share: float = 0.9
    """Of photo: share of the samples that are compressed."""
    jpeg_twice: float = 0.25
    """Of photo: share of these that are compressed twice, with another grid and quality."""
    blur: float = 0.7
    """Of photo: largest standard deviation of a Gaussian blur, in LR pixels; half of the samples have none."""
    noise: float = 6.0
    """Of photo: largest standard deviation of the noise at white, in levels of 255; half of the samples have none."""
    allow_small: bool = False
    """Use pictures that are too small for the largest crop, at the scales that fit."""
    repeat: int = 20
    """Visits of each picture in an epoch."""

    optimiser: Literal["muon", "adam"] = "muon"
    """Muon on matrices and kernels with Adam for the rest, or Adam alone."""
    rate: float = 1e-3
    """Peak learning rate of Muon, or of Adam if it is the only optimiser."""
    adam_rate: float = 6e-4
    """Peak learning rate of Adam for the parameters that Muon does not take."""
    betas: tuple[float, float] = (0.9, 0.99)
    """Decay rates of Adam's moments."""
    weight_decay: float = 0.0
    """Weight decay of Muon."""
    warmup: float = 0.02
    """Share of the budget for the warm-up of the rate."""
    warmup_from: float = 0.0
    """Share of the peak rate at which the warm-up starts."""
    constant: float = 0.0
    """Share of the budget, after the warm-up, for which the rate stays at its peak."""
    decay: Literal["cosine", "linear", "step"] = "linear"
    """How the rate then falls: to zero along a cosine or a line, or halved at the shares of --halve-at."""
    halve_at: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    """Shares of the budget at which --decay step halves the rate."""
    rate_per_epoch: bool = False
    """Change the rate once an epoch, as the published recipes do; the budget must be epochs or steps."""
    loss: str = "rms"
    """Loss: l1, charbonnier, l2 or rms, each sample's root mean square error; UNTIL:LOSS,LOSS as with --stages."""
    clip: float | None = 1.0
    """Largest gradient norm, or none."""
    ema: float | None = 0.999
    """Decay of the moving average of the weights, which is evaluated and saved; or none."""
    skip_spikes: bool = True
    """Skip a step whose loss is five times the running mean. A step without a finite loss is always skipped."""
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
        self._make_paths()
        if not self.data:
            raise SRNOError("give at least one folder of pictures with --data")
        budgets = [getattr(self, name) for name in BUDGETS if getattr(self, name) is not None]
        if len(budgets) != 1 or budgets[0] <= 0:
            raise SRNOError("give one budget above zero: --steps, --epochs or --minutes")
        if self.accumulate < 1 or any(stage.batch % self.accumulate for stage in self.all_stages):
            raise SRNOError(f"--accumulate {self.accumulate} must divide the batch of every stage in {self.stages}")
        _ = self._losses  # refuses a loss that is not known
        if self.init is not None and self.init_encoder is not None:
            raise SRNOError("--init already takes the encoder: leave out --init-encoder")
        if self.revive and self.init is None and self.init_encoder is None:
            raise SRNOError("--revive restarts dead units of existing weights: give them with --init")
        if self.fixed_encoder and self.init is None and self.init_encoder is None:
            raise SRNOError("--fixed-encoder would train on random features: give weights with --init-encoder")
        if self.fixed_encoder and self.revive:
            raise SRNOError("--revive restarts units of the encoder, which --fixed-encoder does not train")
        if self.warmup < 0 or self.constant < 0 or self.warmup + self.constant > 1:
            raise SRNOError(
                f"--warmup {self.warmup:g} and --constant {self.constant:g} must be shares, at most 1 in all"
            )
        if list(self.halve_at) != sorted({at for at in self.halve_at if 0 < at < 1}):
            raise SRNOError(f"--halve-at {_words(self.halve_at)}: give increasing shares between 0 and 1")
        if self.ema is not None and not 0 <= self.ema < 1:
            raise SRNOError(f"--ema {self.ema:g}: give a number from 0 to below 1, or none")
        self._refuse_flags_without_effect()
        for name in ("rate", "adam_rate", "validate_minutes", "checkpoint_minutes", "validation_pixels"):
            if getattr(self, name) <= 0:
                raise SRNOError(f"--{name.replace('_', '-')} {getattr(self, name):g} must be above zero")

    def _make_paths(self) -> None:
        """Accept strings as paths, and one folder as `data`."""
        given: Any = self.data
        folders = (given,) if isinstance(given, str | os.PathLike) else given
        object.__setattr__(self, "data", tuple(Path(folder) for folder in folders))
        for name in ("init", "init_encoder", "validation"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, Path(getattr(self, name)))

    def _refuse_flags_without_effect(self) -> None:
        """Refuse a value that another flag makes useless, so that no run differs from what its flags say."""
        if self.rate_per_epoch and self.minutes is not None:
            raise SRNOError("--rate-per-epoch has no effect with --minutes; give --epochs, or --no-rate-per-epoch")
        if self.rate_per_epoch and self.steps is not None and len({stage.batch for stage in self.all_stages}) > 1:
            raise SRNOError("--rate-per-epoch with --steps needs one batch for all --stages; give --epochs instead")
        for name in PHOTO_SETTINGS:
            if self.degradation != "photo" and getattr(self, name) != getattr(TrainConfig, name):
                flag = name.replace("_", "-")
                raise SRNOError(f"--{flag} {getattr(self, name):g} has no effect without --degradation photo")
        if self.decay == "step" and self.constant:
            raise SRNOError(f"--constant {self.constant:g} has no effect with --decay step; give --constant 0")
        if self.warmup_from and not self.warmup:
            raise SRNOError(f"--warmup-from {self.warmup_from:g} has no effect with --warmup 0")
        if self.decay != "step" and self.halve_at != TrainConfig.halve_at:
            raise SRNOError(f"--halve-at {_words(self.halve_at)} has no effect with --decay {self.decay}")
        if self.optimiser == "adam" and self.adam_rate != TrainConfig.adam_rate:
            raise SRNOError(f"--adam-rate {self.adam_rate:g} has no effect with --optimiser adam, which takes --rate")
        if self.optimiser == "adam" and self.weight_decay:
            raise SRNOError(f"--weight-decay {self.weight_decay:g} has no effect with --optimiser adam; it is Muon's")

    @cached_property
    def _stages(self) -> Parts[Stage]:
        return parse_stages(self.stages)

    @cached_property
    def _losses(self) -> Parts[Loss]:
        return parse_losses(self.loss)

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        return tuple(stage for _, stage in self._stages)

    def stage_at(self, progress: float) -> Stage:
        """The shape of the samples at this share of the budget."""
        return part_at(self._stages, progress)

    def loss_at(self, progress: float) -> Loss:
        """The loss at this share of the budget."""
        return part_at(self._losses, progress)


def _words(shares: tuple[float, ...]) -> str:
    return " ".join(f"{share:g}" for share in shares)


BUDGETS = ("steps", "epochs", "minutes")
PHOTO_SETTINGS = ("jpeg_min", "jpeg_max", "jpeg_share", "jpeg_twice", "blur", "noise")
"""Settings of the degradation photo, `srno.data.degradation.PhotoSettings`."""

CHANGEABLE = frozenset(
    {*BUDGETS, "workers", "validation", "validate_minutes", "checkpoint_minutes", "validation_pixels"}
)
"""Settings that may change when a run resumes: its budget, and those that do not affect the weights."""
