"""Exports equal the files that `srno upscale` writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving import P3, deep, finished, picture, pixels, tile_pixels, upload

from srno.cli import main
from srno.imaging.read import read


def export(client: Any, opened: dict[str, Any], **options: Any) -> tuple[dict[str, Any], bytes]:
    result = finished(client, client.post(f"/api/images/{opened['id']}/exports", json={"model": "rough", **options}))
    assert result.get("done"), result
    return result, client.get(result["file"]).content


def upscaled(data: bytes, model: Path, folder: Path, *flags: str, suffix: str = ".png") -> bytes:
    """The file that the command line writes."""
    (folder / "hills.png").write_bytes(data)
    with pytest.raises(SystemExit, match="0"):
        main(["upscale", str(folder / "hills.png"), "-o", str(folder / f"out{suffix}"), "-m", str(model), *flags])
    return (folder / f"out{suffix}").read_bytes()


OPTIONS = {
    "scale": ({"scale": "3.7"}, ["-s", "3.7"]),
    "two factors": ({"scale": "2x3"}, ["-s", "2x3"]),
    "width": ({"width": 101}, ["--width", "101"]),
    "cover": ({"size": "90x90", "fit": "cover"}, ["--size", "90x90", "--fit", "cover"]),
    "stretch": ({"size": "50x90", "fit": "stretch"}, ["--size", "50x90", "--fit", "stretch"]),
    "reduced": ({"scale": "0.5"}, ["-s", "0.5"]),
    "16 bits": ({"scale": "2", "depth": "16"}, ["-s", "2", "--bit-depth", "16"]),
    "ensemble": ({"scale": "2", "ensemble": True}, ["-s", "2", "-x"]),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("mode", ["RGB", "LA"])
def test_an_export_equals_the_file_of_srno_upscale(client, models, tmp_path, options, mode):
    data, (fields, flags) = picture(31, 21, mode), OPTIONS[options]
    _, file = export(client, upload(client, data), **fields)
    assert file == upscaled(data, models["rough"], tmp_path, *flags)


@pytest.mark.parametrize(("name", "suffix"), [("jpeg", ".jpg"), ("WEBP", ".webp"), ("TIFF", ".tif"), ("GIF", ".gif")])
def test_an_export_in_another_format_equals_the_file_of_srno_upscale(client, models, tmp_path, name, suffix):
    data = picture(20, 20)
    quality = {"quality": 80} if name in ("jpeg", "WEBP") else {}
    result, file = export(client, upload(client, data), scale=2, format=name, **quality)
    flags = ["-q", "80"] if quality else []
    expected = upscaled(data, models["rough"], tmp_path, *flags, suffix=suffix)
    assert np.array_equal(read(file).colour, read(expected).colour)
    assert (result["name"], result["width"], result["height"]) == (f"hills_2x{suffix}", 40, 40)
    assert result["bytes"] == len(file)


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("depth", ["8", "16"])
def test_a_part_equals_the_crop_of_the_whole_export(client, mode, depth):
    opened = upload(client, picture(40, 30, mode))
    _, whole = export(client, opened, scale=3, depth=depth)
    result, part = export(client, opened, scale=3, depth=depth, part=[7, 5, 31, 25])
    assert result["name"] == "hills_at_7_5_3x.png"
    seen, expected = read(part).colour, read(whole).colour[15:75, 21:93]
    assert seen.dtype.itemsize * 8 == int(depth)
    assert np.abs(seen.astype(int) - expected).max() <= (
        1 if depth == "8" else 40
    )  # of 65,535: products of half precision


def test_a_part_keeps_alpha_and_is_cropped_to_cover_a_size(client):
    opened = upload(client, picture(40, 30, "RGBA"))
    result, file = export(client, opened, size="60x60", fit="cover", part=[4, 6, 34, 26])
    shown = read(file)
    assert (result["width"], result["height"]) == shown.size == (60, 60)
    tile = tile_pixels(client, opened, "rough", (120, 90), (12 + 15, 18, 60, 60))
    assert np.abs(shown.samples().astype(int) - tile).max() <= 1


def test_16_bits_and_the_profile_are_kept_unless_dropped_by_an_option(client):
    samples = (np.arange(24 * 24 * 3, dtype=np.uint16) * 30).reshape(24, 24, 3)
    _, file = export(client, upload(client, deep(samples, icc=P3)), scale=2)
    kept = read(file)
    assert (kept.bits, kept.icc) == (16, P3)
    _, file = export(client, upload(client, deep(samples, icc=P3)), scale=2, metadata=False, depth="8")
    dropped = read(file)
    assert (dropped.bits, dropped.icc) == (8, None)


def test_the_tile_of_a_whole_level_equals_the_export(client):
    """The level is small enough for an exact integral in the view."""
    opened = upload(client, picture(31, 21))
    _, file = export(client, opened, scale=4)
    assert np.array_equal(tile_pixels(client, opened, "rough", (124, 84), (0, 0, 124, 84)), pixels(file))


def test_notes_report_a_lost_alpha_channel(client):
    result, _ = export(client, upload(client, picture(10, 10, "RGBA")), scale=2, format="JPEG")
    assert any("alpha" in note for note in result["notes"])


def test_the_file_is_a_download_with_its_name(client):
    opened = upload(client, picture(9, 9), "schöne Hügel.png")
    result, _ = export(client, opened, scale="1.5")
    assert result["name"] == "schöne Hügel_1.5x.png"
    headers = client.get(result["file"]).headers
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''sch%C3%B6ne%20H%C3%BCgel_1.5x.png"
    assert headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": "much"}, "scale 'much'"),
        ({"scale": 0}, "more than 0"),
        ({"scale": 2, "size": "10x10"}, "together"),
        ({"size": "10"}, "WIDTHxHEIGHT"),
        ({"width": "wide"}, "not a whole number"),
        ({"scale": 2, "format": "XCF"}, "PNG"),
        ({"scale": 2, "depth": "12"}, "keep, 8, 16"),
        ({"scale": 2, "format": "JPEG", "quality": 500}, "between 1 and 100"),
        ({"width": 20_000, "format": "WEBP"}, "these would work"),
        ({"scale": ["2"]}, "scale"),
        ({"scale": 2, "model": "other"}, "rough, plain"),
        ({"scale": "-1"}, "scale '-1'"),
        ({"scale": 4000}, "--memory allows 300 MB"),
        ({"scale": 2, "part": [0, 0, 9]}, "four whole numbers"),
        ({"scale": 2, "part": [0, 0, 9, 9.5]}, "four whole numbers"),
        ({"scale": 2, "part": [9, 0, 9, 9]}, "a part of the picture"),
        ({"scale": 0.5, "part": [0, 0, 9, 9]}, "at least 1"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_invalid_options_give_a_message(client, options, words):
    opened = upload(client, picture(20, 20))
    for path in ("exports", "exports/estimate"):
        answer = client.post(f"/api/images/{opened['id']}/{path}", json={"model": "rough", **options})
        assert answer.status_code == 400
        assert words in answer.json()["error"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"scale"', b"[" * 9_999, b'{"a":' * 1_999 + b"1", b"{" * 20_000])
def test_a_body_that_is_not_a_small_json_object_is_refused(client, body):
    opened = upload(client, picture(20, 20))
    answer = client.post(f"/api/images/{opened['id']}/exports", content=body)
    assert answer.status_code == (413 if len(body) > 10_000 else 400)


def test_an_estimate_has_the_size_and_about_the_bytes_of_the_file(client):
    opened = upload(client, picture(120, 90))
    for options in ({"scale": 3}, {"scale": 3, "format": "JPEG", "quality": 80}, {"width": 200, "depth": "16"}):
        fields = {"model": "plain", **options}
        guess = client.post(f"/api/images/{opened['id']}/exports/estimate", json=fields).json()
        result, file = export(client, opened, **fields)
        assert (guess["width"], guess["height"]) == (result["width"], result["height"])
        assert 0.5 < guess["bytes"] / len(file) < 2


def test_the_time_of_an_export_is_estimated_from_the_tiles_so_far(client):
    opened = upload(client, picture(60, 40))
    path, fields = f"/api/images/{opened['id']}/exports/estimate", {"model": "rough", "scale": 2}
    assert client.post(path, json=fields).json()["seconds"] is None
    tile_pixels(client, opened, "rough", (120, 80), (0, 0, 120, 80))
    seconds = client.post(path, json=fields).json()["seconds"]
    assert seconds > 0
    larger = client.post(path, json={**fields, "scale": 8}).json()["seconds"]
    assert larger > seconds
    assert client.post(path, json={**fields, "ensemble": True}).json()["seconds"] == pytest.approx(8 * seconds)


def test_a_job_can_be_stopped(client):
    opened = upload(client, picture(80, 60))
    started = client.post(f"/api/images/{opened['id']}/exports", json={"model": "rough", "scale": 40})
    assert client.delete(f"/api/jobs/{started.json()['job']}").status_code == 200
    assert finished(client, started) == {"error": "stopped"}


def test_an_unknown_job_is_not_found(client):
    assert client.get("/api/jobs/nothing").status_code == 404
    assert client.delete("/api/jobs/nothing").status_code == 200  # it does not run
