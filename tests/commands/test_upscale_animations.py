"""srno upscale: animations and pages."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from upscale_runs import call, spawn

from imaging.making import encode, noise
from srno.imaging.frames import open_frames

Capture = pytest.CaptureFixture[str]
DURATIONS = [40, 80, 120]


@pytest.fixture
def here(here: Path) -> Path:
    """The current folder, with animations and pages of three frames."""
    for name in ("moving.gif", "moving.webp", "moving.png"):
        (here / name).write_bytes(animation(name))
    frames = [frame(number) for number in range(3)]
    frames[0].save(here / "pages.tif", save_all=True, append_images=frames[1:])
    return here


def frame(number: int) -> Image.Image:
    samples = np.full((12, 16, 3), 60, np.uint8)
    samples[3:7, 2 + 4 * number : 6 + 4 * number] = (250, 10, 10)
    return Image.fromarray(samples)


def animation(name: str) -> bytes:
    frames = [frame(number) for number in range(3)]
    kind = {".gif": "GIF", ".webp": "WEBP", ".png": "PNG"}[Path(name).suffix]
    options: dict[str, Any] = {"WEBP": {"lossless": True}}.get(kind, {})
    return encode(frames[0], kind, save_all=True, append_images=frames[1:], duration=DURATIONS, loop=0, **options)


def up(capsys: Capture, *tokens: str | Path) -> tuple[int, dict[str, Any]]:
    code, out, _ = call(capsys, "-m", "../tiny.safetensors", "--json", *tokens)
    return code, json.loads(out)


def check(path: Path, *, count: int = 3) -> None:
    """Three frames of twice the size; the square moves to the right."""
    with Image.open(path) as image:
        assert getattr(image, "n_frames", 1) == count
        for number in range(count):
            image.seek(number)
            samples = np.asarray(image.convert("RGB")).astype(int)
            assert samples.shape == (24, 32, 3)
            assert (samples[8:12, 6 + 8 * number : 10 + 8 * number] - (250, 10, 10)).max() <= 6
            assert np.abs(samples[18:] - 60).max() <= 6


@pytest.mark.parametrize("target", ["png", "webp", "gif"])
@pytest.mark.parametrize("source", ["moving.gif", "moving.webp", "moving.png"])
def test_all_frames_are_enlarged_with_their_durations(here: Path, capsys: Capture, source: str, target: str):
    code, outcome = up(capsys, source, "-o", f"out.{target}", "-q", "100")
    assert code == 0
    assert (outcome["frames"], outcome["output_size"], outcome["status"]) == (3, [32, 24], "written")
    check(here / f"out.{target}")
    opened = open_frames(here / f"out.{target}")
    assert opened is not None
    assert ([frame.duration for frame in opened], opened.plays) == (DURATIONS, 0)


def test_pages_of_a_tiff_are_all_written(here: Path, capsys: Capture):
    code, outcome = up(capsys, "pages.tif")
    assert (code, outcome["frames"], outcome["notes"]) == (0, 3, [])
    check(here / "pages_2x.tif")


@pytest.mark.parametrize(("source", "kept"), [("moving.gif", "gif"), ("moving.webp", "webp")])
def test_animations_keep_their_format_unless_one_is_given(here: Path, capsys: Capture, source: str, kept: str):
    code, outcome = up(capsys, source, "-q", "100")
    assert (code, outcome["output"], outcome["frames"]) == (0, f"moving_2x.{kept}", 3)
    check(here / f"moving_2x.{kept}")
    code, outcome = up(capsys, source, "-f", "png")
    assert (code, outcome["output"], outcome["frames"]) == (0, "moving_2x.png", 3)
    code, outcome = up(capsys, source, "--frames", "first", "--overwrite")
    assert (code, outcome["output"]) == (0, "moving_2x.png")  # one frame is a still picture


@pytest.mark.parametrize("source", ["moving.gif", "moving.webp", "moving.png", "pages.tif"])
def test_frames_first_gives_one_picture(here: Path, capsys: Capture, source: str):
    code, outcome = up(capsys, source, "--frames", "first", "-o", "out/")
    assert code == 0
    assert "frames" not in outcome
    assert outcome["notes"] == ["the first of 3 frames or pages; the others are left out"]
    (result,) = (here / "out").iterdir()
    check(result, count=1)


@pytest.mark.parametrize(("source", "target"), [("moving.gif", "jpg"), ("moving.png", "tif"), ("pages.tif", "gif")])
def test_a_format_without_frames_holds_the_first(here: Path, capsys: Capture, source: str, target: str):
    code, outcome = up(capsys, source, "-o", f"out.{target}")
    name = {"jpg": "JPEG", "tif": "TIFF", "gif": "GIF"}[target]
    assert code == 0
    assert f"the first of 3 frames or pages; the others are left out: {name} cannot hold them" in outcome["notes"]
    check(here / f"out.{target}", count=1)


@pytest.mark.parametrize("source", ["moving.png", "pages.tif"])
def test_the_same_size_gives_the_file_back(here: Path, capsys: Capture, source: str):
    assert up(capsys, source, "-s", "1", "-o", "out/")[0] == 0
    assert (here / "out" / source).read_bytes() == (here / source).read_bytes()
    assert up(capsys, source, "-s", "1", "-o", "first/", "--frames", "first")[0] == 0
    with Image.open(here / "first" / source) as image:
        assert getattr(image, "n_frames", 1) == 1


def test_a_damaged_animation_fails_and_leaves_no_file(here: Path, capsys: Capture):
    images = [Image.fromarray(noise(40, 40, 3, seed=seed)) for seed in range(4)]
    data = encode(images[0], "WEBP", save_all=True, append_images=images[1:])
    (here / "cut.png").write_bytes(encode(images[0], "PNG", save_all=True, append_images=images[1:])[:-3000])
    (here / "cut.webp").write_bytes(data[:-3000])
    for name in ("cut.png", "cut.webp"):
        code, outcome = up(capsys, name, "-o", "out/")
        assert (code, outcome["status"]) == (1, "failed")
        assert "damaged or cut short" in outcome["error"]
    assert list(here.glob("out/*")) == []


def test_an_animation_goes_through_standard_streams(here: Path):
    done = spawn("-", "-f", "gif", "-m", "../tiny.safetensors", input=animation("moving.gif"), cwd=here)
    assert done.returncode == 0
    with Image.open(io.BytesIO(done.stdout)) as image:
        assert (image.format, image.size, getattr(image, "n_frames", 1)) == ("GIF", (32, 24), 3)
