"""The `srno` command. Only names and one-line help texts are here, so that `srno --help` does not import torch."""

import glob
import sys
from pathlib import Path

from cyclopts import App, CycloptsError
from rich.console import Console

from srno._version import __version__
from srno.errors import SRNOError
from srno.imaging.formats import READ_SUFFIXES
from srno.machine import wait_briefly

USAGE_EXIT_CODE = 2
PICTURE_COMMAND = "upscale"
"""The command that pictures without a command are given to."""

COMMANDS = {
    PICTURE_COMMAND: "Enlarge pictures by any factor, or to any size; `srno photo.jpg` does too.",
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
    "completion": "Print the script that completes srno's words in bash, zsh or fish.",
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
    wait_briefly()
    try:
        make_app()(complete_tokens(sys.argv[1:] if tokens is None else tokens), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        fail(str(error))
    except SRNOError as error:
        fail(str(error))


def complete_tokens(tokens: list[str]) -> list[str]:
    """Supply what a user may leave out: the command for pictures, and ./ before names that begin with a dash."""
    command = tokens[:1] if tokens and tokens[0] in COMMANDS else []
    if not command and _names_pictures(tokens):
        command = [PICTURE_COMMAND]
    if command != [PICTURE_COMMAND]:
        return tokens
    given = tokens[1:] if tokens[0] == PICTURE_COMMAND else tokens
    return [*command, *(f"./{token}" if _is_dashed_picture(token) else token for token in given)]


def _names_pictures(tokens: list[str]) -> bool:
    """Whether the first word is a picture, a folder or a pattern; behind an option, whether any word is."""
    if not tokens or tokens[0] in ("-h", "--help", "--version"):
        return False
    behind_option = tokens[0].startswith("-") and tokens[0] != "-"
    return any(map(_names_picture, tokens if behind_option else tokens[:1]))


def _names_picture(token: str) -> bool:
    return token == "-" or _has_picture_suffix(token) or glob.has_magic(token) or Path(token).exists()


def _is_dashed_picture(token: str) -> bool:
    return token.startswith("-") and "=" not in token and _has_picture_suffix(token)


def _has_picture_suffix(token: str) -> bool:
    return Path(token).suffix.lower() in READ_SUFFIXES


def fail(message: str) -> None:
    """Print the message as one line on stderr and exit with code 2."""
    sys.stderr.write("srno: " + " ".join(message.split()) + "\n")
    sys.exit(USAGE_EXIT_CODE)
