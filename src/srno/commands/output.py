"""Where words go: results to stdout and files, progress to stderr and only on a terminal."""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from srno.errors import SRNOError
from srno.evaluation.evaluate import Progress as Report

SUFFIXES = frozenset({".json", ".md", ".csv"})
STOPPED = 130


def show(markdown: str) -> None:
    """Markdown on stdout: drawn as tables on a terminal, as it is elsewhere."""
    console = Console()
    if console.is_terminal:
        console.print(Markdown(markdown))
    else:
        sys.stdout.write(markdown)


def save(out: Path, name: str, texts: Mapping[str, str]) -> list[Path]:
    """Write each text to OUT.suffix, or to OUT/name.suffix where OUT is a folder."""
    stem = out / _as_file_name(name) if out.is_dir() else out
    stem = stem.with_suffix("") if stem.suffix in SUFFIXES else stem
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in texts]
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text)
    except OSError as error:
        raise SRNOError(f"--out {out}: cannot be written ({error.strerror})") from None
    return paths


def _as_file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_.+" else "-" for letter in name)


def say(text: str) -> None:
    """A line on stderr."""
    sys.stderr.write(text + "\n")


@contextmanager
def watch(title: str) -> Generator[Report]:
    """A progress bar with the time that is left; stopping in the middle is no accident and loses nothing."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    task = bar.add_task(title, total=None)

    def report(done: int, total: int, picture: str) -> None:
        bar.update(task, completed=done, total=total, description=f"{title}: {picture}")

    try:
        with bar:
            yield report
    except KeyboardInterrupt:
        say("srno: stopped; what is done is remembered, and the same command goes on from there")
        sys.exit(STOPPED)
