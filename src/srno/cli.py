"""The `srno` command: names and one-line helps alone, so that `srno --help` needs no torch."""

import sys

from cyclopts import App, CycloptsError
from rich.console import Console

from srno._version import __version__
from srno.errors import SRNOError

USAGE = 2

COMMANDS = {
    "upscale": "Enlarge pictures by any factor, or to any size.",
    "train": "Train a model on a folder of pictures.",
    "models": "List the models that come with the package.",
    "convert": "Turn a public checkpoint (.pth) into our format.",
    "evaluate": "Score a model on sets of pictures under a named protocol.",
    "compare": "Set models beside each other, in a table and as close-ups.",
    "bench": "Time models beside each other.",
    "reproduce": "The paper's tables and figures again, with what is there to make them from.",
    "serve": "Fly into a picture, on a page in the browser.",
    "profile": "Count a model's parameters and FLOPs.",
}


def make_app() -> App:
    """The command line, with commands that are imported when they are called."""
    app = App(
        name="srno",
        help="Super-resolution at any scale: a picture is a function, lifted once and evaluated anywhere.",
        version=__version__,
        help_format="markdown",
        # Help goes to stdout; errors, like progress, never do.
        error_console=Console(stderr=True),
    )
    for name, text in COMMANDS.items():
        app.command(f"srno.commands.{name}:{name}", name=name, help=text)
    return app


def main(tokens: list[str] | None = None) -> None:
    """Run a command; a mistake of the user's is one line on stderr and exit code 2."""
    try:
        make_app()(tokens, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        fail(str(error))
    except SRNOError as error:
        fail(str(error))


def fail(message: str) -> None:
    """Say what is wrong in one line and exit."""
    sys.stderr.write("srno: " + " ".join(message.split()) + "\n")
    sys.exit(USAGE)
