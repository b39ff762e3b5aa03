"""The words of a command line before any command sees them."""

from pathlib import Path

import pytest

from srno.cli import complete_tokens


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "holiday").mkdir()
    (tmp_path / "train").mkdir()
    (tmp_path / "scan").write_bytes(b"")


@pytest.mark.parametrize(
    "tokens",
    [["photo.jpg"], ["photo.HEIC", "-s", "3"], ["-s", "3", "photo.jpg"], ["holiday"], ["*.png"], ["-"], ["scan"]],
)
def test_pictures_without_a_command_are_enlarged(tokens: list[str]):
    assert complete_tokens(tokens) == ["upscale", *tokens]


@pytest.mark.parametrize(
    "tokens", [[], ["--help"], ["--version"], ["train", "--data", "x"], ["upscal", "photo.jpg"], ["-v"], ["nothing"]]
)
def test_other_arguments_are_unchanged(tokens: list[str]):
    assert complete_tokens(tokens) == tokens


def test_file_names_may_begin_with_a_dash():
    dashed = ["upscale", "-s", "2", "-a.png", "--b.jpg"]
    assert complete_tokens(dashed) == ["upscale", "-s", "2", "./-a.png", "./--b.jpg"]
    assert complete_tokens(["-a.png"]) == ["upscale", "./-a.png"]
    assert complete_tokens(["upscale", "a.png", "--output=-b.png"]) == ["upscale", "a.png", "--output=-b.png"]
