"""Output of the commands: results to stdout and files, progress to stderr and only on a terminal."""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from srno.errors import SRNOError
from srno.evaluation.evaluate import Report
from srno.view import View

RESULT_SUFFIXES = frozenset({".json", ".md", ".csv"})
EXIT_INTERRUPTED = 130


def show(markdown: str) -> None:
    """Print Markdown on stdout: rendered on a terminal, unchanged elsewhere."""
    console = Console()
    if console.is_terminal:
        console.print(Markdown(markdown))
    else:
        sys.stdout.write(markdown)


def save(out: Path, name: str, texts: Mapping[str, str]) -> list[Path]:
    """Write each text to OUT.suffix, or to OUT/name.suffix if OUT is a folder."""
    stem = out / _as_file_name(name) if out.is_dir() else out
    stem = stem.with_suffix("") if stem.suffix in RESULT_SUFFIXES else stem
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in texts]
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text)
    except OSError as error:
        raise SRNOError(f"--out {out}: cannot be written ({error.strerror})") from None
    return paths


def _as_file_name(name: str) -> str:
    return "".join(each if each.isalnum() or each in "-_.+" else "-" for each in name)


def print_message(text: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(text + "\n")


@contextmanager
def watch(title: str) -> Generator[Report]:
    """Show a bar with the remaining time. Ctrl-C exits without a traceback; finished scores are cached."""
    try:
        with View() as view:
            bar = view.add(title, total=None)

            def report(done: int, total: int, picture: str) -> None:
                view.update(bar, done, text=f"{title}: {picture}", total=total)

            yield report
    except KeyboardInterrupt:
        print_message("srno: stopped; finished scores are cached, and the same command resumes")
        sys.exit(EXIT_INTERRUPTED)
