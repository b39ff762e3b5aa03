"""Run the server: listen at a port, open the browser, stop at once on Ctrl-C."""

import contextlib
import errno
import ipaddress
import logging
import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from types import FrameType
from typing import Any

from srno.errors import SRNOError, require
from srno.server.app import make_app
from srno.server.guard import allowed_hosts
from srno.server.studio import Studio

HEADER_TIMEOUT_SECONDS = 20.0
"""Time for a client to send the head of a request."""
KEEP_ALIVE_SECONDS = 60
STOP_SECONDS = 0.7
"""Time from Ctrl-C to the end of the process, whatever it is doing."""


def serve(studio: Studio, host: str, port: int, ready: Callable[[str, str | None], None]) -> None:
    """Serve until Ctrl-C.

    `ready` is called with the page's address on this machine, and the one for other devices if they can reach it.
    """
    uvicorn = require("uvicorn", "serve")
    listener = _listen(host, port)
    token = None if _is_loopback(listener) else secrets.token_urlsafe(12)
    config = uvicorn.Config(
        make_app(studio, allowed_hosts(host), token),
        http=_timed_protocol(),
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # a header must not decide whether a client is on this machine
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    server = uvicorn.Server(config)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        # A thread inside an encoder cannot be interrupted, and interpreter shutdown would wait for it.
        threading.Timer(STOP_SECONDS, os._exit, (0,)).start()
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # aborted requests are not errors here
        server.should_exit = server.force_exit = True

    server.handle_exit = stop
    number = listener.getsockname()[1]
    ready(address(host, number), None if token is None else f"{address(_reachable(host), number)}?token={token}")
    server.run(sockets=[listener])
    studio.close()
    sys.stderr.flush()
    if not studio.join(STOP_SECONDS / 2):
        os._exit(0)


def address(host: str, port: int) -> str:
    """The page's URL for a browser on this machine."""
    bare = host.strip("[]")
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(bare, f"[{bare}]" if ":" in bare else bare)
    return f"http://{name}:{port}/"


def open_window(url: str) -> None:
    """Open the page in the browser without waiting for it."""

    def show() -> None:
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(url)

    threading.Thread(target=show, daemon=True).start()


def _timed_protocol() -> type[Any]:
    """The HTTP protocol of uvicorn with a limit on the time in which the head of a request arrives."""
    protocol: type[Any] = require("uvicorn.protocols.http.h11_impl", "serve").H11Protocol

    class TimedProtocol(protocol):
        _timer: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start()

        def data_received(self, data: bytes) -> None:
            if self.cycle is not None and self.cycle.response_complete:
                self._start()
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._cancel()

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            self._cancel()
            super().on_response_complete()

        def _start(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(HEADER_TIMEOUT_SECONDS, self.transport.abort)

        def _cancel(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return TimedProtocol


def _listen(host: str, port: int) -> socket.socket:
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    unknown = SRNOError(f"--host {host!r} is not a name or address of this machine; 0.0.0.0 listens at all of them")
    try:
        socket.getaddrinfo(bare, None, family)  # create_server reports an unknown name like any other failure
        return socket.create_server((bare, port), family=family)
    except OverflowError:
        raise SRNOError(f"--port {port}: give a number from 0 to 65535") from None
    except (socket.gaierror, UnicodeError):
        raise unknown from None
    except PermissionError:
        raise SRNOError(f"--port {port}: only the administrator may listen there; choose one above 1023") from None
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise unknown from None
        reason = os.strerror(error.errno or 0)
        raise SRNOError(f"--host {host} --port {port}: {reason}; --port 0 takes any free one") from None


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def _reachable(host: str) -> str:
    """The name or address at which other devices reach this machine."""
    bare = host.strip("[]")
    if bare not in ("0.0.0.0", "::"):
        return bare
    family, outside = (socket.AF_INET6, "2001:db8::1") if bare == "::" else (socket.AF_INET, "192.0.2.1")
    # Connecting a datagram socket sends nothing; it chooses the interface that leads outside.
    with socket.socket(family, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect((outside, 9))
        return probe.getsockname()[0]
    return socket.gethostname()
