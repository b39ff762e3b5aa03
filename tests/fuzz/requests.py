"""Requests to the web page: valid ones to start from, others from a grammar, and a server that answers them."""

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from server.serving import PORT, picture
from srno.errors import SRNOError

BOUNDARY = b"edge"
OPEN_PIXELS = 40_000
ROUTES = (
    ("GET", "/api/about"), ("GET", "/api/examples/NAME"), ("POST", "/api/images"), ("GET", "/api/images/ID/state"),
    ("GET", "/api/images/ID/tile"), ("GET", "/api/images/ID/inside"), ("POST", "/api/images/ID/exports"),
    ("POST", "/api/images/ID/exports/estimate"), ("POST", "/api/images/ID/clips"), ("GET", "/api/jobs/NAME"),
    ("DELETE", "/api/jobs/NAME"), ("GET", "/api/exports/NAME"), ("GET", "/static/NAME"), ("GET", "/"),
)  # fmt: skip
FIELDS = (
    "model", "scale", "size", "width", "height", "fit", "format", "depth", "quality", "part", "ensemble", "metadata",
    "kind", "against", "box", "labels",
)  # fmt: skip
VALUES = (
    "tiny", "bicubic", "nearest", "2", "2x3", "30x20", "cover", "contain", "PNG", "JPEG", "GIF", "AVIF", "8", "16",
    "pair", "gif", "webp", "", "\0", "é", "NaN", "1e999", "-1", "9" * 30, 0, 1, -1, 24, 20, 2.5, 1e9, 2**40, True,
    False, None, [0, 0, 12, 10], [1, 1, 1, 1], [0.5, 0, 3, 4], ["a"], [], {}, [2**70, 0, 1, 1],
)  # fmt: skip
QUERIES = (
    "source=tiny", "source=bicubic", "source=nearest", "model=tiny", "level=24,20", "level=9,999999999", "level=12,10",
    "rect=0,0,24,20", "rect=0,0,1,1", "rect=5,5,0,0", "rect=23,19,64,64", "version=0", "version=999999999", "%00", "a",
)  # fmt: skip


@cache
def _client() -> Any:
    from starlette.testclient import TestClient

    from srno.server.app import make_app
    from srno.server.guard import allowed_hosts
    from srno.server.studio import Limits, Studio
    from tiny_models import write_tiny

    model = write_tiny(Path("served.safetensors"))
    limits = Limits(bytes=100_000, pixels=OPEN_PIXELS)
    studio = Studio({"tiny": model}, examples={}, memory=200_000_000, limits=limits, threads=1)
    client = TestClient(make_app(studio, allowed_hosts("127.0.0.1")), base_url=f"http://127.0.0.1:{PORT}")
    client.__enter__()  # one event loop for all requests
    return client


@cache
def _opened() -> str:
    """The id of a picture that is open."""
    answer = _client().post("/api/images", files={"file": ("a.png", picture(12, 10))})
    return answer.json()["id"]


def request_page(data: bytes) -> None:
    """Send the method, path, query, content type and body in the lines of an input; the server must not fail."""
    client = _client()
    method, path, query, kind, body = (*data.split(b"\n", 4), b"", b"", b"", b"", b"")[:5]
    verb = method.decode("latin-1").strip() or "GET"
    if not verb.isalpha() or not verb.isascii():
        verb = "GET"
    place = path.decode("latin-1")
    if "ID" in place:
        place = place.replace("ID", _opened())
    try:
        url = client.base_url.copy_with(raw_path=("/" + place.lstrip("/") + "?" + query.decode("latin-1")).encode())
        request = client.build_request(verb, url, content=body, headers={"content-type": kind.decode("latin-1")})
    except Exception:  # the client refuses what is not HTTP
        raise SRNOError("not a request") from None
    answer = client.send(request)
    assert answer.status_code < 500 or answer.status_code == 503, f"status {answer.status_code}"
    if answer.status_code == 202:
        _check_end(client, answer.json()["job"])
    if answer.status_code == 404:
        _opened.cache_clear()  # uploads have closed it
    if answer.status_code >= 400:
        raise SRNOError("refused")


def _check_end(client: Any, job: str) -> None:
    """Wait for a job for a second, then stop it; it must not fail for a reason that nobody thought of."""
    for turn in range(1000):
        state = client.get(f"/api/jobs/{job}").json()
        if "done" in state or "error" in state:
            assert "internal" not in state.get("error", ""), "a job failed"
            return
        if turn == 50:
            client.delete(f"/api/jobs/{job}")
        time.sleep(0.02)
    raise AssertionError("a job does not stop")


def _lines(method: str, path: str, query: str = "", body: bytes = b"", kind: str = "application/json") -> bytes:
    return "\n".join((method, path, query, kind, "")).encode() + body


def _form(file: bytes) -> bytes:
    head = b'--%s\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n' % BOUNDARY
    return head + file + b"\r\n--%s--\r\n" % BOUNDARY


def requests() -> list[bytes]:
    """One valid request to every route that takes anything."""
    size = b'"width": 24, "height": 20'
    form = f"multipart/form-data; boundary={BOUNDARY.decode()}"
    tile = "source=tiny&level=24,20&rect=0,0,24,20"
    return [
        _lines("GET", "/api/images/ID/tile", tile),
        _lines("GET", "/api/images/ID/tile", tile + "&version=0"),
        _lines("GET", "/api/images/ID/inside", tile),
        _lines("GET", "/api/images/ID/state", "model=tiny"),
        _lines("POST", "/api/images", body=_form(picture(5, 4)), kind=form),
        _lines("POST", "/api/images/ID/exports", body=b'{"model": "tiny", "scale": "2", "format": "png"}'),
        _lines("POST", "/api/images/ID/exports", body=b'{"model": "tiny", "scale": "3", "part": [1, 1, 5, 4]}'),
        _lines("POST", "/api/images/ID/exports/estimate", body=b'{"model": "tiny", "size": "24x20", "fit": "cover"}'),
        _lines(
            "POST", "/api/images/ID/clips", body=b'{"kind": "gif", "model": "tiny", "box": [0, 0, 8, 8], %s}' % size
        ),
        _lines("GET", "/api/jobs/1"),
        _lines("GET", "/static/../main.js"),
    ]


def make_request(rng: np.random.Generator) -> bytes:
    """A route with a query or body of known words and values, not necessarily in their places."""
    method, path = ROUTES[int(rng.integers(len(ROUTES)))]
    query = "&".join(QUERIES[int(i)] for i in rng.integers(len(QUERIES), size=int(rng.integers(5))))
    chosen = (FIELDS[int(i)] for i in rng.integers(len(FIELDS), size=int(rng.integers(8))))
    fields: dict[str, Any] = {"model": "tiny", "kind": "gif", "width": 24, "height": 20, "box": [0, 0, 9, 9]}
    fields = {name: value for name, value in fields.items() if rng.random() < 0.7}
    fields |= {name: VALUES[int(rng.integers(len(VALUES)))] for name in chosen}
    return _lines(method, path, query, json.dumps(fields).encode())
