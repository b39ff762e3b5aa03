"""Costs of the paper's methods: running times that `srno bench --out` saved, parameters and FLOPs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srno.config import PRESETS, preset
from srno.errors import SRNOError
from srno.evaluation.cost import profile
from srno.evaluation.tables import markdown_table
from srno.reproduce.published import Published, PublishedCost


@dataclass(frozen=True)
class RunningTime:
    """A measured time, and what was timed."""

    milliseconds: float
    form: str
    precision: str

    def __str__(self) -> str:
        return f"{self.form}, {self.precision}"


@dataclass(frozen=True)
class BenchTimes:
    """Running times by the paper's method names, and where they were measured."""

    machine: str
    conditions: str
    times: Mapping[str, RunningTime]


def read_bench(path: Path, machine: str | None = None) -> BenchTimes:
    """Read the times; `machine` names the machine if the file does not."""
    try:
        content = json.loads(path.read_text())
        times = {row["method"]: _time(row) for row in content["rows"] if row["method"]}
        conditions = str(content.get("conditions", "conditions not recorded"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise SRNOError(f"--bench {path}: not a file written by `srno bench --out`") from None
    named = content.get("machine") or machine
    if not named:
        raise SRNOError(f"--bench {path} does not name the machine; give it with --machine, such as 'AMD EPYC 9654'")
    return BenchTimes(str(named), conditions, times)


def _time(row: Mapping[str, Any]) -> RunningTime:
    # presets are built in fp32; a checkpoint is timed in the precision of its weights
    precision = row.get("precision") or ("fp32" if row.get("model") in PRESETS else "precision of the weights")
    return RunningTime(float(row["milliseconds_mean"]), str(row.get("form", "form not recorded")), str(precision))


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
