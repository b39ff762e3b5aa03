"""srno bench"""

from pathlib import Path
from typing import TYPE_CHECKING

from srno.commands.options import Folders, find_data, prepare_computing
from srno.commands.output import DEFAULT_RESULT_FLAGS, Result, as_json_text, watch
from srno.errors import SRNOError

if TYPE_CHECKING:
    from srno.evaluation.timing import TimedRender, Timing
    from srno.reproduce.published import Published

DEFAULT_MODELS = ("edsr-baseline", "liif/edsr-baseline", "lte/edsr-baseline")


def bench(
    *models: str,
    data: Folders | None = None,
    scales: str = "2,3,4,6,8",
    repeats: int = 3,
    memory: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    result: Result = DEFAULT_RESULT_FLAGS,
) -> None:
    """Time models in all their forms, interleaved, and report parameters, FLOPs and peak memory.

    Parameters
    ----------
    models
        Presets, which get random weights, as time does not depend on them, or models and checkpoints; SRNO, LIIF and
        LTE on EDSR-baseline unless given.
    data
        Sets whose pictures' sizes to take; two pictures of 352×288 and 288×352 unless given.
    scales
        Factors.
    repeats
        Rounds; the minimum time of each picture and scale counts.
    memory
        Memory budget, such as 2G; half of the free memory unless given.
    device
        auto, cpu, cuda or mps.
    threads
        CPU threads; all cores unless given.
    """
    import torch

    from srno.evaluation.datasets import read_size
    from srno.evaluation.protocols import parse_scales
    from srno.evaluation.timing import SYNTHETIC_SIZES, make_jobs
    from srno.evaluation.timing import bench as measure
    from srno.machine import choose_device, parse_memory
    from srno.reproduce.published import load_published, paper_name

    if repeats < 1:
        raise SRNOError(f"--repeats {repeats}: give at least 1")
    prepare_computing(threads)
    pictures = [picture for each in find_data(data) for picture in each.pictures] if data else []
    jobs = make_jobs([read_size(picture.path) for picture in pictures] or SYNTHETIC_SIZES, parse_scales(scales))
    chosen_device, published = choose_device(device), load_published()
    with watch("bench") as report:
        rows = measure(
            models or DEFAULT_MODELS,
            jobs,
            repeats=repeats,
            memory=None if memory is None else parse_memory(memory),
            device=str(chosen_device),
            report=report,
        )
    where = str(chosen_device)
    if chosen_device.type == "cpu":
        where += f", {torch.get_num_threads()} threads"
    timing = f"mean over pictures of the minimum of {repeats} rounds, models interleaved"
    conditions = f"{_describe(jobs, data)} on {where}; {timing}."
    names = {(row.model, row.form): paper_name(row.config, row.form, published) for row in rows}
    content = {
        "conditions": conditions,
        "rows": [row.to_dict() | {"method": names[row.model, row.form]} for row in rows],
    }
    text = _markdown(rows, conditions, names, published)
    result.write("bench", {"json": as_json_text(content), "md": text})


def _describe(jobs: "list[TimedRender]", data: list[Path] | None) -> str:
    scales = list(dict.fromkeys(job.scale for job in jobs))
    sizes = [f"{job.size[1]}×{job.size[0]}" for job in jobs if job.scale == scales[0]]
    which = ", ".join(folder.name for folder in data) if data else "synthetic"
    listed = ", ".join(sizes) if len(sizes) <= 4 else f"{sizes[0]} … {sizes[-1]}"
    return f"{len(sizes)} pictures ({which}: {listed} at ×{scales[0]})"


def _markdown(
    rows: "list[Timing]", conditions: str, names: "dict[tuple[str, str], str | None]", published: "Published"
) -> str:
    from srno.evaluation.forms import FORM_DESCRIPTIONS
    from srno.evaluation.tables import NO_VALUE, markdown_table

    scales = list(dict.fromkeys(scale for row in rows for scale in row.seconds))
    header = ["model", "form", "params, M", "GFLOPs", *(f"×{scale}, ms" for scale in scales)]
    header += ["mean, ms", "µs/pixel", "peak, MB", "paper, ms"]
    times = published.tables["table4"].milliseconds
    lines = [
        [
            row.model,
            row.form,
            f"{row.parameters / 1e6:.2f}",
            f"{row.flops_paper / 1e9:.1f}",
            *(f"{1e3 * row.seconds[scale]:.0f}" if scale in row.seconds else NO_VALUE for scale in scales),
            f"{1e3 * row.mean:.0f}",
            f"{1e6 * row.pixel_seconds:.1f}",
            f"{row.peak / 1e6:.0f}",
            f"{times[name]:g}" if (name := names[row.model, row.form]) else NO_VALUE,
        ]
        for row in rows
    ]
    forms = dict.fromkeys(f"{row.form}: {FORM_DESCRIPTIONS[row.form]}" for row in rows)
    notes = [conditions, "; ".join(forms) + "."]
    notes.append(
        "Parameters and FLOPs are those of `srno profile` (128² pixels and points, the paper's counting). "
        "Peak memory is in addition to the model, for the largest picture. "
        f"Paper: {published.tables['table4'].source}."
    )
    return markdown_table("Running time", header, lines, notes)
