"""Request handlers: each takes the studio and a request and returns a reply."""

import json
import mimetypes
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import quote

from srno._version import __version__
from srno.checkpoints.catalogue import choose_strength
from srno.imaging.formats import CAPABILITIES, EXTRAS, READ_FORMATS, READ_SUFFIXES, Format
from srno.server.gallery import GoneError
from srno.server.long_jobs import State
from srno.server.requests import (
    MAX_FORM_OVERHEAD_BYTES,
    JSONObject,
    declared_length,
    finish,
    read_file,
    read_json,
    read_numbers,
)
from srno.server.studio import Studio
from srno.server.tiles import BICUBIC, LARGEST_ZOOM, Tile

if TYPE_CHECKING:
    from starlette.requests import Request

PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class Reply:
    """A response: bytes, or a stream of them."""

    body: bytes | AsyncIterator[bytes]
    media_type: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])


def json_reply(fields: JSONObject, status: int = 200) -> Reply:
    """A reply with a JSON object."""
    return Reply(json.dumps(fields).encode(), "application/json", status)


async def about(studio: Studio, _request: "Request") -> Reply:
    """Version, limits, models, formats and examples."""
    formats = [
        {"name": name, "bits": can.bits, "alpha": can.alpha, "lossless": can.lossless}
        for name, can in CAPABILITIES.items()
        if _has_codec(name)
    ]
    reads = {
        "formats": [name for name in READ_FORMATS if _has_codec(name)],
        "suffixes": [suffix for suffix, name in READ_SUFFIXES.items() if _has_codec(name)],
    }
    return json_reply(
        {
            "version": __version__,
            "limits": {"bytes": studio.limits.bytes, "pixels": studio.limits.pixels},
            "models": studio.gallery.models.names,
            "cleanable": studio.gallery.models.cleanable,
            "formats": formats,
            "reads": reads,
            "examples": list(studio.examples),
            "threads": studio.threads,
            "zoom": LARGEST_ZOOM,
        }
    )


def _has_codec(name: Format) -> bool:
    """Whether a format can be read and written: some need packages that are optional."""
    return name not in EXTRAS or find_spec(EXTRAS[name][0]) is not None


async def example(studio: Studio, request: "Request") -> Reply:
    """One of the pictures that come with the package."""
    path = studio.examples.get(request.path_params["name"])
    if path is None:
        raise GoneError("there is no such example")
    return Reply(path.read_bytes(), mimetypes.guess_type(path)[0] or "image/png")


async def upload(studio: Studio, request: "Request") -> Reply:
    """Open the picture in the form field `file`; the reply has its id and properties."""
    length = declared_length(request, studio.limits.bytes + MAX_FORM_OVERHEAD_BYTES)
    with studio.hold(2 * length, "the file"):  # the form's copy and ours
        name, data = await read_file(request, studio.limits.bytes)
        job = studio.open(data, name)
        del data
        opened = studio.gallery.opened(await finish(request, job))
    (width, height), picture = opened.size, opened.picture
    source = {"id": opened.id, "name": name, "width": width, "height": height}
    samples = {"bits": picture.bits, "format": picture.format, "alpha": picture.alpha is not None}
    found = picture.compression
    suited = {} if found is None else {"compression": str(found), "clean": choose_strength(found)}
    return json_reply(source | samples | suited, 201)


async def state(studio: Studio, request: "Request") -> Reply:
    """How far the kernel integral of ?model=… has settled; every question lets it settle a little more."""
    model = request.query_params.get("model", "")
    await finish(request, studio.load(model))
    return json_reply(studio.state(request.path_params["id"], model))


async def tile(studio: Studio, request: "Request") -> Reply:
    """A tile as PNG: ?source=light&level=4096,3072&rect=left,top,width,height&version=2, and &window=… around it.

    With &replaces=1 the client has an earlier version of it.
    """
    wanted, replaces = _tile(request), request.query_params.get("replaces") == "1"
    around = _tile(request, "window") if "window" in request.query_params else None
    await finish(request, studio.load(wanted.source))
    job = studio.tile(request.path_params["id"], wanted, around, replaces=replaces)
    return Reply(await finish(request, job), "image/png")


async def inside(studio: Studio, request: "Request") -> Reply:
    """Maps of what a model computes on its way to a window, with the parameters of a tile."""
    wanted = _tile(request)
    await finish(request, studio.load(wanted.source))
    return json_reply(await finish(request, studio.inside(request.path_params["id"], wanted)))


def _tile(request: "Request", place: str = "rect") -> Tile:
    width, height = read_numbers(request, "level", 2)
    left, top, columns, rows = read_numbers(request, place, 4)
    version = read_numbers(request, "version", 1)[0] if "version" in request.query_params else None
    source = request.query_params.get("source", BICUBIC)
    return Tile(source, (width, height), (left, top, columns, rows), version)


async def export(studio: Studio, request: "Request") -> Reply:
    """Start an export with the options in the JSON body; the reply has the id of its job."""
    fields = await read_json(request)
    await finish(request, studio.load(str(fields.get("model"))))
    return json_reply({"job": studio.files.export(request.path_params["id"], fields)}, 202)


async def estimate(studio: Studio, request: "Request") -> Reply:
    """Size, time and bytes of an export with the options in the JSON body."""
    fields = await read_json(request)
    await finish(request, studio.load(str(fields.get("model"))))
    return json_reply(await finish(request, studio.estimate(request.path_params["id"], fields)))


async def clip(studio: Studio, request: "Request") -> Reply:
    """Start a picture to share, with the options in the JSON body; the reply has the id of its job."""
    fields = await read_json(request)
    for side in ("model", "against"):
        if fields.get(side) is not None:
            await finish(request, studio.load(str(fields.get(side))))
    return json_reply({"job": studio.files.clip(request.path_params["id"], fields)}, 202)


async def job(studio: Studio, request: "Request") -> Reply:
    """Progress of a job, or the address of the file that it has made."""

    def describe(name: str) -> State:
        done = studio.files.finished(name)
        file = {"file": f"/api/exports/{name}", "name": done.name, "bytes": len(done.data)}
        return file | {"width": done.size[0], "height": done.size[1], "notes": done.notes}

    found = studio.files.jobs.state(request.path_params["name"], describe)
    if found is None:
        raise GoneError("there is no such job")
    return json_reply(found)


async def stop(studio: Studio, request: "Request") -> Reply:
    """Stop a job."""
    studio.files.jobs.stop(request.path_params["name"])
    return json_reply({})


async def exported(studio: Studio, request: "Request") -> Reply:
    """A finished file, as a download."""
    done = studio.files.finished(request.path_params["name"])
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(done.name)}",
        "content-length": str(len(done.data)),
    }
    return Reply(_pieces(done.data), "application/octet-stream", headers=headers)


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    """Send a large file in pieces, so that it is not copied as a whole."""
    for start in range(0, len(data), PIECE_BYTES):
        yield data[start : start + PIECE_BYTES]
