"""srno export"""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from srno.errors import SRNOError, require


def export(
    model: str,
    target: Path,
    /,
    *,
    parts: Annotated[bool, Parameter(negative="")] = False,
    integral: str = "exact",
    precision: Literal["fp32", "fp16"] = "fp32",
    overwrite: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Export a model as an ONNX graph for pictures and outputs of any size.

    Inputs are `image` (1, 3, h, w) in [0, 1] and `size` = (height, width); the output is (1, 3, height, width).

    Parameters
    ----------
    model
        A shipped model (see `srno models`) or a checkpoint.
    target
        Where to write, ending in .onnx.
    parts
        Write encoder, integral and render as separate graphs (out.encoder.onnx … for out.onnx), for programs that
        compute the output in tiles and in constant memory.
    integral
        Kernel integral over every output pixel (exact), from this many of them, or auto: one in 32, 24576 to 131072.
    precision
        Precision of the products: fp32, or fp16 for half the file size.
    overwrite
        Replace files that exist.
    """
    require("onnx", "onnx")
    from srno.checkpoints.catalogue import find, read_checkpoint
    from srno.config import CustomEncoderConfig
    from srno.export.export import save_onnx
    from srno.export.graph import IR_VERSION, OPSET

    points = _points(integral)
    checkpoint = read_checkpoint(find(model))
    if isinstance(checkpoint.config.encoder, CustomEncoderConfig):
        raise SRNOError(f"{model}: encoder {checkpoint.config.encoder.module} is custom; EDSR and RDN can be exported")
    written = save_onnx(
        checkpoint.model(),
        target,
        card=checkpoint.card,
        parts=parts,
        points=points,
        precision=precision,
        overwrite=overwrite,
    )
    about = f"{checkpoint.config.system}, {precision}, opset {OPSET}, IR version {IR_VERSION}"
    for path in written:
        sys.stdout.write(f"{path}: {about}, {path.stat().st_size / 1e6:.1f} MB\n")


def _points(integral: str) -> int | Literal["auto"] | None:
    """Number of points, None for all."""
    if integral == "exact":
        return None
    if integral == "auto":
        return "auto"
    if not (integral.isdecimal() and int(integral) > 0):
        raise SRNOError(f"--integral {integral!r}: choose auto, exact or a number of points, such as 16384")
    return int(integral)
