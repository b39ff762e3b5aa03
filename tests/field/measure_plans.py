"""Render random sizes within random budgets, and print how much of each budget the process took.

python tests/field/measure_plans.py COUNT SEED

Each render has a fork of its own, since memory that an earlier one has freed would hide what it takes. A fork starts
without the pages of mapped files, so the code of libraries that a render touches is counted apart.
"""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import torch

from srno.checkpoints.build import create_model
from srno.evaluation.forms import resident_peak
from srno.field.field import lift
from srno.machine import keep_freed_memory
from srno.operator.encoder import channels

SMALLEST_BUDGET, LARGEST_BUDGET = 16 << 20, 256 << 20


def mapped_files() -> int:
    """Resident bytes of this process that are pages of files, such as the code of libraries."""
    found = re.search(r"RssFile:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found[1]) if found else 0


def main(count: int, seed: int) -> None:
    """Print a line of JSON per plan: the budget, and what the render took besides picture, features and result."""
    keep_freed_memory()  # as the command does
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = create_model("light").eval()
    lift(model, torch.zeros(3, 16, 16)).render((32, 32))  # one-time allocations of libraries
    rng = np.random.default_rng(seed)
    for _ in range(count):
        height, width = (int(side) for side in rng.integers(8, 400, 2))
        size = round(height * rng.uniform(1, 4)), round(width * rng.uniform(1, 4))
        budget = int(np.exp(rng.uniform(np.log(SMALLEST_BUDGET), np.log(LARGEST_BUDGET))))
        exact = bool(rng.random() < 0.5)
        image = torch.rand(3, height, width) * 2 - 1

        def render() -> None:
            lift(model, image, memory=budget).render(size, integral="exact" if exact else "auto")  # noqa: B023 (called now)

        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        code = mapped_files()
        rise = resident_peak(render)
        code = mapped_files() - code
        own = 4 * (3 * height * width + channels(model.encoder) * height * width + 3 * size[0] * size[1])
        report = {"size": [height, width], "to": size, "exact": exact, "budget": budget, "taken": rise - own - code}
        sys.stdout.write(json.dumps(report | {"code": code}) + "\n")
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
