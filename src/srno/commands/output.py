"""Output of the commands: results to stdout and files, progress to stderr and only on a terminal."""

import json
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter
from rich.console import Console
from rich.markdown import Markdown

from srno.errors import SRNOError
from srno.evaluation.evaluate import ReportProgress
from srno.view import View

RESULT_SUFFIXES = frozenset({".json", ".md", ".csv"})
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class ResultFlags:
    """Flags of the commands whose result is a table."""

    out: Path | None = None
    """Save the result too: OUT.json, OUT.md …, or into OUT if that is a folder."""
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False
    """Print JSON."""

    def write(self, name: str, texts: Mapping[str, str]) -> None:
        """Print the Markdown or JSON of `texts`, which are by suffix, and save them all if --out was given."""
        if self.as_json:
            sys.stdout.write(texts["json"])
        else:
            show(texts["md"])
        if self.out is not None:
            save(self.out, name, texts)


Result: TypeAlias = Annotated[ResultFlags, Parameter(name="*")]
DEFAULT_RESULT_FLAGS = ResultFlags()


def as_json_text(content: object) -> str:
    """Format plain data as JSON."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def show(markdown: str) -> None:
    """Print Markdown on stdout: rendered on a terminal, unchanged elsewhere."""
    console = Console()
    if console.is_terminal:
        console.print(Markdown(markdown))
    else:
        sys.stdout.write(markdown)


def save(out: Path, name: str, texts: Mapping[str, str]) -> None:
    """Write each text to OUT.suffix, or to OUT/name.suffix if OUT is a folder, and print where."""
    stem = out / _as_file_name(name) if out.is_dir() else out
    stem = stem.with_suffix("") if stem.suffix in RESULT_SUFFIXES else stem
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in texts]
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text)
    except OSError as error:
        raise SRNOError(f"--out {out}: cannot be written ({error.strerror})") from None
    print_message("saved " + ", ".join(map(str, paths)))


def finish_figure(out: Path, figure: Any, text: str, content: dict[str, Any]) -> None:
    """Save a figure, print its numbers, and save them beside it."""
    from srno.reproduce.plotting import save_figure

    save_figure(figure, out)
    show(text)
    print_message(f"drew {out}")
    save(out.with_suffix(""), out.stem, {"md": text, "json": as_json_text(content)})


def _as_file_name(name: str) -> str:
    return "".join(each if each.isalnum() or each in "-_.+" else "-" for each in name)


def print_message(text: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(text + "\n")


@contextmanager
def watch(title: str) -> Generator[ReportProgress]:
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
