"""The web application: routes and error replies. Starlette is optional, so it is imported when it is needed."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from srno.errors import SRNOError, require
from srno.server import handlers
from srno.server.gallery import GoneError
from srno.server.guard import AllowedHosts, Application, Guard, Receive, Scope, Send, with_headers
from srno.server.handlers import Reply, json_reply
from srno.server.requests import SlowError, TooLargeError
from srno.server.store import FullError
from srno.server.studio import Studio
from srno.server.workers import BusyError, StoppedError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Handler: TypeAlias = Callable[[Studio, "Request"], Awaitable[Reply]]

STATUS: dict[type[Exception], int] = {
    GoneError: 404,
    SlowError: 408,
    TooLargeError: 413,
    BusyError: 503,
    FullError: 503,
    StoppedError: 503,
    SRNOError: 400,
}
ROUTES: list[tuple[str, str, Handler]] = [
    ("GET", "/api/about", handlers.about),
    ("GET", "/api/examples/{name}", handlers.example),
    ("POST", "/api/images", handlers.upload),
    ("GET", "/api/images/{id}/state", handlers.state),
    ("GET", "/api/images/{id}/tile", handlers.tile),
    ("GET", "/api/images/{id}/inside", handlers.inside),
    ("POST", "/api/images/{id}/exports", handlers.export),
    ("POST", "/api/images/{id}/exports/estimate", handlers.estimate),
    ("POST", "/api/images/{id}/clips", handlers.clip),
    ("GET", "/api/jobs/{name}", handlers.job),
    ("DELETE", "/api/jobs/{name}", handlers.stop),
    ("GET", "/api/exports/{name}", handlers.exported),
]


def make_app(studio: Studio, hosts: AllowedHosts, token: str | None = None) -> Application:
    """The page, its API and its static files, behind the guard; with a token, other devices need it."""
    require("python_multipart", "serve")
    applications, routing = require("starlette.applications", "serve"), require("starlette.routing", "serve")
    static = require("starlette.staticfiles", "serve").StaticFiles(directory=static_folder())
    disconnect = require("starlette.requests", "serve").ClientDisconnect
    routes = [routing.Route(path, _endpoint(studio, handler), methods=[method]) for method, path, handler in ROUTES]
    return Guard(
        applications.Starlette(
            routes=[
                routing.Route("/", _file("index.html")),
                # A service worker controls the folder that it comes from.
                routing.Route("/sw.js", _file("sw.js")),
                *routes,
                routing.Mount("/static", _revalidated(static)),
            ],
            exception_handlers=dict.fromkeys([*STATUS, disconnect, Exception], _error_response),
        ),
        hosts,
        token,
    )


def _revalidated(app: Application) -> Application:
    """Make browsers ask whether a file has changed before they use their copy."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, with_headers(send, {"cache-control": "no-cache"}))

    return call


def static_folder() -> Path:
    """The folder with the page's files."""
    return Path(str(files("srno"))) / "server" / "static"


def _endpoint(studio: Studio, handler: Handler) -> Callable[["Request"], Awaitable["Response"]]:
    async def endpoint(request: "Request") -> "Response":
        return _response(await handler(studio, request))

    return endpoint


def _response(reply: Reply) -> "Response":
    from starlette.responses import Response, StreamingResponse

    headers = {"cache-control": "no-store", **reply.headers}
    if isinstance(reply.body, bytes):
        return Response(reply.body, reply.status, headers, reply.media_type)
    return StreamingResponse(reply.body, reply.status, headers, reply.media_type)


def _file(name: str) -> Callable[["Request"], Awaitable["Response"]]:
    """Serve one of the page's files; browsers ask whether it has changed."""

    async def endpoint(_request: "Request") -> "Response":
        from starlette.responses import FileResponse

        return FileResponse(static_folder() / name, headers={"cache-control": "no-cache"})

    return endpoint


async def _error_response(_request: "Request", error: Exception) -> "Response":
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
    text = str(error) if isinstance(error, SRNOError) else "internal error; see the terminal of srno serve"
    return _response(json_reply({"error": text}, status))
