"""Running the server: a socket, a window, and an end at once."""

import contextlib
import logging
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from types import FrameType

from srno.errors import SRNOError, require
from srno.server.app import make_app
from srno.server.guard import names_for
from srno.server.studio import Studio

PATIENCE = 0.5
"""Seconds that computing threads get to notice that they were stopped."""


def serve(studio: Studio, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `ready` is told the page's address."""
    uvicorn = require("uvicorn", "serve")
    app = make_app(studio, names_for(host))
    listener = _listen(host, port)
    server = uvicorn.Server(
        uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", server_header=False, timeout_keep_alive=60
        )
    )

    def stop(_signal: int, _frame: FrameType | None) -> None:
        studio.close()
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # requests that this cuts off are no errors
        server.should_exit = server.force_exit = True

    server.handle_exit = stop
    ready(address(host, listener.getsockname()[1]))
    server.run(sockets=[listener])
    studio.close()
    if not studio.join(PATIENCE):
        # A thread deep in an encoder cannot be interrupted, and Python would wait for it or stumble over it.
        sys.stderr.flush()
        os._exit(0)


def address(host: str, port: int) -> str:
    """What to type into a browser on this machine."""
    bare = host.strip("[]")
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(bare, f"[{bare}]" if ":" in bare else bare)
    return f"http://{name}:{port}/"


def open_window(url: str) -> None:
    """Show the page, without waiting for the browser."""

    def show() -> None:
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(url)

    threading.Thread(target=show, daemon=True).start()


def _listen(host: str, port: int) -> socket.socket:
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    try:
        return socket.create_server((bare, port), family=family)
    except OverflowError:
        raise SRNOError(f"--port {port}: give a number from 0 to 65535") from None
    except socket.gaierror:
        raise SRNOError(f"--host {host!r} is no name or address of this machine") from None
    except OSError as error:
        raise SRNOError(f"--host {host} --port {port}: {error.strerror}; --port 0 takes any free one") from None
