"""srno models"""

import json
import sys
from typing import Annotated, Any, cast

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table


def models(*, as_json: Annotated[bool, Parameter(name="--json", negative="")] = False) -> None:
    """List the models that come with the package, with their parameters and measured results.

    Parameters
    ----------
    as_json
        Print JSON instead of a table.
    """
    from srno.checkpoints.catalogue import DEFAULT_MODEL, shipped_models

    shipped = shipped_models()
    if as_json:
        rows = [
            {"name": model.path.stem, "parameters": model.parameters, "default": model.path.stem == DEFAULT_MODEL}
            | {"card": vars(model.card)}
            for model in shipped
        ]
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return
    table = Table("name", "parameters", "licence", "results (PSNR, dB)", "recipe")
    for model in shipped:
        name = model.path.stem + (" (default)" if model.path.stem == DEFAULT_MODEL else "")
        table.add_row(
            name,
            f"{model.parameters:,}",
            model.card.licence,
            _results(model.card.results),
            model.card.recipe.partition(";")[0],
        )
    Console().print(table)


def _results(results: dict[str, Any]) -> str:
    """One line per set: Set5 ×2 37.60 ×3 33.85."""
    lines: list[str] = []
    for name, scores in results.items():
        if isinstance(scores, dict):
            numbers = cast(dict[str, float], scores).items()
            lines.append(" ".join([name, *(f"×{scale.removeprefix('x')} {value:.2f}" for scale, value in numbers)]))
    return "\n".join(lines)
