"""Pictures come in, and what is no picture does not."""

import io

import numpy as np
import pytest
from PIL import Image
from serving import bomb, deep, lines, picture, tile_pixels, upload


def test_facts_of_a_picture(client):
    facts = upload(client, picture(40, 30), "C:\\holiday\\hills.png")
    assert len(facts.pop("id")) >= 22  # 128 bits
    assert facts == {"name": "hills.png", "width": 40, "height": 30, "bits": 8, "format": "PNG", "alpha": False}


def test_ids_cannot_be_guessed_from_each_other(client):
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
        assert np.abs(shown.astype(int) - expected).max() <= 1  # decoders of JPEG differ by one


BAD = {
    "empty": (b"", "empty"),
    "text": (b"I am a picture, honestly.\n" * 9, "not a picture"),
    "truncated PNG": (picture(64, 64)[:-900], "damaged or cut short"),
    "truncated JPEG": (picture(64, 64, kind="JPEG")[:700], "damaged or cut short"),
    "bomb": (bomb(60_000, 60_000), "60000×60000"),
    "many pixels": (picture(400, 251, "L"), "megapixels"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_upload_gives_one_clear_line(client, kind):
    data, words = BAD[kind]
    answer = client.post("/api/images", files={"file": ("holiday.png", data)})
    assert answer.status_code == 400
    message = answer.json()["error"]
    assert message.startswith("holiday.png: ")
    assert words in message
    assert "\n" not in message


def test_too_many_bytes_are_refused(client, studio):
    data = b"\0" * (studio.limits.bytes + 1)
    answer = client.post("/api/images", files={"file": ("large.png", data)})
    assert answer.status_code == 413
    assert "0.2 MB" in answer.json()["error"]


def test_too_many_bytes_are_refused_even_if_nobody_counted_them_first(client, studio):
    def body():
        yield b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
        for _ in range(studio.limits.bytes // 1000 + 20):
            yield b"\0" * 1000

    answer = client.post("/api/images", content=body(), headers={"content-type": "multipart/form-data; boundary=x"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "request_of",
    [
        {"files": {"picture": ("a.png", picture(8, 8))}},
        {"data": {"file": "a.png"}},
        {"content": picture(8, 8), "headers": {"content-type": "image/png"}},
        {"content": b"nonsense", "headers": {"content-type": "multipart/form-data; boundary=x"}},
        {"content": b"nonsense", "headers": {"content-type": "multipart/form-data"}},
    ],
    ids=["other field", "no file", "no form", "broken form", "no boundary"],
)
def test_a_form_without_a_file_is_told_what_is_missing(client, request_of):
    answer = client.post("/api/images", **request_of)
    assert answer.status_code == 400
    assert "form" in answer.json()["error"]


def test_examples_are_pictures_that_can_be_opened(client, example):
    names = client.get("/api/about").json()["examples"]
    assert names == [example.name]
    data = client.get(f"/api/examples/{names[0]}").content
    assert upload(client, data)["width"] == 48
    assert client.get("/api/examples/..%2Frough.safetensors").status_code == 404


def test_the_page_learns_the_limits_before_anything_is_uploaded(client, studio):
    about = client.get("/api/about").json()
    assert about["limits"] == {"bytes": studio.limits.bytes, "pixels": studio.limits.pixels}
    assert about["models"] == ["rough", "plain"]


def test_pictures_that_were_used_least_recently_make_room(models):
    from starlette.testclient import TestClient

    from srno.server.app import make_app
    from srno.server.guard import names_for
    from srno.server.studio import Studio

    studio = Studio(models, memory=3 * 7 * 40 * 30 + 3000, threads=1)
    client = TestClient(make_app(studio, names_for("127.0.0.1")), base_url="http://127.0.0.1")
    first, second, third = (upload(client, picture(40, 30, seed=i)) for i in range(3))
    assert client.get(f"/api/images/{first['id']}/tile?level=1,1&rect=0,0,1,1").status_code == 200
    upload(client, picture(40, 30, seed=3))
    gone = [client.get(f"/api/images/{one['id']}/tile?level=1,1&rect=0,0,1,1") for one in (first, second, third)]
    assert [answer.status_code for answer in gone] == [200, 404, 200]
    assert "open it again" in gone[1].json()["error"]
    lifting = lines(client.post(f"/api/images/{first['id']}/lift?model=rough"))
    assert "--memory" in lifting[-1]["error"]
