"""`srno upscale` chooses tiles by itself, holds `--memory`, and refuses what cannot be written before work begins."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from giga_pictures import random_picture

from srno.cli import main
from srno.gigapixel.journal import Journal
from srno.imaging.picture import Picture, Samples
from srno.imaging.read import read
from srno.imaging.write import write
from srno.machine import parse_memory
from tiny_models import write_tiny


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    return str(write_tiny(tmp_path / "tiny.safetensors", strength=0.1))


def run(*arguments: object) -> int:
    """The exit code of `srno upscale`."""
    try:
        main(["upscale", *map(str, arguments)])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def store(path: Path, samples: Samples) -> None:
    """Write an array that does not name its axes."""
    array: Any = zarr.create_array(str(path), shape=samples.shape, dtype=samples.dtype)
    array[...] = samples


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak that Linux reports")
@pytest.mark.parametrize("flags", [[], ["--compression", "none"]])
def test_memory_holds_for_the_whole_process(tmp_path, tiny, flags):
    """25 megapixels, of which the floats alone have 300 MB; in memory, they and the program would take 800 MB."""
    write(random_picture((500, 500), bits=8), tmp_path / "in.tif", format="TIFF")
    script = Path(__file__).with_name("peak_of_a_run.py")
    output = tmp_path / "out.tif"
    arguments = ["upscale", tmp_path / "in.tif", "-m", tiny, "-s", "10", "-o", output, "--precision", "fp32"]
    command = [sys.executable, script, *arguments, "--memory", "600M", *flags, "--threads", "1"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=280, check=True)
    assert int(done.stdout.split()[-1]) <= parse_memory("600M")
    assert "tiles of" in done.stderr
    with tifffile.TiffFile(output) as file:
        assert file.pages[0].shape == (5000, 5000, 3)
        assert file.is_bigtiff


def test_a_tiff_that_fits_is_made_in_memory(tmp_path, tiny, capsys):
    write(random_picture((9, 9), bits=8), tmp_path / "in.tif", format="TIFF")
    assert run(tmp_path / "in.tif", "-m", tiny, "-o", tmp_path / "out.tif") == 0
    assert "tiles of" not in capsys.readouterr().err
    assert not tifffile.TiffFile(tmp_path / "out.tif").is_bigtiff


@pytest.mark.parametrize("name", ["out.tif", "out.ome.zarr", "out.dzi"])
def test_tiled_formats_are_written_by_their_suffix(tmp_path, tiny, capsys, name):
    write(random_picture((20, 10), bits=8), tmp_path / "in.png", format="PNG")
    flags = ["--pyramid"] if name == "out.tif" else []
    assert run(tmp_path / "in.png", "-m", tiny, "-o", tmp_path / name, *flags) == 0
    assert "1 tiles of" in capsys.readouterr().err
    assert (tmp_path / name).exists()
    assert run(tmp_path / "in.png", "-m", tiny, "-o", tmp_path / name, *flags) == 2
    assert "exists; choose --skip-existing or --overwrite" in capsys.readouterr().err
    assert run(tmp_path / "in.png", "-m", tiny, "-o", tmp_path / name, "--overwrite", *flags) == 0


@pytest.mark.parametrize("channels_first", [True, False])
@pytest.mark.parametrize("name", ["out.png", "out.tif", "out.dzi"])
def test_a_zarr_array_without_axis_names_is_read(tmp_path, tiny, name, channels_first):
    samples = random_picture((20, 10), bits=8).samples()
    stored = samples.transpose(2, 0, 1) if channels_first else samples
    store(tmp_path / "in.zarr", stored)
    write(Picture(colour=samples), tmp_path / "in.png", format="PNG")
    for source in ("in.zarr", "in.png"):
        assert run(tmp_path / source, "-m", tiny, "-s", "2", "-o", tmp_path / source[3:] / name) == 0
    if name == "out.dzi":
        assert (tmp_path / "zarr" / name).read_text() == (tmp_path / "png" / name).read_text()
        return
    one, other = (read(tmp_path / made / name).samples() for made in ("zarr", "png"))
    np.testing.assert_array_equal(one, other)


def test_an_array_that_is_not_a_picture_is_refused_with_its_shape(tmp_path, tiny, capsys):
    store(tmp_path / "in.zarr", np.zeros((5, 20, 10), np.uint8))
    assert run(tmp_path / "in.zarr", "-m", tiny, "-o", tmp_path / "out.png") == 1
    assert "in.zarr: an array of axes" in capsys.readouterr().err


def test_the_command_gives_the_picture_made_in_memory(tmp_path, tiny):
    write(random_picture((60, 40), bits=8), tmp_path / "in.png", format="PNG")
    common = [tmp_path / "in.png", "-m", tiny, "-s", "3.3", "--precision", "fp32"]
    assert run(*common, "-o", tmp_path / "memory.tif") == 0
    assert run(*common, "-o", tmp_path / "tiles.tif", "--compression", "deflate") == 0
    one, other = (read(tmp_path / name).samples().astype(int) for name in ("memory.tif", "tiles.tif"))
    assert np.abs(one - other).max() <= 1


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["-o", "out.png", "--pyramid"], "--pyramid: PNG is not written tile by tile; choose TIFF, OME-Zarr"),
        (["-o", "out.jpg", "--compression", "zstd"], "--compression: JPEG is not written tile by tile; choose TIFF"),
        (["-o", "out.png", "-s", "10000"], "GB are free; choose TIFF, OME-Zarr (.zarr) or Deep Zoom (.dzi)"),
        (["-o", "out.zarr", "--ensemble"], "--ensemble: not possible for a picture that is made tile by tile"),
        (["-o", "out.zarr", "--alpha", "bicubic"], "--alpha bicubic: not possible for a picture that is made tile"),
        (["-o", "out.dzi", "-s", "0.5"], "DZI tile by tile: pictures are only enlarged; choose a scale above 1"),
        (["-o", "out.tif", "--pyramid", "--memory", "30M"], "GB: the smallest tiles need"),
    ],
)
def test_impossible_requests_are_refused_before_any_work(tmp_path, tiny, capsys, monkeypatch, flags, reason):
    monkeypatch.chdir(tmp_path)
    write(random_picture((20, 10), bits=8), tmp_path / "in.png", format="PNG")
    assert run("in.png", "-m", tiny, *flags) == 1
    assert reason in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["in.png", "tiny.safetensors"]


def test_an_interrupt_says_that_the_picture_can_be_resumed(
    tmp_path: Path, tiny: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    write(random_picture((100, 120), 3), tmp_path / "in.tif", format="TIFF")
    command = [tmp_path / "in.tif", "-o", tmp_path / "out.tif", "-m", tiny, "-s", "3", "--compression", "deflate"]
    add = Journal.add

    def interrupt(self: Journal, kind: str, key: tuple[int, ...], content: bytes = b"") -> None:
        add(self, kind, key, content)
        if kind not in ("job", "side"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "add", interrupt)
        assert run(*command) == 130
    words = "srno: interrupted: what is done is kept; the same command with --resume continues\n"
    assert capsys.readouterr().err.endswith(words)
    assert run(*command, "--resume") == 0
    assert read(tmp_path / "out.tif").size == (300, 360)
