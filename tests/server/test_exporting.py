"""Exports are what `srno upscale` writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving import P3, deep, lines, picture, pixels, tile_pixels, upload

from srno.cli import main
from srno.imaging.read import read


def export(client: Any, opened: dict[str, Any], **order: Any) -> tuple[dict[str, Any], bytes]:
    told = lines(client.post(f"/api/images/{opened['id']}/exports", json={"model": "rough", **order}))
    assert told[-1].get("done"), told[-1]
    return told[-1], client.get(told[-1]["file"]).content


def upscaled(data: bytes, model: Path, folder: Path, *flags: str, suffix: str = ".png") -> bytes:
    """The file that the command line writes."""
    (folder / "hills.png").write_bytes(data)
    with pytest.raises(SystemExit, match="0"):
        main(["upscale", str(folder / "hills.png"), "-o", str(folder / f"out{suffix}"), "-m", str(model), *flags])
    return (folder / f"out{suffix}").read_bytes()


ORDERS = {
    "scale": ({"scale": "3.7"}, ["-s", "3.7"]),
    "two factors": ({"scale": "2x3"}, ["-s", "2x3"]),
    "width": ({"width": 101}, ["--width", "101"]),
    "cover": ({"size": "90x90", "fit": "cover"}, ["--size", "90x90", "--fit", "cover"]),
    "stretch": ({"size": "50x90", "fit": "stretch"}, ["--size", "50x90", "--fit", "stretch"]),
    "reduced": ({"scale": "0.5"}, ["-s", "0.5"]),
    "16 bits": ({"scale": "2", "depth": "16"}, ["-s", "2", "--bit-depth", "16"]),
    "ensemble": ({"scale": "2", "ensemble": True}, ["-s", "2", "-x"]),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mode", ["RGB", "LA"])
def test_the_same_file_as_srno_upscale_writes(client, models, tmp_path, order, mode):
    data, (asked, flags) = picture(31, 21, mode), ORDERS[order]
    _, file = export(client, upload(client, data), **asked)
    assert file == upscaled(data, models["rough"], tmp_path, *flags)


@pytest.mark.parametrize(("name", "suffix"), [("jpeg", ".jpg"), ("WEBP", ".webp"), ("TIFF", ".tif"), ("GIF", ".gif")])
def test_the_same_in_other_formats(client, models, tmp_path, name, suffix):
    data = picture(20, 20)
    quality = {"quality": 80} if name in ("jpeg", "WEBP") else {}
    told, file = export(client, upload(client, data), scale=2, format=name, **quality)
    flags = ["-q", "80"] if quality else []
    expected = upscaled(data, models["rough"], tmp_path, *flags, suffix=suffix)
    assert np.array_equal(read(file).colour, read(expected).colour)
    assert (told["name"], told["width"], told["height"]) == (f"hills_2x{suffix}", 40, 40)
    assert told["bytes"] == len(file)


def test_16_bits_and_the_profile_stay(client):
    samples = (np.arange(24 * 24 * 3, dtype=np.uint16) * 30).reshape(24, 24, 3)
    _, file = export(client, upload(client, deep(samples, icc=P3)), scale=2)
    kept = read(file)
    assert (kept.bits, kept.icc) == (16, P3)
    _, file = export(client, upload(client, deep(samples, icc=P3)), scale=2, metadata=False, depth="8")
    dropped = read(file)
    assert (dropped.bits, dropped.icc) == (8, None)


def test_what_is_seen_is_what_is_exported(client):
    """At a size whose integral the view computes exactly."""
    opened = upload(client, picture(31, 21))
    lines(client.post(f"/api/images/{opened['id']}/lift?model=rough"))
    _, file = export(client, opened, scale=4)
    assert np.array_equal(tile_pixels(client, opened, "rough", (124, 84), (0, 0, 124, 84)), pixels(file))


def test_notes_tell_what_was_lost(client):
    told, _ = export(client, upload(client, picture(10, 10, "RGBA")), scale=2, format="JPEG")
    assert any("alpha" in note for note in told["notes"])


def test_the_file_is_offered_for_saving_under_its_name(client):
    opened = upload(client, picture(9, 9), "schöne Hügel.png")
    told, _ = export(client, opened, scale="1.5")
    assert told["name"] == "schöne Hügel_1.5x.png"
    headers = client.get(told["file"]).headers
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''sch%C3%B6ne%20H%C3%BCgel_1.5x.png"
    assert headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({"scale": "much"}, "scale 'much'"),
        ({"scale": 0}, "more than 0"),
        ({"scale": 2, "size": "10x10"}, "together"),
        ({"size": "10"}, "WIDTHxHEIGHT"),
        ({"width": "wide"}, "no whole number"),
        ({"scale": 2, "format": "XCF"}, "PNG"),
        ({"scale": 2, "depth": "12"}, "keep, 8, 16"),
        ({"scale": 2, "format": "JPEG", "quality": 500}, "between 1 and 100"),
        ({"width": 20_000, "format": "WEBP"}, "these would work"),
        ({"scale": ["2"]}, "scale"),
        ({"scale": 2, "model": "other"}, "rough, plain"),
        ({"scale": 4000}, "memory"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_done_is_told(client, order, words):
    opened = upload(client, picture(20, 20))
    answer = client.post(f"/api/images/{opened['id']}/exports", json={"model": "rough", **order})
    message = answer.json()["error"] if answer.status_code == 400 else lines(answer)[-1]["error"]
    assert words in message


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"scale"', b"{" * 20_000])
def test_an_order_is_a_small_json_object(client, body):
    opened = upload(client, picture(20, 20))
    answer = client.post(f"/api/images/{opened['id']}/exports", content=body)
    assert answer.status_code == (413 if len(body) > 10_000 else 400)
