"""Running times that `srno bench --out` saved, for the time column of table 4."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srno.config import PRESETS
from srno.errors import SRNOError


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
