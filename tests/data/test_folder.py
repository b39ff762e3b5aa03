import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from srno.data.folder import UnreadableError, decode, list_files
from srno.errors import SRNOError


def test_files_are_listed_recursively_sorted_and_once(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    (folder / "sub").mkdir(parents=True)
    for name in ("b.png", "sub/c.png", "a.png", ".hidden.png"):
        (folder / name).write_bytes(b"x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "d.png").write_bytes(b"x")
    (folder / "link").symlink_to(tmp_path / "other")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.png")
    (folder / "nowhere.png").symlink_to(tmp_path / "missing")
    names = [file.path.relative_to(tmp_path).as_posix() for file in list_files([folder, folder / "sub"])]
    assert names == ["a/a.png", "a/b.png", "a/link/d.png", "a/sub/c.png"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SRNOError, match="missing is not a folder"):
        list_files([tmp_path / "missing"])


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr"])
def test_every_8_bit_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    path = tmp_path / ("x.tif" if mode in ("CMYK", "YCbCr") else "x.png")
    Image.new("RGB", (7, 5), (255, 255, 255)).convert(mode).save(path)
    picture = decode(path)
    assert picture.shape == (5, 7, 3)
    assert picture.dtype == np.uint8
    assert picture.min() >= 253


def test_16_bit_gray_is_scaled_not_clipped(tmp_path: Path) -> None:
    values = np.array([[0, 257, 128 * 257, 65535]], np.uint16)
    Image.fromarray(values).save(tmp_path / "x.png")
    assert decode(tmp_path / "x.png")[0].tolist() == [[v] * 3 for v in (0, 1, 128, 255)]


def test_unreadable_files_give_a_reason(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no picture")
    Image.fromarray(np.random.default_rng(0).integers(256, size=(64, 64, 3), dtype=np.uint8)).save(tmp_path / "cut.png")
    whole = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    Image.new("F", (4, 4)).save(tmp_path / "float.tif")
    for name, reason in {
        "text.png": "not a picture",
        "cut.png": "cannot be decoded: .*truncated",
        "float.tif": "no known range",
        "gone.png": "cannot be decoded: No such file",
    }.items():
        with pytest.raises(UnreadableError, match=reason):
            decode(tmp_path / name)
