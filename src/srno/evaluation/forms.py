"""Ways to evaluate a model: the equations as written, the engine, and the fastest form of each rival.

Their peak memory is measured in a separate process, so that earlier allocations do not affect it:

python -m srno.evaluation.forms '{"model": "light", "form": "exact", "lr": [72, 88], "size": [288, 352], …}'
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from srno.checkpoints.build import create_model
from srno.checkpoints.catalogue import find, read_checkpoint
from srno.config import PRESETS, LTEConfig, ModelConfig, SRNOConfig
from srno.errors import SRNOError
from srno.field.field import lift
from srno.operator.grid import cell_of, make_grid
from srno.operator.model import Model
from srno.operator.sampling import whole_picture
from srno.rivals.lte import LTE

Form: TypeAlias = Literal["textbook", "exact", "quadrature", "points", "maps"]

QUADRATURE_POINTS = 16384
"""Points of the integral estimate in the form `quadrature`: as many as in training."""
CPU_BAND_PIXELS = 2048
"""Pixels per band in the form `maps` on a CPU: a band fits into its caches."""
GPU_BAND_PIXELS = 1 << 17

FORM_DESCRIPTIONS: dict[Form, str] = {
    "textbook": "the equations as written, all points at once",
    "exact": "the engine, integrals over every output pixel",
    "quadrature": f"the engine, integrals from {QUADRATURE_POINTS} output pixels",
    "points": "the engine, chunks of points, the low-resolution part of the work done once",
    "maps": "1×1 convolutions over bands of rows (LTE+)",
}
assert set(FORM_DESCRIPTIONS) == set(get_args(Form))


def forms_of(config: ModelConfig) -> tuple[Form, ...]:
    """List the forms of a system; all but `quadrature` compute the same function."""
    match config:
        case SRNOConfig():
            return "textbook", "exact", "quadrature"
        case LTEConfig():
            return "points", "maps"
        case _:
            return ("points",)


def load_or_build(name: str, device: str) -> Model:
    """Build a preset with random weights, since time does not depend on them, or load a model by name or path."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = create_model(PRESETS[name]) if name in PRESETS else read_checkpoint(find(name)).model()
    return model.requires_grad_(False).eval().to(device)


@torch.no_grad()
def render_form(model: Model, form: Form, image: Tensor, size: tuple[int, int], memory: int | None = None) -> Tensor:
    """Render a picture (3, h, w) in [-1, 1] at `size` = (height, width): (3, height, width), with the cell clip."""
    height, width = size
    if form == "textbook":
        coords = make_grid(height, width, device=image.device, dtype=torch.float32).reshape(1, -1, 2)
        lr = (image.shape[-2], image.shape[-1])
        cell = cell_of(height / lr[0], width / lr[1], device=image.device)
        rgb = model.reference(image.unsqueeze(0), *model.clip_cell(coords, cell, lr))
        return rgb[0].T.reshape(3, height, width)
    field = lift(model, image, memory=memory)
    if form == "maps":
        assert isinstance(model, LTE)
        return _render_maps(model, field.features.permute(2, 0, 1).unsqueeze(0), field.image, size)
    return field.render(size, integral=QUADRATURE_POINTS if form == "quadrature" else "exact")


def _render_maps(model: LTE, features: Tensor, image: Tensor, size: tuple[int, int]) -> Tensor:
    """Render LTE+ in bands of rows: features (1, C, h, w) and image (1, 3, h, w) → (3, *size)."""
    sampling = whole_picture((image.shape[-2], image.shape[-1]), size)
    decode = model.prepare_maps(features, image, sampling.cell(clip=True, device=image.device))
    rows, columns = sampling.axis(0, image.device), sampling.axis(1, image.device)
    band = max(1, (CPU_BAND_PIXELS if image.device.type == "cpu" else GPU_BAND_PIXELS) // size[1])
    parts: tuple[Tensor, ...] = rows.split(band)
    return torch.cat([decode(part, columns)[0] for part in parts], dim=1)


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
    command = [sys.executable, "-m", "srno.evaluation.forms", json.dumps(asdict(job))]
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
