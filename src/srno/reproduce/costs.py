"""Table 3: parameters and FLOPs, counted; it needs no weights."""

from collections.abc import Mapping
from typing import Any

from srno.config import preset
from srno.evaluation.cost import profile
from srno.evaluation.tables import markdown_table
from srno.reproduce.published import Published, PublishedCost


def count_costs(published: Published) -> dict[str, tuple[PublishedCost, PublishedCost]]:
    """The paper's cost and ours of each method."""
    return {method: (cost, _count(published.methods[method][0])) for method, cost in published.costs.items()}


def _count(name: str) -> PublishedCost:
    counted = profile(preset(name)).total
    return PublishedCost(parameters=counted.parameters / 1e6, flops=counted.flops_paper / 1e9)


def costs_markdown(counted: Mapping[str, tuple[PublishedCost, PublishedCost]], published: Published) -> str:
    """Format the table."""
    lines = [
        [method, f"{theirs.parameters:.1f} / {ours.parameters:.2f}", f"{theirs.flops:.1f} / {ours.flops:.2f}"]
        for method, (theirs, ours) in counted.items()
    ]
    note = (
        f"Paper / ours. Paper: table 3 ({published.paper}). FLOPs are 2 × multiply-adds of convolutions and linear "
        "maps for a picture of 128² and 128² points, as the paper counts."
    )
    return markdown_table("Table 3: parameters and FLOPs", ["method", "parameters, M", "FLOPs, G"], lines, [note])


def costs_dict(counted: Mapping[str, tuple[PublishedCost, PublishedCost]]) -> dict[str, Any]:
    """Plain data: `{"table": "table3", "costs": {method: {"paper": {"parameters": M, "flops": G}, "ours": …}}}`."""
    costs = {method: {"paper": vars(theirs), "ours": vars(ours)} for method, (theirs, ours) in counted.items()}
    return {"table": "table3", "costs": costs}
