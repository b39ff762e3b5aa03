"""The door: who may ask, and what a page from here may do. Plain ASGI, for every request alike.

The server has no passwords, so its safety is that no page from elsewhere can reach it. The Host check stops names that
were rebound to this machine, the Origin check stops forms and scripts of other sites, and the policy keeps whatever
ends up on our own page from talking to anyone else.
"""

import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True)
class Names:
    """Names under which the server may be asked."""

    names: frozenset[str] = LOCAL
    any_address: bool = False
    """Any number is fine: only names can be made to point elsewhere."""

    def allows(self, host: str) -> bool:
        """Whether a Host header, with or without a port, is one of ours."""
        match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]/@]+)(:\d{1,5})?", host)
        if not match:
            return False
        name = match[1].lower().removesuffix(".")
        return name in self.names or (self.any_address and _is_address(name))


def names_for(host: str) -> Names:
    """The names that go with `--host`: itself, and for all interfaces any address and this machine's own name."""
    bare = host.strip("[]").lower()
    if bare in ("0.0.0.0", "::"):
        return Names(LOCAL | {socket.gethostname().lower()}, any_address=True)
    return Names(LOCAL | {f"[{bare}]" if ":" in bare else bare})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class Guard:
    """Refuses strangers and adds the headers that every answer has."""

    def __init__(self, app: Application, names: Names) -> None:
        self.app, self.names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *ours]
            await send(message)

        refusal = self._refusal([(name.lower(), value) for name, value in scope["headers"]])
        if refusal is None:
            await self.app(scope, receive, send_guarded)
        else:
            await _refuse(refusal, send_guarded)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> str | None:
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self.names.allows(hosts[0]):
            known = ", ".join(sorted(self.names.names))
            return f"this server answers to {known} only; start it with --host to add a name"
        origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
        if any(origin not in (f"http://{hosts[0]}", f"https://{hosts[0]}") for origin in origins):
            return "pages from elsewhere may not use this server"
        return None


async def _refuse(reason: str, send: Send) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": reason.encode()})
