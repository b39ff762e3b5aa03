"""ASGI middleware that checks where a request comes from and adds security headers to every response.

The server has no passwords, so it refuses requests from pages of other sites. The Host check stops DNS rebinding, the
Origin and Sec-Fetch-Site checks stop forms, scripts and images of other sites, and the Content-Security-Policy keeps
injected content on our own page from contacting other hosts. On a network, other devices need a token.
"""

import ipaddress
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qs

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
TOKEN_COOKIE = "srno_token"
COOKIE_SECONDS = 30 * 24 * 3600

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True)
class AllowedHosts:
    """Host names and addresses at which the server accepts requests."""

    names: frozenset[str] = LOCAL_NAMES
    any_address: bool = False
    """Accept every IP address: DNS rebinding needs a name."""

    def allows(self, host: str) -> bool:
        """Whether a Host header, with or without a port, is allowed."""
        match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]/@]+)(:\d{1,5})?", host)
        if not match:
            return False
        name = match[1].lower().removesuffix(".")
        return name in self.names or (self.any_address and _is_address(name))


def allowed_hosts(host: str) -> AllowedHosts:
    """Local names and the value of `--host`; for all interfaces every address and this machine's names."""
    bare = host.strip("[]").lower()
    if bare in ("0.0.0.0", "::"):
        name = socket.gethostname().lower()
        names = {name, f"{name.partition('.')[0]}.local", socket.getfqdn().lower()}
        return AllowedHosts(LOCAL_NAMES | names, any_address=True)
    return AllowedHosts(LOCAL_NAMES | {f"[{bare}]" if ":" in bare else bare})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    """Add headers to every response that is sent."""
    added = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *added]
        await send(message)

    return send_with_headers


class Guard:
    """Refuses other hosts, origins and devices without the token, and adds the security headers to every response."""

    def __init__(self, app: Application, hosts: AllowedHosts, token: str | None = None) -> None:
        """With a token, clients on other devices need it: first in the URL of the page, then in a cookie."""
        self.app, self.hosts, self.token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = with_headers(send, SECURITY_HEADERS)
        headers = [(name.lower().decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        refusal = self._refusal(headers)
        if refusal is not None:
            await _reply(403, refusal, send)
        elif self.token is None or _is_local(scope):
            await self.app(scope, receive, send)
        elif scope["path"] == "/" and self._is_token(_query_token(scope)):
            # The cookie replaces the token in the address, so that it is not in bookmarks and on shared screens.
            cookie = f"{TOKEN_COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_SECONDS}"
            await _reply(303, "", with_headers(send, {"location": "/", "set-cookie": cookie}))
        elif self._is_token(_cookie_token(headers)):
            await self.app(scope, receive, send)
        else:
            await _reply(403, "open the address with the token that srno serve has printed", send)

    def _refusal(self, headers: list[tuple[str, str]]) -> str | None:
        hosts = [value for name, value in headers if name == "host"]
        if len(hosts) != 1 or not self.hosts.allows(hosts[0]):
            known = ", ".join(sorted(self.hosts.names))
            return f"the Host header is not one of {known}; --host adds a name"
        origins = [value for name, value in headers if name == "origin"]
        sites = [value for name, value in headers if name == "sec-fetch-site"]
        if any(origin not in (f"http://{hosts[0]}", f"https://{hosts[0]}") for origin in origins) or any(
            site not in ("same-origin", "none") for site in sites
        ):
            return "requests from pages of other sites are refused; enter the address of this page yourself"
        return None

    def _is_token(self, given: str) -> bool:
        return self.token is not None and secrets.compare_digest(given.encode(), self.token.encode())


def _is_local(scope: Scope) -> bool:
    """Whether a request comes from this machine."""
    client = scope.get("client")
    try:
        return client is not None and ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False


def _query_token(scope: Scope) -> str:
    return next(iter(parse_qs(scope["query_string"].decode("latin-1")).get("token", [])), "")


def _cookie_token(headers: list[tuple[str, str]]) -> str:
    pairs = (pair.strip().partition("=") for name, value in headers if name == "cookie" for pair in value.split(";"))
    return next((value for name, _, value in pairs if name == TOKEN_COOKIE), "")


async def _reply(status: int, text: str, send: Send) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
