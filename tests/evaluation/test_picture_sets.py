"""Finding picture sets, skipping pictures, and making pairs."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from srno.errors import SRNOError
from srno.evaluation.datasets import centre_crop, centre_size, find_sets, load_pair, read_rgb, reason_to_skip
from srno.evaluation.protocols import Scale, named_protocol
from srno.imaging.resize import matlab_bicubic, pillow_bicubic

Write = Callable[..., Path]
TWO = Scale(2, 2)


def test_sets_are_found_in_a_set_a_plain_folder_and_a_parent(tmp_path: Path, write_picture: Write) -> None:
    for name in ("b.png", "a.PNG"):
        write_picture(tmp_path / "data" / "SetX" / "HR" / name, 40, 40)
    write_picture(tmp_path / "data" / "SetX" / "LR_bicubic" / "X2" / "ax2.png", 20, 20)
    write_picture(tmp_path / "data" / "plain" / "c.webp", 40, 40)
    (tmp_path / "data" / "plain" / "notes.txt").write_text("not a picture")
    (tmp_path / "data" / "empty").mkdir()

    both = find_sets(tmp_path / "data")
    assert {each.name: [picture.name for picture in each.pictures] for each in both} == {
        "SetX": ["a.PNG", "b.png"],
        "plain": ["c.webp"],
    }
    assert find_sets(tmp_path / "data" / "SetX") == find_sets(tmp_path / "data" / "SetX" / "HR") == both[:1]
    assert find_sets(tmp_path / "data" / "plain")[0].name == "plain"
    first, second = both[0].pictures
    assert first.ready_path(TWO) == (tmp_path / "data" / "SetX" / "LR_bicubic" / "X2" / "ax2.png").resolve()
    assert second.ready_path(TWO) is None


def test_the_current_folder_gives_the_set_its_name(
    tmp_path: Path, write_picture: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_picture(tmp_path / "SetX" / "HR" / "a.png", 20, 20)
    for folder in (tmp_path / "SetX", tmp_path / "SetX" / "HR"):
        monkeypatch.chdir(folder)
        assert [each.name for each in find_sets(Path())] == ["SetX"]


def test_folders_without_pictures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SRNOError, match=r"--data .*missing is not a folder"):
        find_sets(tmp_path / "missing")
    with pytest.raises(SRNOError, match=r"Set5 is not part of srno: download it from https://"):
        find_sets(tmp_path / "set5")
    with pytest.raises(SRNOError, match=r"--data .* has no pictures \(.*png"):
        find_sets(tmp_path)


@pytest.mark.parametrize(
    ("scale", "lr", "lr_size", "hr_size"),
    [
        ("2", "standard", (22, 30), (44, 60)),
        ("3", "matlab", (15, 20), (45, 60)),
        ("3", "pillow", (15, 20), (45, 60)),
        ("2.5", "standard", (18, 24), (45, 60)),
        ("4x2", "standard", (22, 15), (44, 60)),
        ("2.2", "standard", (20, 27), (44, 59)),
    ],
)
def test_pairs_follow_the_crop_rule_and_the_kernel(
    tmp_path: Path, write_picture: Write, scale: str, lr: str, lr_size: tuple[int, int], hr_size: tuple[int, int]
) -> None:
    whole = read_rgb(write_picture(tmp_path / "a.png", 45, 61, seed=3))
    picture, factor = find_sets(tmp_path)[0].pictures[0], Scale.parse(scale)
    low, truth = load_pair(picture, factor, named_protocol("benchmark", lr=lr))
    assert truth.shape == (*hr_size, 3)
    assert (truth == whole[: hr_size[0], : hr_size[1]]).all()
    resize = matlab_bicubic if lr == "matlab" or scale == "2" else pillow_bicubic
    assert (low == resize(truth, lr_size)).all()


def test_jpeg_compresses_the_low_resolution_picture_alone(tmp_path: Path, write_picture: Write) -> None:
    write_picture(tmp_path / "a.png", 48, 64, seed=3)
    picture, scale = find_sets(tmp_path)[0].pictures[0], Scale(2, 2)
    low, truth = load_pair(picture, scale, named_protocol("benchmark"))
    errors: list[float] = []
    for quality in (30, 60, 95):
        protocol = named_protocol("benchmark", jpeg=quality)
        compressed, same = load_pair(picture, scale, protocol)
        assert (same == truth).all()
        stream = io.BytesIO()
        Image.fromarray(low).save(stream, "JPEG", quality=quality, subsampling=2)  # 2 is 4:2:0
        assert (compressed == np.asarray(Image.open(stream))).all()
        assert f"jpeg={quality}" in protocol.name
        assert f"JPEG of quality {quality}" in str(protocol)
        errors.append(float(np.abs(compressed.astype(float) - low).mean()))
    assert errors[0] > errors[1] > errors[2] > 0
    with pytest.raises(SRNOError, match="--jpeg 0"):
        named_protocol("benchmark", jpeg=0)


@pytest.mark.benchmark_sets("eval/Set14")
def test_ready_files_equal_the_matlab_pairs(eval_set: Callable[[str], Path]) -> None:
    pictures = find_sets(eval_set("Set14"))[0].pictures[:4]
    for picture in pictures:
        for factor in (2, 3, 4):
            scale = Scale(factor, factor)
            ready = load_pair(picture, scale, named_protocol("benchmark", lr="ready"))
            made = load_pair(picture, scale, named_protocol("benchmark"))
            assert all((a == b).all() for a, b in zip(ready, made, strict=True))


def test_gray_becomes_rgb_and_more_than_8_bits_is_refused(tmp_path: Path, write_picture: Write) -> None:
    gray = read_rgb(write_picture(tmp_path / "gray.png", 12, 14, gray=True))
    assert gray.shape == (12, 14, 3)
    assert (gray == gray[..., :1]).all()
    Image.fromarray(np.full((12, 14), 40000, dtype=np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(SRNOError, match=r"deep\.png has more than 8 bits"):
        read_rgb(tmp_path / "deep.png")


def test_damaged_pictures_are_refused(tmp_path: Path, write_picture: Write) -> None:
    whole = write_picture(tmp_path / "cut.png", 64, 64).read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.png").write_text("no picture")
    for name in ("cut.png", "text.png"):
        with pytest.raises(SRNOError, match=f"{name} cannot be read"):
            read_rgb(tmp_path / name)


def test_small_pictures_and_missing_ready_files_are_skipped(tmp_path: Path, write_picture: Write) -> None:
    write_picture(tmp_path / "S" / "HR" / "a.png", 40, 30)
    write_picture(tmp_path / "S" / "LR_bicubic" / "X3" / "a.png", 20, 15)
    picture = find_sets(tmp_path / "S")[0].pictures[0]
    benchmark, ready = named_protocol("benchmark"), named_protocol("benchmark", lr="ready")
    assert reason_to_skip(picture, TWO, benchmark) is None
    # 30 wide at ×9: three LR pixels make 27, less two borders of nine leaves nine, fewer than SSIM's eleven
    assert "30×40 is too small" in str(reason_to_skip(picture, Scale(9, 9), benchmark))
    assert "too small" in str(reason_to_skip(picture, Scale(50, 50), named_protocol("benchmark", border="0")))
    assert reason_to_skip(picture, Scale(y=9, x=2), benchmark) is None
    assert reason_to_skip(picture, TWO, ready) == "no ready LR file"
    assert "15×20 does not fit into 30×40" in str(reason_to_skip(picture, Scale(3, 3), ready))
    cropped = reason_to_skip(picture, TWO, named_protocol("benchmark", max_pixels=140))
    assert "30×40, cut to 10×13, is too small" in str(cropped)


@given(height=st.integers(1, 4000), width=st.integers(1, 4000), pixels=st.integers(4000, 10**6))
def test_centre_crop_keeps_the_pixel_limit_and_the_proportions(height: int, width: int, pixels: int) -> None:
    h, w = centre_size((height, width), pixels)
    assert h * w <= max(pixels, 1)
    assert abs(h / height - w / width) <= 1 / min(height, width)
    assert ((h, w) == (height, width)) == (height * width <= pixels)
    assert centre_size((height, width), None) == (height, width)


def test_centre_crop_is_from_the_middle_and_the_low_resolution_follows(tmp_path: Path, write_picture: Write) -> None:
    whole = read_rgb(write_picture(tmp_path / "a.png", 80, 60))
    assert (centre_crop(whole, 1200) == whole[20:60, 15:45]).all()
    picture = find_sets(tmp_path)[0].pictures[0]
    low, truth = load_pair(picture, TWO, named_protocol("benchmark", max_pixels=1200))
    assert (truth == whole[20:60, 15:45]).all()
    assert (low == matlab_bicubic(np.ascontiguousarray(truth), (20, 15))).all()


def test_the_digest_changes_with_the_content(tmp_path: Path, write_picture: Write) -> None:
    write_picture(tmp_path / "HR" / "a.png", 40, 40)
    write_picture(tmp_path / "LR_bicubic" / "X2" / "a.png", 20, 20)
    picture = find_sets(tmp_path)[0].pictures[0]
    benchmark, ready = named_protocol("benchmark"), named_protocol("benchmark", lr="ready")
    before = picture.digest(TWO, benchmark), picture.digest(TWO, ready)
    write_picture(tmp_path / "LR_bicubic" / "X2" / "a.png", 20, 20, seed=1)
    assert picture.digest(TWO, benchmark) == before[0]
    assert picture.digest(TWO, ready) != before[1]
    write_picture(tmp_path / "HR" / "a.png", 40, 40, seed=1)
    assert picture.digest(TWO, benchmark) != before[0]
