"""Evaluation protocols: channel, border, low-resolution source and cell clip, with a name that each table prints."""

import math
import re
from dataclasses import dataclass, fields, replace
from typing import Literal, Self, cast, get_args

from srno.errors import SRNOError
from srno.evaluation.metrics import SSIM_SIGMA, SSIM_WINDOW, Channel
from srno.imaging.picture import Compression

LRSource = Literal["standard", "matlab", "pillow", "ready"]
Kernel = Literal["matlab", "pillow", "ready"]

LR_DESCRIPTIONS: dict[LRSource, str] = {
    "standard": "LR by MATLAB bicubic at ×2 ×3 ×4, by Pillow bicubic at other scales",
    "matlab": "LR by MATLAB bicubic",
    "pillow": "LR by Pillow bicubic",
    "ready": "LR from ready files",
}
SSIM_DESCRIPTION = f"SSIM on Y (Gaussian window {SSIM_WINDOW}, σ {SSIM_SIGMA:g}, K1 0.01, K2 0.03)"


@dataclass(frozen=True)
class Scale:
    """A factor per axis, not necessarily whole. Written `6.6`, or as width×height factors `2x3` (x first, y second)."""

    y: float
    x: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(factor) and factor >= 1 for factor in (self.y, self.x)):
            raise SRNOError(f"--scales {self}: factors start at 1, such as 2, 6.6 or 2x3 (width×height)")

    @classmethod
    def parse(cls, text: str) -> Self:
        """`"6.6"` is both axes, `"2x3"` doubles the width and triples the height."""
        try:
            factors = [float(part) for part in re.split("[x×]", text.strip().lower())]
        except ValueError:
            factors = []
        if len(factors) not in (1, 2):
            raise SRNOError(f"--scales {text!r} is not a scale; write 2, 6.6 or 2x3 (width×height)")
        return cls(y=factors[-1], x=factors[0])

    def __str__(self) -> str:
        return f"{self.x:.12g}" if self.x == self.y else f"{self.x:.12g}x{self.y:.12g}"

    def lr_size(self, hr_size: tuple[int, int]) -> tuple[int, int]:
        """The largest low-resolution size (h, w) that fits into a picture of (H, W)."""
        # The tolerance keeps whole quotients whole if the division rounds down.
        return math.floor(hr_size[0] / self.y + 1e-9), math.floor(hr_size[1] / self.x + 1e-9)

    def hr_size(self, lr_size: tuple[int, int]) -> tuple[int, int]:
        """The size (H, W) to which a low-resolution picture of (h, w) is scaled, and the truth is cut."""
        return round(lr_size[0] * self.y), round(lr_size[1] * self.x)


def parse_scales(text: str) -> tuple[Scale, ...]:
    """`"2,3,6.6,2x3"` → scales in the order given, each once."""
    return tuple(dict.fromkeys(Scale.parse(part) for part in text.split(",")))


@dataclass(frozen=True)
class Border:
    """The pixels left out at each edge. Written `scale`, `scale+6` or a fixed number of pixels `8`."""

    extra: int = 0
    scaled: bool = True

    @classmethod
    def parse(cls, text: str) -> Self:
        match = re.fullmatch(r"scale(?:\+(\d+))?|(\d+)", text.replace(" ", ""))
        if not match:
            raise SRNOError(f"--border {text!r} is not a border; write scale, scale+6 or a number of pixels such as 8")
        return cls(extra=int(match[1] or match[2] or 0), scaled=match[2] is None)

    def __str__(self) -> str:
        if not self.scaled:
            return str(self.extra)
        return f"scale+{self.extra}" if self.extra else "scale"

    def pixels(self, scale: Scale) -> tuple[int, int]:
        """(rows, columns) to leave out at each edge; a fractional scale is rounded up."""
        if not self.scaled:
            return self.extra, self.extra
        return math.ceil(scale.y) + self.extra, math.ceil(scale.x) + self.extra


@dataclass(frozen=True)
class Protocol:
    """Everything that affects a score besides the model, the pictures and the scale."""

    name: str
    channel: Channel = "y"
    """PSNR over `y` of the difference or over `rgb`."""
    border: Border = Border()
    lr: LRSource = "standard"
    jpeg: int | None = None
    """JPEG quality with which the low-resolution picture is saved (4:2:0) before it is enlarged; None for none."""
    cell_clip: bool = True
    """Above ×4 the cell stays that of ×4."""
    max_pixels: int | None = None
    """Larger pictures are cut to about this many pixels around their centre."""

    def __post_init__(self) -> None:
        for flag, value, known in (("channel", self.channel, Channel), ("lr", self.lr, LRSource)):
            if value not in get_args(known):
                raise SRNOError(f"--{flag} {value!r} is not one of {', '.join(get_args(known))}")
        if self.jpeg is not None and not 1 <= self.jpeg <= 100:
            raise SRNOError(f"--jpeg {self.jpeg}: give a quality from 1 to 100")
        if self.max_pixels is not None and self.max_pixels < 1:
            raise SRNOError(f"--max-pixels {self.max_pixels}: give a positive number of pixels")
        if self.max_pixels is not None and self.lr == "ready":
            raise SRNOError("--max-pixels cuts the pictures and ready LR files would not fit; use it with --lr matlab")

    def kernel(self, scale: Scale) -> Kernel:
        """The source of the low-resolution picture at this scale."""
        if self.lr != "standard":
            return self.lr
        return "matlab" if scale.y == scale.x and scale.x in (2, 3, 4) else "pillow"

    @property
    def compression(self) -> Compression | None:
        """Compression of the low-resolution pictures."""
        return None if self.jpeg is None else Compression("jpeg", self.jpeg)

    def to_dict(self) -> dict[str, str | int | bool | None]:
        """Plain values for JSON, the one-line description included."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"border": str(self.border), "description": str(self)}

    def __str__(self) -> str:
        """The one-line description in every table."""
        border = f"ceil(scale){self.border.extra:+d}" if self.border.extra else "ceil(scale)"
        parts = (
            f"PSNR on {'Y of the difference' if self.channel == 'y' else 'RGB'}",
            SSIM_DESCRIPTION,
            f"border cut {border if self.border.scaled else self.border.extra} px",
            "clamped, not rounded",
            LR_DESCRIPTIONS[self.lr],
            *(() if self.jpeg is None else (f"LR saved as JPEG of quality {self.jpeg}, 4:2:0",)),
            "cell clip above ×4" if self.cell_clip else "no cell clip",
            f"centre crop to {self.max_pixels} pixels" if self.max_pixels else "whole pictures",
        )
        return f"{self.name}: {'; '.join(parts)}"


PROTOCOLS = {
    "benchmark": Protocol("benchmark"),
    "div2k": Protocol("div2k", channel="rgb", border=Border(6)),
}


def named_protocol(
    name: str,
    *,
    channel: str | None = None,
    border: str | None = None,
    lr: str | None = None,
    jpeg: int | None = None,
    cell_clip: bool | None = None,
    max_pixels: int | None = None,
) -> Protocol:
    """Look up a protocol by name; explicit values override its rules and become part of its name."""
    if name not in PROTOCOLS:
        raise SRNOError(f"--protocol {name!r} is not one of {', '.join(PROTOCOLS)}")
    base = PROTOCOLS[name]
    changed = replace(
        base,
        channel=cast(Channel, channel or base.channel),
        border=Border.parse(border) if border else base.border,
        lr=cast(LRSource, lr or base.lr),
        jpeg=jpeg,
        cell_clip=base.cell_clip if cell_clip is None else cell_clip,
        max_pixels=max_pixels,
    )
    changes = [
        f"{field.name}={getattr(changed, field.name)}"
        for field in fields(base)
        if getattr(changed, field.name) != getattr(base, field.name)
    ]
    return replace(changed, name=f"{name} ({', '.join(changes)})") if changes else base
