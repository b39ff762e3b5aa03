"""The forms that `bench` times compute the same picture; peak memory is measured; published numbers are consistent."""

import subprocess
import sys

import pytest
import torch

from rivals.rival_models import CONFIGS, random_rival
from small_models import CONFIGS as OPERATORS
from small_models import random_model
from srno.evaluation.forms import CPU_BAND_PIXELS, PeakJob, forms_of, load_or_build, peak_memory, render_form
from srno.evaluation.protocols import Scale
from srno.evaluation.timing import TimedModel, interleaved_minimum, make_jobs
from srno.reproduce.published import load_published
from tolerances import assert_close


@pytest.mark.parametrize("size", [(26, 33), (70, 90), (13, 100)])
def test_forms_render_the_same_picture(size: tuple[int, int]) -> None:
    image = torch.rand(3, 13, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 2 - 1
    operator = random_model(OPERATORS["edsr"])
    # coordinates of the textbook form are fp32, which limits the agreement
    assert_close(
        render_form(operator, "textbook", image, size), render_form(operator, "exact", image, size), torch.float32
    )
    if size[0] * size[1] < 16384:
        assert_close(render_form(operator, "quadrature", image, size), render_form(operator, "exact", image, size))
    lte = random_rival(CONFIGS["lte"])
    assert forms_of(lte.config) == ("points", "maps")
    assert_close(render_form(lte, "maps", image, size), render_form(lte, "points", image, size))


def test_maps_in_several_bands_equal_points() -> None:
    lte = random_rival(CONFIGS["lte"])
    image = torch.rand(3, 9, 9, dtype=torch.float64) * 2 - 1
    size = (2 * CPU_BAND_PIXELS // 60, 60)
    assert_close(render_form(lte, "maps", image, size), render_form(lte, "points", image, size))


def test_presets_are_built_without_touching_the_random_state() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first, second = load_or_build("light", "cpu"), load_or_build("light", "cpu")
    assert torch.rand(1) == expected
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_models_take_turns_and_the_minimum_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_or_build("light", "cpu")
    timed_models = [TimedModel("a", "exact", model), TimedModel("b", "textbook", model)]
    jobs = make_jobs([(8, 8), (9, 9)], [Scale(2, 2)])
    order: list[str] = []
    clock = iter(range(1, 100))

    def fake_time(timed: TimedModel, *_: object) -> float:
        order.append(timed.name)
        return 1 / next(clock)

    monkeypatch.setattr("srno.evaluation.timing._time", fake_time)
    best = interleaved_minimum(timed_models, jobs, 3, None, "cpu", lambda *_: None)
    assert "".join(order) == "ab" "ba" "ba" "ab" "ab" "ba"  # fmt: skip
    assert best == [[1 / 9, 1 / 12], [1 / 10, 1 / 11]]


def test_resident_peak_includes_freed_memory() -> None:
    """Runs in a new process, as an old one may still hold enough freed memory."""
    code = "import torch; from srno.evaluation.forms import resident_peak as peak; "
    code += "print(peak(lambda: torch.ones(16 << 20).sum()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == pytest.approx(64 << 20, rel=0.25)


def test_peak_memory_grows_with_the_picture() -> None:
    small, large = (
        peak_memory(
            PeakJob(
                model="light",
                form="textbook",
                lr=(16, 16),
                size=(side, side),
                memory=None,
                device="cpu",
                threads=1,
            )
        )
        for side in (32, 192)
    )
    # z alone takes 128 fp32 numbers per point, and is stored more than once
    assert large - small > 2 * 4 * 128 * (192**2 - 32**2)


def test_published_numbers_are_consistent() -> None:
    published = load_published()
    tables = published.tables
    for table in tables.values():
        for rows in table.psnr.values():
            for method, values in rows.items():
                assert method in published.methods
                assert 3 <= len(values) <= len(table.scales)
                assert list(values) == sorted(values, reverse=True)
        assert set(table.milliseconds) <= set(table.methods)
    # the supplement repeats rows of tables 1 and 4
    for method in ("Bicubic", "EDSR-baseline-LTE", "EDSR-baseline-SRNO"):
        assert tables["suppl-div2k"].psnr["DIV2K"][method] == tables["table1"].psnr["DIV2K"][method]
    assert tables["suppl-benchmark"].psnr["Set14"]["EDSR-baseline-SRNO"] == tables["table4"].psnr["Set14"]["SRNO"]
    assert tables["table2"].psnr["Urban100"]["RDN-SRNO"] == (33.33, 29.14, 26.98, 24.43, 23.02)
