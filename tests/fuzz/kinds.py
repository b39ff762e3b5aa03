"""What is fuzzed: for each kind, valid files to start from, and what reads them as the program does."""

import io
import json
import os
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fuzz import grammar
from imaging.making import CMYK, P3, any_format, camera_exif, encode, gray_profile, noise, png, tiff
from srno.errors import SRNOError

MAX_PIXELS = 1_000_000
"""Larger pictures are refused, so that memory is a matter of the decoders and not of the sizes."""
MARKER = Path("executed")
"""A file that hostile checkpoints try to create."""


@dataclass(frozen=True)
class Kind:
    """Valid inputs, a function that makes others from a grammar, and the reader."""

    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes], None]
    make: Callable[[np.random.Generator], bytes] | None = None


def read_picture(data: bytes) -> None:
    """Read a file as `srno upscale` does: header, picture, frames; then write it with its metadata."""
    from srno.imaging.frames import open_frames
    from srno.imaging.head import read_head
    from srno.imaging.read import read
    from srno.imaging.write import write

    read_head(data)
    picture = read(data, max_pixels=MAX_PIXELS)
    if picture.size[0] * picture.size[1] <= 10_000:
        write(picture, io.BytesIO(), format="PNG")
        write(picture, io.BytesIO(), format="JPEG")
    frames = open_frames(data, max_pixels=MAX_PIXELS)
    for number, _ in enumerate(frames or ()):
        if number == 5:
            break


def _photo() -> Image.Image:
    y, x = np.mgrid[0:12, 0:16]
    return Image.fromarray(np.stack([x * 16, y * 20, 255 - x * 9], axis=-1).astype(np.uint8))


def _pictures(name: str) -> list[bytes]:
    """Small files of a format with what it can hold: alpha, 16 bits, frames, pages and metadata."""
    photo, frames = _photo(), [Image.fromarray(noise(8, 8, 3, seed=seed)) for seed in range(3)]
    animated = {"save_all": True, "append_images": frames[1:], "duration": 40}
    moving = encode(frames[0], name, **animated) if name in ("PNG", "WEBP", "GIF", "TIFF") else b""
    ink = photo.convert("CMYK")
    about: dict[str, Any] = {"exif": camera_exif(6), "icc_profile": P3}
    files: dict[str, Callable[[], list[bytes]]] = {
        "PNG": lambda: [png(noise(4, 5, 4, bits=16)), encode(photo, "PNG", **about), moving],
        "JPEG": lambda: [encode(photo, "JPEG", comment=b"text", **about), encode(ink, "JPEG", icc_profile=CMYK)],
        "WEBP": lambda: [encode(photo, "WEBP", **about), moving],
        "GIF": lambda: [encode(photo.quantize(8), "GIF"), moving],
        "TIFF": lambda: [
            tiff(noise(5, 6, 3, bits=16), photometric="rgb"),
            encode(photo, "TIFF", compression="tiff_lzw"),
            moving,
        ],
    }
    return files[name]() if name in files else [any_format(photo, name)]


def read_exif(data: bytes) -> None:
    """Parse an EXIF block, and the block that is left of it."""
    from srno.imaging import exif

    facts = exif.from_block(data)
    assert facts.orientation in range(1, 9)
    if facts.block is not None:
        exif.from_block(facts.block)


def read_icc(data: bytes) -> None:
    """Use a profile for gray, colour and ink."""
    from srno.imaging import icc

    for channels in (1, 3):
        samples = noise(3, 3, channels)
        icc.match_profile(samples, data)
        icc.to_srgb(samples, data)
        icc.is_srgb(data, channels)
    icc.cmyk_to_srgb(noise(3, 3, 4), data)


def read_xmp(data: bytes) -> None:
    """Clean a packet of XMP; the result must be stable."""
    from srno.imaging import xmp

    cleaned = xmp.clean(data)
    assert cleaned is None or xmp.clean(cleaned) == cleaned


def _exif_blocks() -> list[bytes]:
    return [camera_exif(6).tobytes(), camera_exif(3).tobytes().removeprefix(b"Exif\0\0")]


def _xmp_packets() -> list[bytes]:
    start = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    about = '<rdf:Description rdf:about="" xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6">'
    end = "<tiff:ImageWidth>12</tiff:ImageWidth></rdf:Description></rdf:RDF></x:xmpmeta>"
    return [(start + about + end).encode(), (start + "</rdf:RDF></x:xmpmeta>").encode("utf-16")]


def read_model(suffix: str, data: bytes) -> None:
    """Load a checkpoint from a file."""
    from srno.checkpoints.catalogue import load

    path = Path(f"model{suffix}")
    path.write_bytes(data)
    try:
        load(path)
    finally:
        path.unlink()


class Payload:
    """Creates a file when it is unpickled without care."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {MARKER}",)


def _native_models() -> list[bytes]:
    from tiny_models import write_tiny

    return [write_tiny(Path("tiny.safetensors")).read_bytes()]


def _public_models() -> list[bytes]:
    import torch

    from checkpoints.public_layout import public_content
    from small_models import CONFIGS, random_model

    valid = public_content(random_model(CONFIGS["edsr"], dtype=torch.float32))
    hostile = valid | {"optimizer": Payload()}
    out = [pickle.dumps(hostile), pickle.dumps(Payload())]
    for content in (valid, hostile):
        for zipped in (True, False):
            stream = io.BytesIO()
            torch.save(content, stream, _use_new_zipfile_serialization=zipped)
            out.append(stream.getvalue())
    return out


def read_run(data: bytes) -> None:
    """Read config, log and state of a run, all with this content."""
    from srno.training.run import Run

    folder = Path("run")
    (folder / "state").mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "log.jsonl", "state/000000001.pt"):
        (folder / name).write_bytes(data)
    run = Run(folder)
    for step in (run.config, run.read_log, run.load_state, lambda: run.finished(1)):
        try:
            step()
        except SRNOError:
            continue


def _run_files() -> list[bytes]:
    from srno.training.config import TrainConfig, to_json

    config = to_json(TrainConfig(data=(Path("pictures"),), steps=2, stages="8x2x16"))
    log = [{"event": "step", "step": 1, "loss": 0.5}, {"event": "resume", "step": 1}, {"event": "done", "step": 2}]
    return [
        config.encode(),
        "\n".join(map(json.dumps, log)).encode(),
        pickle.dumps({"step": 1}),
        pickle.dumps(Payload()),
    ]


@cache
def _client() -> Any:
    from starlette.testclient import TestClient

    from server.serving import PORT, picture
    from srno.server.app import make_app
    from srno.server.guard import allowed_hosts
    from srno.server.studio import Limits, Studio
    from tiny_models import write_tiny

    model = write_tiny(Path("served.safetensors"))
    limits = Limits(bytes=100_000, pixels=40_000)
    studio = Studio({"tiny": model}, examples={}, memory=200_000_000, limits=limits, threads=1)
    client = TestClient(make_app(studio, allowed_hosts("127.0.0.1")), base_url=f"http://127.0.0.1:{PORT}")
    answer = client.post("/api/images", files={"file": ("a.png", picture(12, 10))})
    return client, answer.json()["id"]


def request_page(data: bytes) -> None:
    """Send a request whose method, path, query and body are lines of the input; the server must not fail."""
    client, opened = _client()
    method, path, query, body = (*data.split(b"\n", 3), b"", b"", b"", b"")[:4]
    verb = method.decode("latin-1").strip() or "GET"
    if not verb.isalpha() or not verb.isascii():
        verb = "GET"
    place = path.decode("latin-1").replace("ID", opened)
    try:
        url = client.base_url.copy_with(raw_path=("/" + place.lstrip("/") + "?" + query.decode("latin-1")).encode())
        request = client.build_request(verb, url, content=body, headers={"content-type": "application/json"})
    except Exception:  # the client refuses what is not HTTP
        raise SRNOError("not a request") from None
    answer = client.send(request)
    assert answer.status_code < 500, f"status {answer.status_code}"


def _requests() -> list[bytes]:
    tile = b"GET\n/api/images/ID/tile\nsource=tiny&level=24,20&rect=0,0,24,20\n"
    export = b'POST\n/api/images/ID/export\n\n{"model": "tiny", "width": 24, "height": 20, "format": "png"}'
    return [tile, export, b"GET\n/api/jobs/1\n\n", b"POST\n/api/images\n\nxx", b"GET\n/static/../main.js\n\n"]


FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "AVIF", "JXL", "JP2", "PNM", "TGA", "ICO", "HEIF")
_GRAMMARS: Mapping[str, Callable[[np.random.Generator], bytes]] = {
    "PNG": grammar.png,
    "JPEG": grammar.jpeg,
    "WEBP": grammar.webp,
    "TIFF": grammar.tiff,
    "PNM": grammar.pnm,
    "HEIF": partial(grammar.boxes, b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
    "AVIF": partial(grammar.boxes, b"\0\0\0\x18ftypavif\0\0\0\0mif1avif"),
    "JP2": partial(grammar.boxes, b"\0\0\0\x0cjP  \r\n\x87\n"),
    "JXL": partial(grammar.boxes, b"\0\0\0\x0cJXL \r\n\x87\n"),
}

KINDS: Mapping[str, Kind] = {
    **{name.lower(): Kind(partial(_pictures, name), read_picture, _GRAMMARS.get(name)) for name in FORMATS},
    "exif": Kind(_exif_blocks, read_exif, grammar.tiff),
    "icc": Kind(lambda: [P3, CMYK, gray_profile(2.2)], read_icc),
    "xmp": Kind(_xmp_packets, read_xmp),
    "safetensors": Kind(_native_models, partial(read_model, ".safetensors")),
    "pth": Kind(_public_models, partial(read_model, ".pth")),
    "run": Kind(_run_files, read_run),
    "page": Kind(_requests, request_page),
}
