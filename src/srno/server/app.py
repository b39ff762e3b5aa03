"""The studio as a web application. Starlette is imported here alone, and only when it is called for."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from srno.errors import SRNOError, require
from srno.server import handlers
from srno.server.guard import Application, Guard, Names
from srno.server.handlers import Reply, json_reply
from srno.server.requests import TooLargeError
from srno.server.studio import GoneError, NotLiftedError, Studio
from srno.server.workers import BusyError, StoppedError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Handler: TypeAlias = Callable[[Studio, "Request"], Awaitable[Reply]]

STATUS: dict[type[Exception], int] = {
    GoneError: 404,
    NotLiftedError: 409,
    TooLargeError: 413,
    BusyError: 503,
    StoppedError: 503,
    SRNOError: 400,
}
ROUTES: list[tuple[str, str, Handler]] = [
    ("GET", "/api/about", handlers.about),
    ("GET", "/api/examples/{name}", handlers.example),
    ("POST", "/api/images", handlers.upload),
    ("POST", "/api/images/{id}/lift", handlers.lift),
    ("GET", "/api/images/{id}/tile", handlers.tile),
    ("POST", "/api/images/{id}/exports", handlers.export),
    ("GET", "/api/exports/{name}", handlers.exported),
]


def make_app(studio: Studio, names: Names) -> Application:
    """The page and what it can ask for, behind the guard."""
    require("python_multipart", "serve")
    applications, routing = require("starlette.applications", "serve"), require("starlette.routing", "serve")
    static = require("starlette.staticfiles", "serve").StaticFiles(directory=static_folder())
    hung_up = require("starlette.requests", "serve").ClientDisconnect
    routes = [routing.Route(path, _endpoint(studio, handler), methods=[method]) for method, path, handler in ROUTES]
    return Guard(
        applications.Starlette(
            routes=[routing.Route("/", _page), *routes, routing.Mount("/static", static)],
            exception_handlers=dict.fromkeys([*STATUS, hung_up, Exception], _complain),
        ),
        names,
    )


def static_folder() -> Path:
    """Where the page's files lie."""
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


async def _page(_request: "Request") -> "Response":
    from starlette.responses import FileResponse

    return FileResponse(static_folder() / "index.html", headers={"cache-control": "no-cache"})


async def _complain(_request: "Request", error: Exception) -> "Response":
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
    text = str(error) if isinstance(error, SRNOError) else "something went wrong in the server; its terminal says more"
    return _response(json_reply({"error": text}, status))
