"""Where words go: results to stdout and files, progress to stderr and only on a terminal."""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from srno.errors import SRNOError
from srno.evaluation.evaluate import Report
from srno.view import View

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
    """Show a bar with the time that is left. Ctrl-C is no error: what is finished is cached."""
    try:
        with View() as view:
            bar = view.add(title, total=None)

            def report(done: int, total: int, picture: str) -> None:
                view.update(bar, done, text=f"{title}: {picture}", total=total)

            yield report
    except KeyboardInterrupt:
        say("srno: stopped; what is done is cached, and the same command continues from there")
        sys.exit(STOPPED)
