"""The `srno` command. Only names and one-line help texts are here, so that `srno --help` does not import torch."""

import sys

from cyclopts import App, CycloptsError
from rich.console import Console

from srno._version import __version__
from srno.errors import SRNOError

USAGE_EXIT_CODE = 2

COMMANDS = {
    "upscale": "Enlarge pictures by any factor, or to any size.",
    "train": "Train a model on a folder of pictures.",
    "models": "List the models that come with the package.",
    "convert": "Turn a public checkpoint (.pth) into our format.",
    "export": "Export a model as ONNX, for any runtime and any size.",
    "evaluate": "Score a model on sets of pictures under a named protocol.",
    "compare": "Compare models, in a table and in close-ups.",
    "bench": "Measure the speed of models.",
    "reproduce": "Reproduce the paper's tables and figures from checkpoints and pictures.",
    "serve": "Zoom into a picture, on a page in the browser.",
    "profile": "Count a model's parameters and FLOPs.",
}


def make_app() -> App:
    """Build the command line; a command is imported when it is called."""
    app = App(
        name="srno",
        help="Super-resolution at any scale: a picture is a function, lifted once and evaluated anywhere.",
        version=__version__,
        help_format="markdown",
        # Help is printed on stdout, errors and progress on stderr.
        error_console=Console(stderr=True),
    )
    for name, text in COMMANDS.items():
        app.command(f"srno.commands.{name}:{name}", name=name, help=text)
    return app


def main(tokens: list[str] | None = None) -> None:
    """Run a command; a user error is one line on stderr and exit code 2."""
    try:
        make_app()(tokens, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        fail(str(error))
    except SRNOError as error:
        fail(str(error))


def fail(message: str) -> None:
    """Print the message as one line on stderr and exit with code 2."""
    sys.stderr.write("srno: " + " ".join(message.split()) + "\n")
    sys.exit(USAGE_EXIT_CODE)
