"""Evaluation end to end: published bicubic scores, sizes, cache, resuming and progress."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet, find_sets
from srno.evaluation.evaluate import ScoreCache, TimedScore, bicubic, evaluate, evaluate_sets
from srno.evaluation.metrics import Score
from srno.evaluation.protocols import Scale, named_protocol, parse_scales
from srno.files import cache_folder

Write = Callable[..., Path]
BENCHMARK = named_protocol("benchmark")


class Counting:
    """Bicubic that records its calls and can be interrupted after some of them."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.calls: list[tuple[tuple[int, ...], tuple[int, int], tuple[float, float], bool]] = []
        self.stop_after = stop_after

    def __call__(
        self, lr: NDArray[np.float32], *, size: tuple[int, int], scale: tuple[float, float], cell_clip: bool
    ) -> NDArray[np.float32]:
        if len(self.calls) == self.stop_after:
            raise KeyboardInterrupt
        self.calls.append((lr.shape, size, scale, cell_clip))
        return bicubic(lr, size=size, scale=scale, cell_clip=cell_clip)


@pytest.fixture
def pictures(tmp_path: Path, write_picture: Write) -> PictureSet:
    for index in range(3):
        write_picture(tmp_path / "set" / f"{index}.png", 40 + index, 50, seed=index)
    return find_sets(tmp_path / "set")[0]


@pytest.mark.benchmark_sets("eval/Set5", "eval/Set14", "eval/B100")
@pytest.mark.parametrize(
    ("name", "expected"),
    [("Set5", (33.69, 30.41, 28.43)), ("Set14", (30.33, 27.64, 26.09)), ("B100", (29.56, 27.21, 25.96))],
)
def test_bicubic_scores_as_published(
    eval_set: Callable[[str], Path], name: str, expected: tuple[float, float, float]
) -> None:
    (found,) = find_sets(eval_set(name))
    protocol = named_protocol("benchmark", lr="ready")
    evaluation = evaluate(bicubic, found, parse_scales("2,3,4"), protocol, model="bicubic")
    assert not evaluation.skipped
    assert [score.psnr for score in evaluation.mean.values()] == pytest.approx(expected, abs=0.02)


@pytest.mark.benchmark_sets("eval/Set5")
def test_default_and_ready_low_resolution_score_the_same(eval_set: Callable[[str], Path]) -> None:
    (found,) = find_sets(eval_set("Set5"))
    made, ready = (
        evaluate(bicubic, found, parse_scales("3"), protocol, model="bicubic").scores
        for protocol in (BENCHMARK, named_protocol("benchmark", lr="ready"))
    )
    assert made == ready


def test_the_model_receives_sizes_scale_and_cell_clip(pictures: PictureSet) -> None:
    model = Counting()
    protocol = named_protocol("div2k", cell_clip=False, border="0")
    evaluate(model, pictures, [Scale(y=3, x=2)], protocol, model="counting")
    assert model.calls[2] == ((14, 25, 3), (42, 50), (3, 2), False)
    fractional = Counting()
    evaluate(fractional, pictures, [Scale(2.2, 2.2)], BENCHMARK, model="counting")
    assert fractional.calls[0] == ((18, 22, 3), (40, 48), (2.2, 2.2), True)


def test_means_are_over_pictures_and_too_small_ones_are_reported(
    tmp_path: Path, pictures: PictureSet, write_picture: Write
) -> None:
    write_picture(tmp_path / "set" / "tiny.png", 14, 14)
    (found,) = find_sets(tmp_path / "set")
    evaluation = evaluate(bicubic, found, parse_scales("1.5,2"), BENCHMARK, model="bicubic")
    names = [picture.name for picture in pictures.pictures]
    assert [list(scores) for scores in evaluation.scores.values()] == [names, names]
    assert [(skip.picture, str(skip.scale)) for skip in evaluation.skipped] == [("tiny.png", "1.5"), ("tiny.png", "2")]
    for scale, mean in evaluation.mean.items():
        scores = evaluation.scores[scale].values()
        assert mean.psnr == pytest.approx(sum(score.psnr for score in scores) / 3)
        assert mean.ssim == pytest.approx(sum(score.ssim for score in scores) / 3)


def test_nothing_to_score_is_an_error_but_an_empty_scale_is_not(pictures: PictureSet) -> None:
    with pytest.raises(SRNOError, match=r"no picture can be scored; 0\.png at ×20: 50×40 is too small"):
        evaluate(bicubic, pictures, parse_scales("20"), BENCHMARK, model="bicubic")
    evaluation = evaluate(bicubic, pictures, parse_scales("2,20"), BENCHMARK, model="bicubic")
    assert [str(scale) for scale in evaluation.mean] == ["2"]
    assert len(evaluation.skipped) == 3


def test_a_perfect_model_scores_infinity(pictures: PictureSet) -> None:
    evaluation = evaluate(bicubic, pictures, parse_scales("1"), named_protocol("div2k"), model="same size")
    mean = evaluation.mean[Scale(1, 1)]
    assert mean.psnr == math.inf
    assert mean.ssim == pytest.approx(1)


def test_a_result_of_the_wrong_size_is_refused(pictures: PictureSet) -> None:
    def unscaled(
        lr: NDArray[np.float32], *, size: tuple[int, int], scale: tuple[float, float], cell_clip: bool
    ) -> NDArray[np.float32]:
        return lr

    with pytest.raises(ValueError, match="the model returned"):
        evaluate(unscaled, pictures, parse_scales("2"), BENCHMARK, model="unscaled")


def test_a_stopped_evaluation_resumes(tmp_path: Path, pictures: PictureSet) -> None:
    cache, scales = ScoreCache("abc", tmp_path / "cache"), parse_scales("2,3")
    expected = evaluate(bicubic, pictures, scales, BENCHMARK, model="m")
    with pytest.raises(KeyboardInterrupt):
        evaluate(Counting(stop_after=4), pictures, scales, BENCHMARK, model="m", cache=cache)
    rest = Counting()
    resumed = evaluate(rest, pictures, scales, BENCHMARK, model="m", cache=cache)
    assert len(rest.calls) == 2
    assert resumed.scores == expected.scores
    again = evaluate(Counting(stop_after=0), pictures, scales, BENCHMARK, model="m", cache=cache)
    assert again == resumed
    assert not list((tmp_path / "cache").rglob("*.tmp"))


def test_the_cache_distinguishes_weights_protocols_scales_and_contents(
    tmp_path: Path, pictures: PictureSet, write_picture: Write
) -> None:
    cache, scales = ScoreCache("abc", tmp_path / "cache"), parse_scales("2")
    evaluate(bicubic, pictures, scales, BENCHMARK, model="m", cache=cache)

    def calls(cache: ScoreCache, scale: str = "2", **options: Any) -> int:
        model = Counting()
        protocol = named_protocol("benchmark", **options)
        evaluate(model, pictures, parse_scales(scale), protocol, model="m", cache=cache)
        return len(model.calls)

    assert calls(cache) == 0
    assert calls(ScoreCache("abd", cache.folder)) == 3
    assert calls(cache, scale="2x2.5") == 3
    options: list[dict[str, Any]] = [
        {"channel": "rgb"},
        {"border": "3"},
        {"lr": "pillow"},
        {"cell_clip": False},
        {"max_pixels": 1500},
    ]
    for option in options:
        assert calls(cache, **option) == 3
        assert calls(cache, **option) == 0
    write_picture(pictures.pictures[0].path, 40, 50, seed=9)
    assert calls(cache) == 1


def test_a_damaged_entry_is_ignored_and_infinity_is_preserved(tmp_path: Path) -> None:
    cache, scale = ScoreCache("abc", tmp_path), Scale(2, 2)
    entry = TimedScore(Score(math.inf, 1.0), 0.25)
    cache.put("digest", scale, BENCHMARK, entry)
    assert cache.get("digest", scale, BENCHMARK) == entry
    path = cache.path("digest", scale, BENCHMARK)
    for damage in ("", '{"psnr": 3', "[]", "{}", '{"psnr": "x", "ssim": 1, "seconds": 0}'):
        path.write_text(damage)
        assert cache.get("digest", scale, BENCHMARK) is None


def test_an_unwritable_cache_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SRNOError, match=r"cache folder .*file cannot be written"):
        ScoreCache("abc", tmp_path / "file").put("digest", Scale(2, 2), BENCHMARK, TimedScore(Score(1, 1), 0))


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("scores") == tmp_path / "srno" / "scores"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("scores") == tmp_path / ".cache" / "srno" / "scores"


def test_progress_counts_every_picture_and_scale_of_all_sets(pictures: PictureSet) -> None:
    seen: list[tuple[int, int, str]] = []
    sets = [pictures, PictureSet("half", pictures.pictures[:1])]
    evaluations = evaluate_sets(
        bicubic, sets, parse_scales("2,20"), BENCHMARK, model="m", progress=lambda *step: seen.append(step)
    )
    assert [evaluation.data for evaluation in evaluations] == ["set", "half"]
    assert [done for done, _, _ in seen] == list(range(1, 9))
    assert {total for _, total, _ in seen} == {8}
    assert seen[-1][2] == "0.png"
