"""Enlarge one file into another, as `srno upscale` does: with its depth, frames and metadata."""

from pathlib import Path

from srno.errors import SRNOError
from srno.gigapixel.passes import Status as Passing
from srno.progress import Progress
from srno.upscaling.batch import run
from srno.upscaling.jobs import Existing, plan_batch
from srno.upscaling.naming import parse_output
from srno.upscaling.room import check_outputs
from srno.upscaling.sources import Source
from srno.upscaling.steps import BatchSettings, NoProgress


def upscale_file(
    source: Path | bytes, output: str, settings: BatchSettings, *, overwrite: bool, progress: Progress | None
) -> Path:
    """Enlarge a file, or the content of one, into `output`: a file, a folder or a template, as for the command."""
    origin = Source(None, Path("picture")) if isinstance(source, bytes) else Source(source, Path(source.name))
    data = source if isinstance(source, bytes) else None
    naming = parse_output(output, None, settings.bits, [origin.name])
    if naming.stdout:
        raise SRNOError(f"output {output!r}: give a file or a folder")
    existing: Existing = "overwrite" if overwrite else "skip"
    plan = plan_batch([origin], data, settings.request, naming, existing)
    if plan.skipped:
        raise SRNOError(f"output {plan.skipped[0].output} exists; give overwrite=True to replace it")
    check_outputs(plan.jobs, settings.bits)
    (outcome,) = run(plan, settings, _Shares(progress))
    if outcome.status != "written" or outcome.output is None:
        raise SRNOError(f"{outcome.input}: {outcome.error or outcome.reason}")
    return Path(outcome.output)


class _Shares(NoProgress):
    """Passes the progress of one picture on."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress

    def advance(self, share: float) -> None:
        if self.progress is not None:
            self.progress(share)

    def stage(self, status: Passing) -> None:
        self.advance(status.share)
