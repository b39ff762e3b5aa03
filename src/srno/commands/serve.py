"""srno serve"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from srno.errors import SRNOError, require

if TYPE_CHECKING:
    from srno.server.studio import Studio

DEFAULT_PORT = 7766
"""SRNO on a telephone keypad."""


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    open_page: Annotated[bool, Parameter(name="--open", negative="--no-open")] = True,
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    memory: str | None = None,
    max_megabytes: float = 400,
    max_megapixels: float = 200,
    threads: int | None = None,
) -> None:
    """Serve a web page on which pictures are opened, zoomed and exported. Ctrl-C stops it.

    Parameters
    ----------
    host
        Address to listen on. With the default, only this machine can reach the page. With 0.0.0.0 other devices can,
        at the address with a token that is printed.
    port
        Port to listen on; 0 takes any free one.
    open_page
        Open the page in the browser.
    model
        A checkpoint to offer in addition to the shipped models, or the name of a shipped one; the page lists it first.
    memory
        Memory for pictures, work on them, its cached results and finished exports, such as 4G; half of the free memory
        unless given. The least recently used data is dropped first.
    max_megabytes
        Largest file that may be opened.
    max_megapixels
        Largest picture that may be opened.
    threads
        CPU threads; all cores unless given.
    """
    from srno.machine import keep_freed_memory
    from srno.server.serving import open_window
    from srno.server.serving import serve as run

    keep_freed_memory()  # the threads give it back when there is nothing to do
    studio = _studio(model, memory, max_megabytes, max_megapixels, threads)

    def ready(url: str, shared: str | None) -> None:
        sys.stderr.write(f"srno: {url} (Ctrl-C stops it)\n")
        if shared is not None:
            _print_shared(shared)
        if open_page:
            open_window(url)

    run(studio, host, port, ready)


def _print_shared(url: str) -> None:
    """Print the address for other devices, what it means to pass it on, and a QR code on a terminal."""
    sys.stderr.write(f"srno: other devices open {url}\n")
    sys.stderr.write("srno: whoever has this address can use the server; the connection is not encrypted\n")
    if sys.stderr.isatty():
        require("segno", "serve").make(url, micro=False).terminal(sys.stderr, compact=True)
    sys.stderr.flush()


def _studio(
    model: str | None, memory: str | None, max_megabytes: float, max_megapixels: float, threads: int | None
) -> "Studio":
    import torch

    from srno.machine import default_budget, parse_memory
    from srno.server.studio import Limits, Studio, bundled_examples

    for flag, value in (("--max-megabytes", max_megabytes), ("--max-megapixels", max_megapixels)):
        if not 0 < value < 1e6:
            raise SRNOError(f"{flag} {value:g}: give a number above 0")
    if threads is not None and threads < 1:
        raise SRNOError(f"--threads {threads}: give at least 1")
    return Studio(
        _models(model),
        examples=bundled_examples(),
        memory=default_budget(torch.device("cpu")) if memory is None else parse_memory(memory),
        limits=Limits(bytes=int(max_megabytes * 1e6), pixels=int(max_megapixels * 1e6)),
        threads=threads or torch.get_num_threads(),
    )


def _models(first: str | None) -> dict[str, Path]:
    """Names and files of the models to offer, the default first."""
    from srno.checkpoints.catalogue import find, read_checkpoint, shipped_models

    shipped = {entry.path.stem: entry.path for entry in shipped_models()}
    if first is None:
        if not shipped:
            raise SRNOError("no models come with this package; give one with --model PATH")
        return shipped
    path = find(first)
    read_checkpoint(path).model()  # so that a bad file or a custom encoder is reported now and not on the page
    others = {name: file for name, file in shipped.items() if file != path}
    return {path.name if path.stem in others else path.stem: path} | others
