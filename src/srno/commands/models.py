"""srno models"""

import json
import sys
from typing import Annotated

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
    from srno.checkpoints.catalogue import DEFAULT, list_models

    shipped = list_models()
    if as_json:
        rows = [
            {"name": model.path.stem, "parameters": model.parameters, "default": model.path.stem == DEFAULT}
            | {"card": vars(model.card)}
            for model in shipped
        ]
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return
    table = Table("name", "parameters", "licence", "results (PSNR, dB)", "recipe")
    for model in shipped:
        name = model.path.stem + (" (default)" if model.path.stem == DEFAULT else "")
        table.add_row(
            name, f"{model.parameters:,}", model.card.licence, _results(model.card.results), model.card.recipe
        )
    Console().print(table)


def _results(results: dict[str, dict[str, object]]) -> str:
    """One line per set: Set5 ×2 37.60 ×3 33.85."""
    lines: list[str] = []
    for name, scores in results.items():
        numbers = [f"{scale} {value:.2f}" for scale, value in scores.items() if isinstance(value, float)]
        lines.append(f"{name} {' '.join(numbers)}")
    return "\n".join(lines)
