"""srno evaluate: its scores equal an independent script at any memory budget, and a stopped evaluation resumes."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from checkpoints.public_layout import public_content, write_public
from command_runs import run
from commands.scoring import make_set, near_bilinear_model, run_json, write_model, write_rival
from shared_data import BENCHMARK_SETS
from srno.checkpoints.catalogue import read_checkpoint
from srno.imaging.resize import matlab_bicubic, pillow_bicubic
from srno.operator.model import Model
from srno.upscaling.upscaler import Upscaler

Y = np.array([65.738, 129.057, 25.064]) / 256


def independent_psnr(model: Model, path: Path, scale_y: float, scale_x: float, *, clip: bool = True) -> float:
    """PSNR under the benchmark protocol, implemented independently with the textbook forward."""
    hr = np.asarray(Image.open(path).convert("RGB"))
    h, w = math.floor(hr.shape[0] / scale_y + 1e-9), math.floor(hr.shape[1] / scale_x + 1e-9)
    height, width = round(h * scale_y), round(w * scale_x)
    hr = hr[:height, :width]
    shrink = matlab_bicubic if scale_y == scale_x and scale_x in (2, 3, 4) else pillow_bicubic
    lr = torch.from_numpy(shrink(np.ascontiguousarray(hr), (h, w)) / 255).float().permute(2, 0, 1)[None] * 2 - 1
    y, x = (-1 + (2 * torch.arange(n, dtype=torch.float64) + 1) / n for n in (height, width))
    coords = torch.stack(torch.meshgrid(y, x, indexing="ij"), dim=-1)[None]
    factors = [min(n / m, 4) if clip else n / m for n, m in ((height, h), (width, w))]
    with torch.no_grad():
        sr = model(lr, coords, torch.tensor([[2 / factors[0], 2 / factors[1]]], dtype=torch.float64))[0]
    sr = (sr.double().numpy() * 0.5 + 0.5).clip(0, 1)
    rows, columns = math.ceil(scale_y), math.ceil(scale_x)
    difference = ((sr - hr / 255) @ Y)[rows:-rows, columns:-columns]
    return float(-10 * np.log10(np.mean(difference**2)))


def test_a_converted_public_checkpoint_scores_as_the_independent_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make_set(tmp_path / "set", (61, 72), (48, 50))
    public = write_public(public_content(near_bilinear_model()), tmp_path / "public.pth")
    assert run(capsys, "convert", public, tmp_path / "ours.safetensors")[0] == 0
    scales = {"2": (2, 2), "3": (3, 3), "2.5": (2.5, 2.5), "6": (6, 6), "2x3": (3, 2)}
    content = run_json(capsys, "evaluate", tmp_path / "ours.safetensors", "--data", data, "--scales", ",".join(scales))
    model = read_checkpoint(public).model()
    for key, (scale_y, scale_x) in scales.items():
        expected = [independent_psnr(model, data / "HR" / f"{i}.png", scale_y, scale_x) for i in range(2)]
        assert [content["pictures"][f"{i}.png"][key]["psnr"] for i in range(2)] == pytest.approx(expected, abs=1e-3)
        assert content["mean"][key]["psnr"] == pytest.approx(sum(expected) / 2, abs=1e-3)
    unclipped = run_json(capsys, "evaluate", public, "--data", data, "--scales", "6", "--no-cell-clip")
    expected = independent_psnr(model, data / "HR" / "0.png", 6, 6, clip=False)
    assert unclipped["pictures"]["0.png"]["6"]["psnr"] == pytest.approx(expected, abs=1e-3)
    assert "no cell clip" in unclipped["protocol"]["description"]


@pytest.mark.benchmark_sets("eval/Set5")
def test_the_parity_checkpoint_scores_as_the_independent_script_on_set5(
    tmp_path: Path, parity_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = BENCHMARK_SETS / "Set5"
    checkpoint = parity_folder / "sronet.pth"
    content = run_json(capsys, "evaluate", checkpoint, "--data", data, "--scales", "4", "--max-pixels", "9000")
    with Image.open(data / "HR" / "img_003.png") as image:
        left = (image.width - 94) // 2  # 94 = floor(√9000), and the picture is square
        image.crop((left, left, left + 94, left + 94)).save(tmp_path / "crop.png")
    expected = independent_psnr(read_checkpoint(checkpoint).model(), tmp_path / "crop.png", 4, 4)
    assert content["pictures"]["img_003.png"]["4"]["psnr"] == pytest.approx(expected, abs=1e-3)
    assert "centre crop to 9000 pixels" in content["protocol"]["description"]


def test_scores_do_not_depend_on_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path / "set", (120, 140))
    model = write_model(near_bilinear_model(), tmp_path / "m.safetensors")
    small, large = (
        run_json(capsys, "evaluate", model, "--data", data, "--scales", "2,3.3", "--no-cache", "--memory", memory)
        for memory in ("1M", "2G")
    )
    for scale in ("2", "3.3"):
        assert small["mean"][scale]["psnr"] == pytest.approx(large["mean"][scale]["psnr"], abs=1e-3)
        assert small["mean"][scale]["ssim"] == pytest.approx(large["mean"][scale]["ssim"], abs=1e-5)


def test_a_stopped_evaluation_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_set(tmp_path / "set", (40, 44), (48, 40), (44, 44))
    model = write_model(near_bilinear_model(), tmp_path / "m.safetensors")
    tokens = ("evaluate", model, "--data", data, "--scales", "2,3")
    expected = run_json(capsys, *tokens, "--no-cache")
    calls, real = [], Upscaler.array

    def interrupted(self: Upscaler, *arguments: object, **keywords: object) -> object:
        if len(calls) == 4:
            raise KeyboardInterrupt
        calls.append(keywords["size"])
        return real(self, *arguments, **keywords)  # pyright: ignore[reportArgumentType]

    with monkeypatch.context() as patch:
        patch.setattr(Upscaler, "array", interrupted)
        code, out, err = run(capsys, *tokens)
    assert (code, out, len(calls)) == (130, "", 4)
    assert "the same command resumes" in err
    calls.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Upscaler, "array", interrupted)
        content = run_json(capsys, *tokens)
    assert len(calls) == 2
    assert content["pictures"] == expected["pictures"]
    # the same weights under another name, file and card are the same model; other weights are not
    with monkeypatch.context() as patch:
        calls.clear()
        patch.setattr(Upscaler, "array", interrupted)
        copy = write_model(near_bilinear_model(), tmp_path / "copy.safetensors")
        assert run_json(capsys, "evaluate", copy, *tokens[2:])["mean"] == content["mean"]
        assert not calls
        other = write_model(near_bilinear_model(seed=1), tmp_path / "other.safetensors")
        assert run(capsys, "evaluate", other, *tokens[2:])[0] == 130
        calls.clear()
        assert run(capsys, *tokens, "--integral", "500")[0] == 130


def test_json_has_the_documented_form_and_is_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path / "Tiny", (40, 44), (20, 21))
    content = run_json(capsys, "evaluate", "bicubic", "--data", data, "--scales", "2,6", "--out", tmp_path / "r" / "b")
    assert list(content)[:3] == ["mean", "pictures", "protocol"]
    assert content["mean"].keys() == {"2", "6"}
    assert content["mean"]["2"].keys() == {"psnr", "ssim"}
    assert content["pictures"]["1.png"].keys() == {"2"}
    assert content["protocol"]["name"] == "benchmark"
    assert [(each["picture"], each["scale"]) for each in content["skipped"]] == [("1.png", "6")]
    assert json.loads((tmp_path / "r" / "b.json").read_text()) == content
    assert "**mean**" in (tmp_path / "r" / "b.md").read_text()
    rows = list(csv.DictReader((tmp_path / "r" / "b.csv").read_text().splitlines()))
    assert {row["picture"] for row in rows} == {"0.png", "1.png", "mean"}
    run_json(capsys, "evaluate", "bicubic", "--data", data, "--out", tmp_path / "r")
    assert (tmp_path / "r" / "bicubic-Tiny.json").is_file()


def test_the_table_has_notes_protocol_and_skipped_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_set(tmp_path / "sets" / "A", (40, 44))
    make_set(tmp_path / "sets" / "B", (13, 13), (40, 40))
    model = write_model(near_bilinear_model(), tmp_path / "m.safetensors")
    tokens = ("--data", tmp_path / "sets", "--scales", "2,3", "--integral", "300", "--ensemble", "--border", "2")
    code, out, _ = run(capsys, "evaluate", model, *tokens)
    assert code == 0
    assert "**m on A**" in out
    assert "**m on B**" in out
    assert "Note: self-ensemble of 8, integrals from 300 points" in out
    assert "Protocol benchmark (border=2): PSNR on Y of the difference" in out
    assert "Skipped: 0.png at ×2: 13×13 is too small" in out


def test_the_ensemble_is_the_mean_over_flips_and_transposes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path / "set", (40, 56))
    model = near_bilinear_model()
    path = write_model(model, tmp_path / "m.safetensors")
    content = run_json(capsys, "evaluate", path, "--data", data, "--scales", "4", "--ensemble")
    hr = np.asarray(Image.open(data / "HR" / "0.png"), dtype=np.float32) / 255
    lr = matlab_bicubic(np.asarray(Image.open(data / "HR" / "0.png")), (10, 14)).astype(np.float32) / np.float32(255)
    total = np.zeros_like(hr, dtype=np.float64)
    for k in range(4):
        for mirrored in (False, True):
            turned = np.rot90(lr[:, ::-1] if mirrored else lr, k)
            size = (4 * turned.shape[0], 4 * turned.shape[1])
            sr = Upscaler(model=model, integral="exact").array(
                np.ascontiguousarray(turned), size=size, scale=(4, 4), cell_clip=True
            )
            back = np.rot90(sr, -k)
            total += back[:, ::-1] if mirrored else back
    difference = (((total / 8).clip(0, 1) - hr) @ Y)[4:-4, 4:-4]
    assert content["mean"]["4"]["psnr"] == pytest.approx(-10 * np.log10(np.mean(difference**2)), abs=1e-3)


def test_fixed_scale_networks_are_combined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path / "set", (60, 72))
    paths = [write_rival(name, tmp_path / f"{name}.safetensors") for name in ("edsr-x2", "edsr-x4")]
    both = ",".join(map(str, paths))
    content = run_json(capsys, "evaluate", f"EDSR={both}", "--data", data, "--scales", "2,3,4,6")
    assert content["mean"].keys() == {"2", "3", "4"}
    assert content["note"] == "×3 by the network for ×4 and a bicubic downscale"
    assert content["skipped"] == [{"picture": "EDSR", "scale": "6", "reason": "goes up to ×4"}]
    alone = run_json(capsys, "evaluate", paths[1], "--data", data, "--scales", "4")
    assert alone["mean"]["4"] == content["mean"]["4"]
    expected = independent_psnr(read_checkpoint(paths[0]).model(), data / "HR" / "0.png", 2, 2)
    assert content["mean"]["2"]["psnr"] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("bicubic", "--data", "nowhere"), "nowhere is not a folder"),
        (("nobody", "--data", "."), "no model 'nobody'"),
        (("bicubic", "--data", ".", "--scales", "two"), "--scales 'two'"),
        (("bicubic", "--data", ".", "--protocol", "other"), "--protocol 'other' is not one of benchmark, div2k"),
        (("bicubic", "--data", ".", "--integral", "many"), "integral 'many'"),
        (("bicubic", "--data", ".", "--threads", "0"), "--threads 0"),
        (("bicubic",), "--data"),
        (("--data", "Set5"), "Set5 is not part of srno: download it from https://"),
    ],
)
def test_wrong_use_is_a_one_line_error(
    usage_error: Callable[..., tuple[str, str]], tokens: tuple[str, ...], words: str
) -> None:
    out, err = usage_error("evaluate", *tokens)
    assert (out, err.count("\n")) == ("", 1)
    assert words in err
