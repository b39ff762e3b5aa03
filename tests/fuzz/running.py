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
    result = Result()
    while result.inputs < count:
        _run_worker(kind, seed, count - result.inputs, result)
    return result


def _run_worker(kind: str, seed: int, count: int, result: Result) -> None:
    """Run one worker until it ends or dies, and add what became of its inputs."""
    command = [sys.executable, "-m", "fuzz.worker", kind, str(seed), str(result.inputs), str(count)]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        environment = os.environ | {
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}",
            "OMP_NUM_THREADS": "1",
            "TMPDIR": folder,  # so that temporary files are seen
        }
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, check=False)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.decode().splitlines()]
    if not lines:
        raise RuntimeError(f"the worker does not start: {said[-500:]}")
    _collect(lines, ENDS.get(done.returncode, f"ended with {done.returncode}: {said[-300:]}"), result)


def _collect(lines: list[dict[str, Any]], end: str, result: Result) -> None:
    """Count the results; an input without one is what ended the worker."""
    results = {line["number"]: line.get("result", end) for line in lines}
    result.inputs += len(results)
    result.accepted += [*results.values()].count("accepted")
    result.refused += [*results.values()].count("refused")
    result.problems |= {number: each for number, each in results.items() if each not in ("accepted", "refused")}
