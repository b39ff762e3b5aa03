"""srno upscale: files of every format in one folder, read back by Pillow and pyvips."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image
from upscale_runs import BAD_FILES, GOOD_FILES, call, pillow, spawn

from imaging.making import noise, png
from srno.imaging.icc import space
from tiny_models import write_tiny


@dataclass(frozen=True)
class Run:
    folder: Path
    code: int
    lines: dict[str, dict[str, Any]]
    """The JSON objects by the name of the input."""
    errors: str


@pytest.fixture(scope="module")
def batch_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run over a folder of good and bad files."""
    folder = tmp_path_factory.mktemp("good")
    model = write_tiny(tmp_path_factory.mktemp("model") / "tiny.safetensors")
    for name, data in {
        **{name: good.data for name, good in GOOD_FILES.items()},
        **{n: d for n, (d, _) in BAD_FILES.items()},
    }.items():
        (folder / name).write_bytes(data)
    done = spawn(folder, "-s", "2", "-m", model, "--json", "--threads", "1")
    lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
    return Run(folder, done.returncode, {Path(line["input"]).name: line for line in lines}, done.stderr.decode())


def test_failed_files_do_not_stop_the_batch(batch_run: Run):
    assert batch_run.code == 1
    assert batch_run.lines.keys() == GOOD_FILES.keys() | BAD_FILES.keys()
    assert {name for name, line in batch_run.lines.items() if line["status"] == "failed"} == BAD_FILES.keys()
    assert {path.name for path in batch_run.folder.iterdir()} == (
        GOOD_FILES.keys() | BAD_FILES.keys() | {good.output for good in GOOD_FILES.values()}
    )


@pytest.mark.parametrize("name", BAD_FILES)
def test_each_failure_is_one_line(batch_run: Run, name: str):
    assert BAD_FILES[name][1] in batch_run.lines[name]["error"]
    about = [line for line in batch_run.errors.splitlines() if name in line]
    assert len(about) == 1
    assert about[0].startswith(f"srno: {batch_run.folder / name}: ")
    assert "Traceback" not in batch_run.errors


@pytest.mark.parametrize("name", GOOD_FILES)
def test_the_json_line_matches_the_result(batch_run: Run, name: str):
    line, good = batch_run.lines[name], GOOD_FILES[name]
    assert line["output"] == str(batch_run.folder / good.output)
    assert tuple(line["output_size"]) == good.size
    assert tuple(2 * side for side in line["input_size"]) == good.size
    assert line["scale"] == [2, 2]
    assert line["model"].endswith("tiny.safetensors")
    assert line["seconds"] > 0
    assert 50 < line["peak_mb"] < 20_000


@pytest.mark.parametrize("name", GOOD_FILES)
def test_pillow_reads_the_expected_result(batch_run: Run, name: str):
    good = GOOD_FILES[name]
    with Image.open(batch_run.folder / good.output) as image:
        assert image.size == good.size
        if good.bits == 8:
            shown = image.convert("RGB") if image.format == "GIF" else image
            assert shown.mode == {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[good.channels]
        elif good.channels == 1:
            assert image.mode == "I;16"
        _check_profile(image.info.get("icc_profile"), good.icc)
        exif = image.getexif()
        assert (exif.get(271) == "Canon") == good.exif
        assert exif.get(274, 1) == 1
        # TIFF's own directory states the true size under these tags.
        assert image.format == "TIFF" or not {256, 257, 40962, 40963} & (exif.keys() | exif.get_ifd(34665).keys())
        assert not exif.get_ifd(1)


@pytest.mark.parametrize("name", GOOD_FILES)
def test_pyvips_reads_the_expected_result(batch_run: Run, name: str):
    good = GOOD_FILES[name]
    image: Any = pyvips.Image.new_from_buffer((batch_run.folder / good.output).read_bytes(), "")
    assert (image.width, image.height) == good.size
    assert (image.bands, image.format) == (good.channels, "ushort" if good.bits == 16 else "uchar")
    gray = "b-w" if good.bits == 8 else "grey16"
    assert image.interpretation == (gray if good.channels < 3 else "srgb" if good.bits == 8 else "rgb16")
    _check_profile(image.get("icc-profile-data") if image.get_typeof("icc-profile-data") else None, good.icc)
    assert not image.get_typeof("orientation") or image.get("orientation") == 1


def _check_profile(found: bytes | None, expected: bytes | None) -> None:
    if expected == b"sRGB":  # CMYK is converted to it
        assert space(found) == "RGB"
    else:
        assert found == expected


def test_sixteen_bit_results_have_more_levels_than_8_bits(batch_run: Run):
    image: Any = pyvips.Image.new_from_buffer((batch_run.folder / "deep-rgba_2x.png").read_bytes(), "")
    samples = image.numpy()
    assert len(np.unique(samples[..., 0])) > 600
    assert samples[..., 0].min() >= 20_000
    assert samples[..., 0].max() <= 24_000
    steps = np.abs(np.diff(samples[0, 2:-2, 0].astype(int)))
    assert steps.max() <= 8


def test_the_picture_is_upright_and_the_first_frame(batch_run: Run):
    turned = np.asarray(pillow((batch_run.folder / "turned_2x.JPEG").read_bytes())).astype(int)
    # In the file, red increases to the right and green downwards; upright, red increases downwards.
    assert turned[-1, :, 0].mean() - turned[0, :, 0].mean() > 200
    assert turned[:, 0, 1].mean() - turned[:, -1, 1].mean() > 200
    first = np.asarray(pillow((batch_run.folder / "animation_2x.gif").read_bytes()).convert("RGB"))
    assert first.max() > 200


def test_gray_stays_gray_with_a_model_that_adds_colour(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model = write_tiny(tmp_path / "noisy.safetensors", strength=0.3)
    (tmp_path / "gray.png").write_bytes(png(noise(9, 14, 1)))
    assert call(capsys, tmp_path / "gray.png", "-m", model)[0] == 0
    assert pillow((tmp_path / "gray_2x.png").read_bytes()).mode == "L"


@pytest.fixture
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "tiny.safetensors")


def test_depth_format_and_quality_are_as_requested(tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str]):
    source = tmp_path / "in.png"
    source.write_bytes(png(noise(20, 30, 3)))
    assert call(capsys, source, "-m", tiny, "--bit-depth", "16", "-o", tmp_path / "deep.tif")[0] == 0
    deep: Any = pyvips.Image.new_from_file(str(tmp_path / "deep.tif"))
    assert deep.format == "ushort"
    assert len(np.unique(deep.numpy())) > 256
    for quality in ("30", "95"):
        assert call(capsys, source, "-m", tiny, "-f", "webp", "-q", quality, "-o", tmp_path / quality)[0] == 0
    assert (tmp_path / "30/in.webp").stat().st_size < (tmp_path / "95/in.webp").stat().st_size
    (tmp_path / "deep-in.png").write_bytes(png(noise(9, 9, 3, bits=16)))
    assert call(capsys, tmp_path / "deep-in.png", "-m", tiny, "--bit-depth", "8")[0] == 0
    assert pyvips.Image.new_from_file(str(tmp_path / "deep-in_2x.png")).format == "uchar"  # type: ignore[attr-defined]


def test_losses_are_reported(tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "in.png").write_bytes(png(noise(9, 9, 4, bits=16)))
    code, out, err = call(capsys, tmp_path / "in.png", "-m", tiny, "-f", "jpeg")
    assert (code, out) == (0, "")
    assert "flattened onto white" in err
    assert "rounded to 8 bits" in err
    code, _, err = call(capsys, tmp_path / "in.png", "-m", tiny, "-s", "0.5")
    assert code == 0
    assert "reduced by a bicubic filter: the model only enlarges" in err


def test_metadata_can_be_dropped(tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str]):
    source = tmp_path / "turned.jpg"
    source.write_bytes(GOOD_FILES["turned.JPEG"].data)
    assert call(capsys, source, "-m", tiny, "--no-metadata")[0] == 0
    with Image.open(tmp_path / "turned_2x.jpg") as image:
        assert image.size == (18, 28)
        assert "icc_profile" not in image.info
        assert not image.getexif()


@pytest.mark.parametrize(
    ("tokens", "size"),
    [
        (["-s", "3.7"], (52, 33)),
        (["-s", "2x3"], (28, 27)),
        (["--size", "40x40"], (40, 26)),
        (["--size", "40x40", "--fit", "contain"], (40, 26)),
        (["--size", "40x40", "--fit", "cover"], (40, 40)),
        (["--size", "33x44", "--fit", "stretch"], (33, 44)),
        (["--width", "50"], (50, 32)),
        (["--height", "50"], (78, 50)),
        (["-s", "30"], (420, 270)),
        (["-s", "1"], (14, 9)),
        (["-s", "0.5"], (7, 5)),
        ([], (28, 18)),
    ],
)
def test_sizes_are_exact(
    tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str], tokens: list[str], size: tuple[int, int]
):
    (tmp_path / "in.png").write_bytes(png(noise(9, 14, 3)))
    assert call(capsys, tmp_path / "in.png", "-m", tiny, "-o", tmp_path / "out.png", *tokens)[0] == 0
    assert pillow((tmp_path / "out.png").read_bytes()).size == size


@pytest.mark.parametrize(
    ("suffix", "size", "limit"),
    [("jpg", "65501x1", "65,500"), ("webp", "1x16384", "16,383"), ("avif", "32769x1", "32,768")],
)
def test_format_limits_are_checked_before_rendering(
    tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str], suffix: str, size: str, limit: str
):
    (tmp_path / "in.png").write_bytes(png(noise(1, 1, 3)))
    code, _, err = call(capsys, tmp_path / "in.png", "-m", tiny, "--size", size, "--fit", "stretch", "-f", suffix, "-v")
    assert code == 1
    assert limit in err
    assert "PNG" in err
    assert "→" not in err  # which is printed when a picture starts
    assert {path.name for path in tmp_path.iterdir()} == {"in.png"}


def test_a_result_larger_than_memory_is_refused(tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "in.png").write_bytes(png(noise(1, 1, 3)))
    code, _, err = call(capsys, tmp_path / "in.png", "-m", tiny, "-s", "100000")
    assert code == 1
    assert "GB of memory" in err
