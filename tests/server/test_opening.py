"""Uploads: pictures of every kind are opened, other files are refused."""

import io

import numpy as np
import pytest
from PIL import Image
from serving import bomb, deep, picture, tile_pixels, upload

from srno.server.app import make_app
from srno.server.guard import allowed_hosts
from srno.server.studio import Limits, Studio


def test_an_upload_returns_the_properties_of_the_picture(client):
    properties = upload(client, picture(40, 30), "C:\\holiday\\hills.png")
    assert len(properties.pop("id")) >= 22  # 128 bits
    assert properties == {"name": "hills.png", "width": 40, "height": 30, "bits": 8, "format": "PNG", "alpha": False}


def test_ids_are_random(client):
    ids = {upload(client, picture(8, 8))["id"] for _ in range(20)}
    assert len(ids) == 20
    assert len({name[:4] for name in ids}) > 15


KINDS = {
    "gray": picture(20, 10, "L"),
    "gray with alpha": picture(20, 10, "LA"),
    "with alpha": picture(20, 10, "RGBA"),
    "JPEG": picture(20, 10, kind="JPEG"),
    "WebP": picture(20, 10, kind="WEBP"),
    "CMYK": picture(20, 10, "CMYK", "JPEG"),
    "16 bits": deep(np.arange(20 * 10 * 3, dtype=np.uint16).reshape(10, 20, 3) * 100),
    "TIFF of 16 bits": deep(np.arange(20 * 10, dtype=np.uint16).reshape(10, 20) * 100, ".tif"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_picture_is_shown_as_it_is(client, kind):
    opened = upload(client, KINDS[kind])
    assert (opened["width"], opened["height"]) == (20, 10)
    shown = tile_pixels(client, opened, "bicubic", (20, 10), (0, 0, 20, 10))
    assert shown.shape == (10, 20, 4 if opened["alpha"] else 3)
    if opened["bits"] == 8 and kind != "CMYK":
        expected = np.asarray(Image.open(io.BytesIO(KINDS[kind])).convert("RGBA" if opened["alpha"] else "RGB"))
        assert np.abs(shown.astype(int) - expected).max() <= 1  # JPEG decoders differ by one level


BAD_UPLOADS = {
    "empty": (b"", "empty"),
    "text": (b"some plain text\n" * 15, "not a picture"),
    "truncated PNG": (picture(64, 64)[:-900], "damaged or cut short"),
    "truncated JPEG": (picture(64, 64, kind="JPEG")[:700], "damaged or cut short"),
    "bomb": (bomb(60_000, 60_000), "60000×60000"),
    "many pixels": (picture(500, 401, "L"), "megapixels"),
}


@pytest.mark.parametrize("kind", BAD_UPLOADS)
def test_a_bad_upload_gives_a_message_of_one_line(client, kind):
    data, words = BAD_UPLOADS[kind]
    answer = client.post("/api/images", files={"file": ("holiday.png", data)})
    assert answer.status_code == 400
    message = answer.json()["error"]
    assert message.startswith("holiday.png: ")
    assert words in message
    assert "\n" not in message


def test_a_file_above_the_byte_limit_is_refused(client, studio):
    data = b"\0" * (studio.limits.bytes + 1)
    answer = client.post("/api/images", files={"file": ("large.png", data)})
    assert answer.status_code == 413
    assert "0.4 MB" in answer.json()["error"]


def test_a_file_above_the_byte_limit_is_refused_without_a_content_length(client, studio):
    def body():
        yield b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
        for _ in range(studio.limits.bytes // 1000 + 20):
            yield b"\0" * 1000

    answer = client.post("/api/images", content=body(), headers={"content-type": "multipart/form-data; boundary=x"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "request_arguments",
    [
        {"files": {"picture": ("a.png", picture(8, 8))}},
        {"data": {"file": "a.png"}},
        {"content": picture(8, 8), "headers": {"content-type": "image/png"}},
        {"content": b"nonsense", "headers": {"content-type": "multipart/form-data; boundary=x"}},
        {"content": b"nonsense", "headers": {"content-type": "multipart/form-data"}},
    ],
    ids=["other field", "no file", "no form", "broken form", "no boundary"],
)
def test_a_form_without_a_file_is_refused(client, request_arguments):
    answer = client.post("/api/images", **request_arguments)
    assert answer.status_code == 400
    assert "form" in answer.json()["error"]


def test_examples_can_be_fetched_and_opened(client, example):
    names = client.get("/api/about").json()["examples"]
    assert names == [example.name]
    data = client.get(f"/api/examples/{names[0]}").content
    assert upload(client, data)["width"] == 48
    assert client.get("/api/examples/..%2Frough.safetensors").status_code == 404


def test_about_lists_the_limits_and_the_models(client, studio):
    about = client.get("/api/about").json()
    assert about["limits"] == {"bytes": studio.limits.bytes, "pixels": studio.limits.pixels}
    assert about["models"] == ["rough", "plain"]


def limited_client(models, memory: int):
    testing = pytest.importorskip("starlette.testclient", reason="the server needs srno[serve]")
    studio = Studio(models, memory=memory, threads=1, limits=Limits(bytes=200_000, pixels=100_000))
    return testing.TestClient(make_app(studio, allowed_hosts("127.0.0.1")), base_url="http://127.0.0.1")


def test_the_least_recently_used_picture_is_removed_first(models):
    size = 300 * 300 * 3  # one picture; decoding takes 8 bytes per pixel, an upload twice its size
    client = limited_client(models, 5 * size)
    flat = [flat_picture(300, 300, level) for level in range(6)]
    first, second, third = (upload(client, data) for data in flat[:3])
    assert client.get(f"/api/images/{first['id']}/tile?level=1,1&rect=0,0,1,1").status_code == 200
    upload(client, flat[3])
    answers = [client.get(f"/api/images/{one['id']}/tile?level=1,1&rect=0,0,1,1") for one in (first, second, third)]
    assert answers[0].status_code == 200
    assert answers[1].status_code == 404
    assert "open it again" in answers[1].json()["error"]


def flat_picture(width: int, height: int, level: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (width, height), (level, 10, 20)).save(stream, "PNG")
    return stream.getvalue()


def test_a_picture_that_does_not_fit_into_the_memory_is_refused(models):
    client = limited_client(models, 300_000)
    answer = client.post("/api/images", files={"file": ("hills.png", flat_picture(300, 300, 1))})
    assert answer.status_code == 400
    assert "hills.png needs 720 kB of memory; --memory allows 300 kB" in answer.json()["error"]


def test_an_upload_counts_towards_the_memory(models):
    client = limited_client(models, 100_000)
    answer = client.post("/api/images", files={"file": ("hills.png", b"\0" * 60_000)})
    assert answer.status_code == 400
    assert "--memory allows 100 kB" in answer.json()["error"]
