"""Peak memory of one render, measured in a separate process, so that earlier allocations do not affect it.

python -m srno.evaluation.peak '{"model": "light", "form": "exact", "lr": [72, 88], "size": [288, 352], …}'
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from srno.errors import SRNOError
from srno.evaluation.forms import Form, load_or_build, render_form


@dataclass(frozen=True, kw_only=True)
class PeakJob:
    """A render to measure; sizes are (height, width)."""

    model: str
    form: Form
    lr: tuple[int, int]
    size: tuple[int, int]
    memory: int | None
    device: str
    threads: int


def peak_memory(job: PeakJob) -> int:
    """Measure the peak bytes of a render, in addition to the loaded model and the picture."""
    command = [sys.executable, "-m", "srno.evaluation.peak", json.dumps(asdict(job))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SRNOError(f"{job.model} ({job.form}): the measurement of its memory failed: {last}")
    return int(done.stdout)


def _measure(job: PeakJob) -> int:
    torch.set_num_threads(job.threads)
    model = load_or_build(job.model, job.device)

    def render(lr: tuple[int, int], size: tuple[int, int]) -> None:
        render_form(model, job.form, torch.rand(3, *lr, device=job.device) * 2 - 1, size, job.memory)

    render((16, 16), (32, 32))  # one-time allocations of libraries are not part of the render
    if job.device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        render(job.lr, job.size)
        return torch.cuda.max_memory_allocated() - before
    return resident_peak(lambda: render(job.lr, job.size))


def resident_peak(work: Callable[[], None]) -> int:
    """Measure how far the resident memory of this process rises above its current value during `work`."""
    _reset_peak()
    before = _resident("VmRSS")
    work()
    return max(0, _resident("VmHWM") - before)


def _reset_peak() -> None:
    """Reset the kernel's peak counter; if it cannot be reset, the new process has had no higher peak."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _resident(field: str) -> int:
    """Read a field of /proc/self/status in bytes; without /proc, the largest resident size so far."""
    try:
        match = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
        return 1024 * int(match[1]) if match else 0
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak


if __name__ == "__main__":
    sys.stdout.write(str(_measure(PeakJob(**json.loads(sys.argv[1])))))
