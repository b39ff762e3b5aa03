"""srno models"""

import json
import sys
from typing import Annotated, Any, cast

from cyclopts import Parameter
from rich.console import Console
from rich.padding import Padding
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
    console = Console(highlight=False, markup=False)
    for model in shipped:
        default = ", the default" if model.path.stem == DEFAULT_MODEL else ""
        console.print(f"{model.path.stem}{default}: {model.parameters:,} parameters")
        console.print(Padding(f"licence: {model.card.licence}", (0, 2)))
        console.print(Padding(f"training: {_last_part(model.card.recipe)}", (0, 2)))
        console.print(_results(model.card.results))


def _last_part(recipe: str) -> str:
    """The last of the training runs in a card's recipe, without its flags."""
    *before, last = recipe.split("; then ")
    return last.partition(";")[0] + (f", after {len(before)} earlier runs" if before else "")


def _results(results: dict[str, Any]) -> Table:
    """PSNR in dB, one line per set and one column per scale."""
    scores = {name: cast(dict[str, float], values) for name, values in results.items() if isinstance(values, dict)}
    scales = list(dict.fromkeys(scale for values in scores.values() for scale in values))
    table = Table("PSNR, dB", *(f"×{scale.removeprefix('x')}" for scale in scales))
    for name, values in scores.items():
        table.add_row(name, *(f"{values[scale]:.2f}" if scale in values else "" for scale in scales))
    return table
