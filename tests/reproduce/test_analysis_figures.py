"""Figures of what a model has learnt, and of how it was sampled: as a user types them, on small models."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from command_runs import run
from commands.scoring import make_set, near_bilinear_model, run_json, write_model, write_random
from small_models import EDSR, grid_queries
from srno.analysis import effective_rank, kernel_distance
from srno.config import PRESETS, LTEConfig, MLPConfig, SRNOConfig
from srno.imaging.resize import matlab_bicubic
from srno.operator.srno import SRNO

TINY = {
    "tiny": SRNOConfig(encoder=EDSR, d_z=12, heads=3, projection_width=7),
    "lte/tiny": LTEConfig(encoder=EDSR, frequencies=5, width=8, depth=2),
    "mlp/tiny": MLPConfig(encoder=EDSR, width=9, depth=3),
}


@pytest.fixture
def model(tmp_path: Path) -> tuple[SRNO, Path]:
    made = near_bilinear_model()
    assert isinstance(made, SRNO)
    return made, write_model(made, tmp_path / "own.safetensors")


def is_drawn(path: Path) -> bool:
    """Whether a picture has more than background: many different colours."""
    with Image.open(path) as image:
        return len(np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0)) > 50


def low_resolution(path: Path, factor: int) -> torch.Tensor:
    """(1, 3, h, w) in [-1, 1]"""
    pixels = np.asarray(Image.open(path))
    small = matlab_bicubic(pixels, (pixels.shape[0] // factor, pixels.shape[1] // factor))
    return torch.from_numpy(small.astype(np.float32) / 127.5 - 1).permute(2, 0, 1).unsqueeze(0)


def test_fig_rank_reports_the_ranks_of_the_whole_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: tuple[SRNO, Path]
) -> None:
    data = make_set(tmp_path / "Set", (32, 40), (36, 32))
    out = tmp_path / "figures" / "rank.png"
    tokens = ("reproduce", "fig-rank", "--data", data, "--scales", "2,4", "--model", model[1], "--out", out)
    code, text, err = run(capsys, *tokens, "--threads", "1")
    assert code == 0, err
    assert is_drawn(out)
    content = json.loads(out.with_suffix(".json").read_text())
    assert [(each["picture"], each["scale"]) for each in content["pictures"]] == [
        ("0", "2"), ("1", "2"), ("0", "4"), ("1", "4")
    ]  # fmt: skip
    image = low_resolution(data / "HR" / "1.png", 4)
    coords, cell = grid_queries((9, 8), (36, 32))
    with torch.no_grad():
        z = model[0].lifting(model[0].encoder(image), coords, cell)
        z = model[0].kernel_layers()[0](z)
    expected = np.linalg.svd(z[0].double().numpy(), compute_uv=False)
    np.testing.assert_allclose(content["pictures"][3]["singular_values"]["z_1"], expected, rtol=1e-3)
    found = content["pictures"][3]["ranks"]["z_1"]
    assert found["effective"] == pytest.approx(effective_rank(expected), rel=1e-3)
    assert found["numerical, τ = 0.1"] == (expected > 0.1 * expected[0]).sum()
    rows = [line for line in text.splitlines() if line.startswith("| effective | ×4 |")]
    values = [each["ranks"]["z_1"]["effective"] for each in content["pictures"][2:]]
    assert f"{sum(values) / 2:.1f} ({min(values):.1f}–{max(values):.1f})" in rows[0].split(" | ")
    assert "rank(Q) ≤ rank(V), pictures × scales × layers: effective " in text
    assert out.with_suffix(".md").read_text() == text


def test_fig_basis_draws_channels_by_energy_or_as_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: tuple[SRNO, Path]
) -> None:
    data = make_set(tmp_path / "Set", (32, 40))
    tokens = ("reproduce", "fig-basis", "--picture", data / "HR" / "0.png", "--model", model[1], "--threads", "1")
    for name, flags in (("energy", ("--count", "3")), ("given", ("--channels", "0,5"))):
        code, _, err = run(capsys, *tokens, *flags, "--out", tmp_path / f"{name}.png")
        assert code == 0, err
        assert is_drawn(tmp_path / f"{name}.png")
    first, second = (np.asarray(Image.open(tmp_path / f"{name}.png")) for name in ("energy", "given"))
    assert first.shape != second.shape


def test_fig_kernel_reports_distances_of_pictures_scales_and_halves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: tuple[SRNO, Path]
) -> None:
    data = make_set(tmp_path / "Set", (48, 56), (52, 48))
    out = tmp_path / "kernel.png"
    tokens = ("reproduce", "fig-kernel", "--data", data, "--scales", "2,4", "--model", model[1], "--out", out)
    code, text, err = run(capsys, *tokens, "--threads", "1")
    assert code == 0, err
    assert is_drawn(out)
    content = json.loads(out.with_suffix(".json").read_text())
    kernels = {name: np.array(M) for name, M in content["kernels"].items()}
    assert [kernels[name].shape for name in ("0", "1")] == [(2, 3, 4, 4)] * 2
    np.testing.assert_allclose(content["distances"]["pictures"]["0 1"], kernel_distance(kernels["0"], kernels["1"]))
    assert set(content["distances"]["scales"]) == {"0 ×4 ×2", "1 ×4 ×2"}
    assert len(content["distances"]["halves"]) == 8
    image = low_resolution(data / "HR" / "0.png", 4)
    coords, cell = grid_queries((12, 14), (48, 56))
    with torch.no_grad():
        M = model[0].kernel_layers()[0].integral(model[0].lifting(model[0].encoder(image), coords, cell))
    np.testing.assert_allclose(kernels["0"][0], M[0].numpy(), atol=1e-4)
    assert "| two pictures at the same scale | 1 |" in text
    cosines = [np.vdot(a, b) / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(*kernels.values(), strict=True)]
    assert f"Cosine between M of two pictures: {min(cosines):.2f} to {max(cosines):.2f}." in text


def test_fig_patterns_draws_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path / "Set", (64, 72))
    tokens = ("reproduce", "fig-patterns", "--picture", data / "HR" / "0.png", "--side", "16", "--scale", "3")
    for seed in ("0", "1"):
        code, _, err = run(capsys, *tokens, "--seed", seed, "--out", tmp_path / f"{seed}.png")
        assert code == 0, err
        assert is_drawn(tmp_path / f"{seed}.png")
    assert (tmp_path / "0.png").read_bytes() != (tmp_path / "1.png").read_bytes()


def test_fig_samples_compares_with_lte_and_prints_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs are matched by the points of their config, files by their names."""
    for name, config in TINY.items():
        monkeypatch.setitem(PRESETS, name, config)
    data, folder = make_set(tmp_path / "Urban100", (48, 56)), tmp_path / "checkpoints"
    tokens = ("reproduce", "fig-samples", "--preset", "tiny", "--sides", "8,16,24", "--scales", "2,3", "--threads", "1")
    tokens = (*tokens, "--data", data, "--checkpoints", folder, "--out", tmp_path / "samples.png")
    folder.mkdir()
    code, out, err = run(capsys, *tokens)
    assert code == 0, err
    assert not (tmp_path / "samples.png").exists()
    for command in (
        "--preset tiny --recipe paper --stages 8x64x64 --data DATA/DIV2K/DIV2K_train_HR --out CHECKPOINTS/tiny-8",
        "--preset lte/tiny --recipe lte --data DATA/DIV2K/DIV2K_train_HR --out CHECKPOINTS/lte-tiny",
        "--preset mlp/tiny --recipe paper --stages 24x64x576 --data DATA/DIV2K/DIV2K_train_HR",
        "--data DATA/Flickr2K --data DATA/DIV2K/DIV2K_train_HR --out CHECKPOINTS/mlp-tiny-phi",
    ):
        assert command in out
    lte = write_random(TINY["lte/tiny"], folder / "lte.safetensors")
    srno = write_random(TINY["tiny"], folder / "any-name" / "last.safetensors", seed=1)
    (folder / "any-name" / "config.json").write_text(json.dumps({"stages": "0.5:8x2x64,16x2x256"}))
    write_random(TINY["tiny"], folder / "own-24.safetensors", seed=2)
    code, out, err = run(capsys, *tokens)
    assert code == 0, err
    assert is_drawn(tmp_path / "samples.png")
    content = json.loads((tmp_path / "samples.json").read_text())
    assert list(content["psnr"]) == ["LTE", "SRNO (16²)", "SRNO (24²)"]
    expected = [run_json(capsys, "evaluate", path, "--data", data, "--scales", "2,3")["mean"] for path in (lte, srno)]
    for name, scores in zip(("LTE", "SRNO (16²)"), expected, strict=True):
        assert content["psnr"][name] == {scale: score["psnr"] for scale, score in scores.items()}
    row = next(line for line in out.splitlines() if line.startswith("| SRNO (16²)"))
    assert row.split(" | ")[2] == f"{expected[1]['2']['psnr'] - expected[0]['2']['psnr']:+.3f}"
    assert "--stages 8x64x64" in out
    assert "--stages 16x64x256" not in out
