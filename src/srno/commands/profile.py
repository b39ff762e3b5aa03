"""srno profile"""

import json
import re
import sys
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from srno.errors import SRNOError


def profile(
    model: str,
    /,
    *,
    input_size: Annotated[str, Parameter(name="--input")] = "128x128",
    output_size: Annotated[str, Parameter(name="--output")] = "128x128",
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Count a model's parameters and FLOPs, whole and by part.

    Parameters
    ----------
    model
        A preset (edsr-baseline, rdn-w, light, …), a shipped model or a checkpoint.
    input_size
        Size of the low-resolution picture, WIDTHxHEIGHT.
    output_size
        Size of the output, WIDTHxHEIGHT; only the number of points matters.
    as_json
        Print JSON.
    """
    from srno.checkpoints.catalogue import find, read_checkpoint
    from srno.config import PRESETS
    from srno.evaluation.cost import profile as count

    config = PRESETS[model] if model in PRESETS else read_checkpoint(find(model)).config
    counted = count(config, _size("--input", input_size), _size("--output", output_size))
    if as_json:
        sys.stdout.write(json.dumps(counted.to_dict(), indent=1) + "\n")
        return
    table = Table("part", title=f"{model}: {input_size} in, {output_size} out")
    for column in ("parameters", "GFLOPs as in the paper", "GFLOPs"):
        table.add_column(column, justify="right")
    for name, cost in [*counted.parts.items(), ("total", counted.total)]:
        table.add_row(name, f"{cost.parameters:,}", f"{cost.flops_paper / 1e9:.2f}", f"{cost.flops / 1e9:.2f}")
    table.caption = "2 × multiply-adds; the paper does not count k̃ᵀṽ and q·M"
    Console().print(table)


def _size(flag: str, text: str) -> tuple[int, int]:
    """WIDTHxHEIGHT → (height, width)."""
    if not (match := re.fullmatch(r"([1-9]\d*)[x×]([1-9]\d*)", text)):
        raise SRNOError(f"{flag} {text!r}: write WIDTHxHEIGHT, such as 128x128")
    return int(match[2]), int(match[1])
