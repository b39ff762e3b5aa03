"""srno serve"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from srno.errors import SRNOError

if TYPE_CHECKING:
    from srno.server.studio import Studio

PORT = 7766
"""S, R, N, O on a telephone's keys."""


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    open_page: Annotated[bool, Parameter(name="--open", negative="--no-open")] = True,
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    memory: str | None = None,
    max_megabytes: float = 100,
    max_megapixels: float = 16,
    threads: int | None = None,
) -> None:
    """Serve a page on this machine, on which one drops a picture and flies into it. Ctrl-C ends it.

    Parameters
    ----------
    host
        Address to listen at. Others than this machine can reach the page only if it is one of the network's.
    port
        Port to listen at; 0 takes any free one.
    open_page
        Open the page in the browser.
    model
        A model beside those that are shipped: a checkpoint, which the page then offers first. Or the name of one that
        is shipped, to offer it first.
    memory
        Memory for pictures, what was computed of them, and finished exports, such as 4G; half of what is free unless
        given. What was used least recently makes room.
    max_megabytes
        Largest file that may be opened.
    max_megapixels
        Largest picture that may be opened.
    threads
        CPU threads; all cores unless given.
    """
    from srno.server.serving import open_window
    from srno.server.serving import serve as run

    studio = _studio(model, memory, max_megabytes, max_megapixels, threads)

    def ready(url: str) -> None:
        sys.stderr.write(f"srno: {url} (Ctrl-C ends it)\n")
        if open_page:
            open_window(url)

    run(studio, host, port, ready)


def _studio(
    model: str | None, memory: str | None, max_megabytes: float, max_megapixels: float, threads: int | None
) -> "Studio":
    import torch

    from srno.field.machine import default_budget, parse_memory
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
    """Names and files of the models to offer, the one to begin with first."""
    from srno.checkpoints.catalogue import find, read_checkpoint, shipped_models

    shipped = {entry.path.stem: entry.path for entry in shipped_models()}
    if first is None:
        if not shipped:
            raise SRNOError("no models come with this package; give one with --model PATH")
        return shipped
    path = find(first)
    read_checkpoint(path)  # so that a bad file is told now and not on the page
    return {path.stem: path} | {name: file for name, file in shipped.items() if file != path}
