"""Settings for enlarging pictures, shared by the API, the commands and the server."""

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from srno.errors import SRNOError
from srno.machine import parse_memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from srno.field.quadrature import Integral
    from srno.imaging.picture import Compression
    from srno.machine import ProductPrecision
    from srno.operator.model import Model
    from srno.progress import Progress

    ModelLike: TypeAlias = str | Path | Model
else:
    ModelLike: TypeAlias = str  # flags are strings, and parsing them must not import torch

AlphaBy: TypeAlias = Literal["operator", "bicubic"]
Precision: TypeAlias = Literal["auto", "fp32", "bf16", "fp16"]


@dataclass(frozen=True, kw_only=True)
class Upscaler:
    """A model and the settings of its evaluation. The model is loaded on first use and kept.

    >>> import torch, srno
    >>> upscaler = srno.Upscaler(ensemble=True)
    >>> upscaler(torch.zeros(3, 8, 8), (12, 20)).shape
    torch.Size([3, 12, 20])
    """

    model: ModelLike = "default"
    """A shipped model (see `srno models`), a checkpoint or a training run's folder; in Python also a loaded model."""
    ensemble: bool = False
    """Mean over the eight flips and rotations: slightly better, eight times slower."""
    integral: str | int = "auto"
    """Kernel integral over every output pixel (exact), from this many of them, or auto: one in 32, 24576 to 131072."""
    precision: Precision = "auto"
    """Precision of the products: fp32, bf16, fp16, or auto, the fastest on this machine."""
    clean: str | float = "auto"
    """How strongly to remove compression artefacts, 0 to 1; auto reads from each file how strongly it is
    compressed. Only for the model light."""
    alpha: AlphaBy = "operator"
    """How transparency is enlarged."""
    memory: str | int | None = None
    """Memory to use, such as 2G; half of the free memory unless given. For TIFF, OME-Zarr and Deep Zoom it is that of
    the whole process, and what does not fit is made tile by tile. For others, picture and output come in addition."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""

    def __post_init__(self) -> None:
        for name, kind in (("device", str), ("ensemble", bool)):
            if not isinstance(getattr(self, name), kind):
                known = "auto, cpu, cuda, cuda:N or mps, as text" if name == "device" else "True or False"
                raise SRNOError(f"{name} {getattr(self, name)!r}: give {known}")
        for name, known in (("alpha", AlphaBy), ("precision", Precision)):
            if getattr(self, name) not in get_args(known):
                raise SRNOError(f"{name} {getattr(self, name)!r}: choose {', '.join(get_args(known))}")
        if self.integral not in ("auto", "exact") and not (str(self.integral).isdecimal() and int(self.integral) > 0):
            raise SRNOError(f"integral {self.integral!r}: choose auto, exact or a number of points, such as 16384")
        if self.clean != "auto" and not _is_share(self.clean):
            raise SRNOError(f"clean {self.clean!r}: choose auto or a number from 0 to 1, such as 0.5")
        if self.memory is not None:
            parse_memory(self.memory)

    def __call__(
        self,
        image: "Tensor",
        size: tuple[int, int],
        *,
        cell_clip: bool = True,
        progress: "Progress | None" = None,
    ) -> "Tensor":
        """Enlarge (3, h, w) in [-1, 1] to `size` = (height, width): (3, height, width), not clamped."""
        from srno.field.ensemble import render_picture

        return render_picture(
            self.operator,
            image,
            size,
            ensemble=self.ensemble,
            integral=self.points,
            memory=self.memory,
            cell_clip=cell_clip,
            progress=progress,
        )

    def array(
        self,
        lr: "NDArray[np.float32]",
        *,
        size: tuple[int, int],
        scale: tuple[float, float],  # noqa: ARG002 (the sizes determine it)
        cell_clip: bool,
    ) -> "NDArray[np.float32]":
        """Enlarge `lr` (h, w, 3) in [0, 1] to (*size, 3), not clamped; `size` is (height, width)."""
        import torch

        rgb = self(torch.from_numpy(lr).permute(2, 0, 1) * 2 - 1, size, cell_clip=cell_clip)
        return (rgb.permute(1, 2, 0).float() * 0.5 + 0.5).cpu().numpy()

    @cached_property
    def operator(self) -> "Model":
        """The model, loaded, on its device and in its precision."""
        return _place(self.model, self.device, self.precision, self.strength)

    @property
    def strength(self) -> float:
        """`clean` as a number; `auto` is 0 until a picture is known."""
        return 0.0 if self.clean == "auto" else float(self.clean)

    def for_picture(self, compression: "Compression | None") -> "Upscaler":
        """The settings for one picture: `clean="auto"` becomes the strength that suits its compression."""
        if self.clean != "auto" or compression is None or not self._can_clean:
            return self
        from srno.checkpoints.catalogue import choose_strength

        strength = choose_strength(compression)
        if strength == 0:
            return self
        return self._cleaning.setdefault(strength, replace(self, clean=strength))

    @cached_property
    def _cleaning(self) -> "dict[float, Upscaler]":
        """The settings with each strength that `auto` has chosen, so that each mixed model is made once."""
        return {}

    @cached_property
    def _can_clean(self) -> bool:
        from srno.checkpoints.catalogue import can_clean

        return isinstance(self.model, str | Path) and can_clean(self.model)

    @property
    def points(self) -> "Integral":
        """The integral as the field takes it."""
        if self.integral == "auto" or self.integral == "exact":
            return self.integral
        return int(self.integral)

    @property
    def product_precision(self) -> str:
        """The precision that the products have: `auto` is resolved."""
        import torch

        names = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.float64: "fp64"}
        return names[next(self.operator.parameters()).dtype]

    def integral_of(self, size: tuple[int, int]) -> int | str:
        """The number of points that a picture of this size is integrated from, or `exact`."""
        from srno.field.quadrature import integral_points

        return integral_points(self.points, size) or "exact"

    @property
    def name(self) -> str:
        """The model's name for reports: the name of a shipped model, or the path of a file."""
        from srno.checkpoints.catalogue import find

        if not isinstance(self.model, str | Path):
            return type(self.model).__name__
        return str(self.model) if Path(self.model).exists() else find(self.model).stem

    @property
    def note(self) -> str:
        """Describe what differs from an exact evaluation in fp32; empty if nothing does."""
        parts = ["self-ensemble of 8"] if self.ensemble else []
        parts += [] if self.integral == "exact" else [f"integrals from {self.integral} points"]
        parts += [] if self.precision == "fp32" else [f"{self.precision} products"]
        parts += [f"clean {self.strength:g}"] if self.strength else []
        return ", ".join(parts)

    def with_encoder(self, encoder: "nn.Module") -> "Upscaler":
        """The same settings with the model loaded around a custom encoder."""
        from srno.checkpoints.catalogue import load
        from srno.machine import choose_device

        if not isinstance(self.model, str | Path):
            raise SRNOError("encoder: the model is loaded already; give its name or path")
        return self.using(load(self.model, device=choose_device(self.device), encoder=encoder))

    def using(self, model: "Model") -> "Upscaler":
        """The same settings for a model that is loaded already."""
        return replace(self, model=model, device="auto", clean=0.0)


def _is_share(value: Any) -> bool:
    """Whether this is a number from 0 to 1, or one as text, as flags are."""
    try:
        return not isinstance(value, bool) and 0 <= float(value) <= 1
    except (TypeError, ValueError):
        return False


def _place(model: Any, device: str, precision: Precision, clean: float) -> "Model":
    """Load the model if needed and convert it. A model that the caller holds is copied, never changed."""
    import torch

    from srno.checkpoints.catalogue import load
    from srno.machine import choose_device
    from srno.operator.model import Model

    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    if isinstance(model, str | Path):
        loaded = load(model, device=choose_device(device), clean=clean)
        return loaded.to(dtypes[_resolve(precision, loaded)])
    if not isinstance(model, Model):
        raise SRNOError(f"model is a {type(model).__name__}; give a shipped name, a path or a model from srno.load")
    if clean:
        raise SRNOError(
            f"clean {clean:g}: the model is loaded already; give its name, or srno.load(name, clean={clean:g})"
        )
    here = next(model.parameters())
    if device != "auto" and choose_device(device).type != here.device.type:
        raise SRNOError(f"device {device!r}: the model is on {here.device.type}; move it with model.to({device!r})")
    if precision == "auto" and here.dtype != torch.float32:
        return model
    dtype = dtypes[_resolve(precision, model)]
    return model if here.dtype == dtype else copy.deepcopy(model).to(dtype)


def _resolve(precision: Precision, model: "Model") -> "ProductPrecision":
    """The precision that `auto` means on the model's device."""
    from srno.machine import fastest_precision

    return fastest_precision(next(model.parameters()).device) if precision == "auto" else precision
