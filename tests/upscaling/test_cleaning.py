"""`clean`: weights between `light` and `photo`, chosen by hand or from the file."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import srno
from commands.upscale_runs import call
from srno.checkpoints.catalogue import CLEANING_WEIGHTS, choose_strength, find, read_checkpoint, read_cleaning
from srno.errors import SRNOError
from srno.imaging.picture import Compression
from srno.imaging.windows import inspect
from srno.upscaling.upscaler import Upscaler

CODECS = ("jpeg", "webp", "avif", "heif")


def photo(side: int = 24) -> Image.Image:
    rng = np.random.default_rng(0)
    return Image.fromarray(rng.integers(0, 256, (side // 4, side // 4, 3), np.uint8)).resize((side, side))


def jpeg(quality: int) -> bytes:
    stream = io.BytesIO()
    photo().save(stream, "JPEG", quality=quality)
    return stream.getvalue()


@pytest.mark.parametrize("codec", CODECS)
def test_the_strength_falls_as_the_quality_rises(codec: str):
    levels = np.linspace(1, 100, 200) if codec == "jpeg" else np.geomspace(0.01, 24, 200)
    strengths = [choose_strength(Compression(codec, float(level))) for level in levels]  # pyright: ignore[reportArgumentType]
    assert strengths == sorted(strengths, reverse=True)
    assert 0 <= strengths[-1] < 0.2
    assert 0.5 < strengths[0] <= 1


@pytest.mark.parametrize("model", CLEANING_WEIGHTS)
def test_weights_between_are_linear_and_the_ends_are_the_shipped_ones(model: str):
    light, photo_weights = (read_checkpoint(find(name)).state for name in (model, CLEANING_WEIGHTS[model]))
    assert light.keys() == photo_weights.keys()
    for clean in (0.0, 0.25, 1.0):
        mixed = read_cleaning(model, clean).state
        for name, tensor in mixed.items():
            expected = light[name] * (1 - clean) + photo_weights[name] * clean
            torch.testing.assert_close(tensor, expected, rtol=1e-5, atol=1e-6)


def test_auto_depends_on_the_file():
    upscaler = Upscaler()
    assert upscaler.for_picture(None) is upscaler
    assert upscaler.for_picture(Compression("jpeg", 100)).strength == 0
    strong = upscaler.for_picture(Compression("jpeg", 30))
    assert strong.strength == choose_strength(Compression("jpeg", 30)) > 0.5
    assert upscaler.for_picture(Compression("jpeg", 30)) is strong  # its model is mixed once


def test_a_number_overrides_the_file():
    assert Upscaler(clean=0).for_picture(Compression("jpeg", 30)).strength == 0
    assert Upscaler(clean="0.5").for_picture(None).strength == 0.5


def test_other_models_are_not_cleaned_by_auto_and_refuse_a_number():
    assert Upscaler(model="wide").for_picture(Compression("jpeg", 30)).strength == 0
    with pytest.raises(SRNOError, match=r"clean 0\.5: wide\.safetensors has no weights .* choose the model light"):
        _ = Upscaler(model="wide", clean=0.5).operator
    loaded = srno.load("default")
    assert Upscaler(model=loaded).for_picture(Compression("jpeg", 30)).strength == 0
    with pytest.raises(SRNOError, match="the model is loaded already"):
        _ = Upscaler(model=loaded, clean=0.5).operator


@pytest.mark.parametrize("wrong", ["strong", -0.1, 1.5, True, float("nan"), None])
def test_a_wrong_strength_is_refused_by_name(wrong: object):
    with pytest.raises(SRNOError, match="clean "):
        srno.upscale(photo(), clean=wrong)  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_bytes_paths_and_pil_images_of_a_jpeg_are_cleaned_alike_and_arrays_are_not(tmp_path: Path):
    data = jpeg(30)
    (tmp_path / "a.jpg").write_bytes(data)
    results = [np.asarray(srno.upscale(given)) for given in (data, tmp_path / "a.jpg", Image.open(io.BytesIO(data)))]
    assert (results[0] == results[1]).all()
    assert np.abs(results[0].astype(int) - results[2]).max() <= 2  # Pillow and libvips decode slightly differently
    strength = choose_strength(Compression("jpeg", 30))
    samples = np.asarray(Image.open(io.BytesIO(data)))
    assert (srno.upscale(samples, clean=strength) == results[2]).all()
    assert (srno.upscale(samples) == srno.upscale(samples, clean=0)).all()
    assert (srno.upscale(samples) != results[2]).any()


def test_windows_of_a_file_have_its_compression(tmp_path: Path):
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg(60))
    found = inspect(path).like.compression
    assert found is not None
    assert found.level == pytest.approx(60, abs=0.6)


def test_the_command_reports_what_it_chose(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "a.jpg").write_bytes(jpeg(30))
    photo().save(tmp_path / "b.png")
    code, out, _ = call(capsys, tmp_path, "--json")
    assert code == 0
    first, second = (json.loads(line) for line in out.splitlines())
    assert first["clean"] == choose_strength(Compression("jpeg", 30))
    assert first["compression"] == "JPEG of quality 30"
    assert second["clean"] == 0
    assert "compression" not in second
    _, _, err = call(capsys, tmp_path / "a.jpg", "-v", "--overwrite")
    assert f"clean {first['clean']:g} for JPEG of quality 30" in " ".join(err.split())
    code, _, err = call(capsys, tmp_path / "a.jpg", "--clean", "2")
    assert code == 2
    assert "clean '2': choose auto or a number from 0 to 1" in err


def test_a_picture_made_tile_by_tile_is_cleaned_as_one_in_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "a.jpg").write_bytes(jpeg(30))
    whole, tiled = tmp_path / "whole.tif", tmp_path / "tiled.tif"
    assert call(capsys, tmp_path / "a.jpg", "-o", whole)[0] == 0
    code, out, _ = call(capsys, tmp_path / "a.jpg", "-o", tiled, "--compression", "none", "--json")
    assert code == 0
    assert json.loads(out)["clean"] == choose_strength(Compression("jpeg", 30))
    one, other = (np.asarray(Image.open(path)).astype(int) for path in (whole, tiled))
    assert np.abs(one - other).max() <= 1


def test_evaluation_cleans_by_the_jpeg_quality_of_the_protocol(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from commands.scoring import make_set, run_json

    pictures = make_set(tmp_path / "set", (48, 56))
    strength = choose_strength(Compression("jpeg", 40))
    arguments = ("evaluate", "light", "--data", pictures, "--scales", "2", "--jpeg", "40", "--no-cache")
    auto, fixed, off = (
        run_json(capsys, *arguments, "--clean", clean)["mean"]["2"]["psnr"] for clean in ("auto", f"{strength:g}", "0")
    )
    assert auto == fixed != off
