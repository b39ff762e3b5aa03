"""What the page can ask for. Each function takes the studio and a request and gives a reply."""

import json
import mimetypes
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from srno._version import __version__
from srno.imaging.formats import CAPABILITIES
from srno.server.requests import Facts, finish, read_file, read_json, read_numbers, watch
from srno.server.studio import GoneError, Studio
from srno.server.tiles import BICUBIC, LARGEST_ZOOM, Tile

if TYPE_CHECKING:
    from starlette.requests import Request

LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Reply:
    """An answer: some bytes, or some as they come."""

    body: bytes | AsyncIterator[bytes]
    media_type: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])


def json_reply(facts: Facts, status: int = 200) -> Reply:
    """An object."""
    return Reply(json.dumps(facts).encode(), "application/json", status)


async def about(studio: Studio, _request: "Request") -> Reply:
    """What the page should know before anything is opened."""
    formats = [
        {"name": name, "bits": can.bits, "alpha": can.alpha, "lossless": can.lossless}
        for name, can in CAPABILITIES.items()
    ]
    return json_reply(
        {
            "version": __version__,
            "limits": {"bytes": studio.limits.bytes, "pixels": studio.limits.pixels},
            "models": list(studio.models),
            "formats": formats,
            "examples": list(studio.examples),
            "threads": studio.threads,
            "zoom": LARGEST_ZOOM,
        }
    )


async def example(studio: Studio, request: "Request") -> Reply:
    """One of the pictures that come with the package."""
    path = studio.examples.get(request.path_params["name"])
    if path is None:
        raise GoneError("there is no such example")
    return Reply(path.read_bytes(), mimetypes.guess_type(path)[0] or "image/png")


async def upload(studio: Studio, request: "Request") -> Reply:
    """A form with the field `file` → the picture's id and facts."""
    name, data = await read_file(request, studio.limits.bytes)
    opened = await finish(request, studio.open(data, name))
    (width, height), picture = opened.size, opened.picture
    facts = {"id": opened.id, "name": name, "width": width, "height": height}
    more = {"bits": picture.bits, "format": picture.format, "alpha": picture.alpha is not None}
    return json_reply(facts | more, 201)


async def lift(studio: Studio, request: "Request") -> Reply:
    """Lift a picture with ?model=…; lines of JSON say how far it is."""
    job = studio.lift(request.path_params["id"], request.query_params.get("model", ""))
    return Reply(watch(job, lambda _: {}), LINES)


async def tile(studio: Studio, request: "Request") -> Reply:
    """Some pixels at a zoom level, as PNG: ?source=light&level=4096,3072&rect=left,top,width,height."""
    width, height = read_numbers(request, "level", 2)
    left, top, columns, rows = read_numbers(request, "rect", 4)
    wanted = Tile(request.query_params.get("source", BICUBIC), (width, height), (left, top, columns, rows))
    return Reply(await finish(request, studio.tile(request.path_params["id"], wanted)), "image/png")


async def export(studio: Studio, request: "Request") -> Reply:
    """Export a picture as the JSON in the body says; lines of JSON say how far it is, the last where the file is."""
    job = studio.export(request.path_params["id"], await read_json(request))

    def describe(name: str) -> Facts:
        done = studio.exported(name)
        facts = {"file": f"/api/exports/{name}", "name": done.name, "bytes": len(done.data)}
        return facts | {"width": done.size[0], "height": done.size[1], "notes": done.notes}

    return Reply(watch(job, describe), LINES)


async def exported(studio: Studio, request: "Request") -> Reply:
    """A finished export, to be saved."""
    done = studio.exported(request.path_params["name"])
    disposition = f"attachment; filename*=UTF-8''{quote(done.name)}"
    return Reply(done.data, "application/octet-stream", headers={"content-disposition": disposition})
