"""Test pictures, and the requests that the page sends."""

import io
import struct
import time
import zlib
from typing import Any

import numpy as np
import pyvips
from numpy.typing import NDArray
from PIL import Image

PORT = 7766
P3 = pyvips.Image.profile_load("p3")


def picture(width: int, height: int, mode: str = "RGB", kind: str = "PNG", seed: int = 0) -> bytes:
    """A smooth picture with some noise in it, as a file."""
    rng = np.random.default_rng(seed)
    channels = len(mode)
    coarse = rng.integers(0, 256, (6, 8, channels), dtype=np.uint8)
    bands = [Image.fromarray(coarse[..., i]).resize((width, height), Image.Resampling.BICUBIC) for i in range(channels)]
    samples = np.stack([np.asarray(band, np.int16) for band in bands], axis=-1)
    noisy = np.clip(samples + rng.integers(-20, 21, samples.shape), 0, 255).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noisy if channels > 1 else noisy[..., 0], mode).save(stream, kind)
    return stream.getvalue()


def deep(samples: NDArray[np.uint16], kind: str = ".png", icc: bytes | None = None) -> bytes:
    """A picture file with 16 bits per channel."""
    space = "grey16" if samples.ndim == 2 else "rgb16"
    image = pyvips.Image.new_from_array(samples, interpretation=space).copy()
    if icc is not None:
        image.set_type(pyvips.GValue.blob_type, "icc-profile-data", icc)  # pyright: ignore[reportArgumentType] (takes bytes)
    return image.write_to_buffer(kind)


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims to be large."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))


def upload(client: Any, data: bytes, name: str = "hills.png") -> dict[str, Any]:
    answer = client.post("/api/images", files={"file": (name, data)})
    assert answer.status_code == 201, answer.text
    return answer.json()


def finished(client: Any, started: Any) -> dict[str, Any]:
    """Ask about a job until it is done or has failed."""
    assert started.status_code == 202, started.text
    for _ in range(3000):
        state = client.get(f"/api/jobs/{started.json()['job']}").json()
        if "done" in state or "error" in state:
            return state
        time.sleep(0.02)
    raise AssertionError("the job does not end")


def tile(
    client: Any,
    opened: dict[str, Any],
    source: str,
    level: tuple[int, int],
    rect: tuple[int, ...],
    version: int | None = None,
) -> Any:
    numbers = {"level": ",".join(map(str, level)), "rect": ",".join(map(str, rect))}
    named = {} if version is None else {"version": version}
    return client.get(f"/api/images/{opened['id']}/tile", params={"source": source, **numbers, **named})


def pixels(data: bytes) -> NDArray[Any]:
    return np.asarray(Image.open(io.BytesIO(data)))


def tile_pixels(client: Any, opened: dict[str, Any], *which: Any) -> NDArray[Any]:
    """A tile as an array."""
    answer = tile(client, opened, *which)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/png"
    return pixels(answer.content)
