"""Run workers until a number of inputs is done; a worker that dies is replaced behind the input that ended it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ENDS = {-signal.SIGPROF: "endless", -signal.SIGKILL: "killed"}
WALL_SECONDS = 300
"""A worker that reports nothing for so long is stuck without using the processor."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Result:
    """What became of the inputs of a kind."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    problems: dict[int, str] = field(default_factory=dict[int, str])


def fuzz(kind: str, *, seed: int, count: int) -> Result:
    """Give `count` inputs to the reader of a kind, in child processes with limits."""
    result, first = Result(), 0
    while first < count:
        first = _run_worker(kind, seed, first, count - first, result)
    result.inputs = count
    return result


def _run_worker(kind: str, seed: int, first: int, count: int, result: Result) -> int:
    """Run one worker and add what it reports; returns the number of the next input."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "fuzz.worker", kind, str(seed), str(first), str(count)]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment | {"XDG_CACHE_HOME": folder},
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=WALL_SECONDS + count,
                check=False,
            )
            output, code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            output, code = late.stdout or b"", None
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    lines: list[Any] = [json.loads(line) for line in output.decode().splitlines()]
    return _collect(lines, code, said, first, result)


def _collect(lines: list[Any], code: int | None, said: str, first: int, result: Result) -> int:
    numbers = [line for line in lines if isinstance(line, int)]
    reports = [line for line in lines if isinstance(line, dict)]
    result.problems |= {report["number"]: report["problem"] for report in reports if "problem" in report}
    last = numbers[-1] if numbers else first
    ended = next((report for report in reports if "done" in report), None)
    if ended is not None and code == 0:
        result.accepted += ended["done"]["accepted"]
        result.refused += ended["done"]["refused"]
        if ended["left"]:
            result.problems[last] = f"files left behind: {', '.join(ended['left'])}"
    elif not numbers:
        raise RuntimeError(f"the worker does not start: {said[-500:]}")
    else:
        end = "stuck" if code is None else ENDS.get(code, f"crash ({code}) {said[-200:]}")
        result.problems[last] = end
    return last + 1
