"""Devices, arithmetic and memory of a machine."""

import json
import os
from pathlib import Path

import pytest
import torch

from srno import machine
from srno.upscaling.upscaler import Upscaler


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "srno" / "machine"


@pytest.mark.machine_precision
@pytest.mark.parametrize(("seconds", "expected"), [((1.0, 0.5), "bf16"), ((1.0, 0.9), "fp32"), ((1.0, 7.0), "fp32")])
def test_bf16_is_chosen_if_it_is_clearly_faster(
    cache: Path, monkeypatch: pytest.MonkeyPatch, seconds: tuple[float, float], expected: str
):
    times = dict(zip((torch.float32, torch.bfloat16), seconds, strict=True))
    monkeypatch.setattr(machine, "_product_seconds", times.__getitem__)
    assert machine.fastest_precision(torch.device("cpu")) == expected
    (stored,) = cache.iterdir()
    assert json.loads(stored.read_text())["precision"] == expected


@pytest.mark.machine_precision
def test_the_machine_is_timed_once(cache: Path, monkeypatch: pytest.MonkeyPatch):
    first = machine.fastest_precision(torch.device("cpu"))

    def refuse(_: torch.dtype) -> float:
        raise AssertionError("timed again")

    with monkeypatch.context() as patch:
        patch.setattr(machine, "_product_seconds", refuse)
        assert machine.fastest_precision(torch.device("cpu")) == first
    (stored,) = cache.iterdir()
    stored.write_text("damaged")
    assert machine.fastest_precision(torch.device("cpu")) in ("fp32", "bf16")
    assert json.loads(stored.read_text())["speed_up"] > 0


@pytest.mark.machine_precision
def test_a_cache_that_cannot_be_written_is_not_an_error(cache: Path):
    cache.parent.parent.mkdir(exist_ok=True)
    cache.parent.write_text("a file where the folder should be")
    assert machine.fastest_precision(torch.device("cpu")) in ("fp32", "bf16")


@pytest.mark.parametrize(
    ("capability", "expected"), [((6, 1), "fp32"), ((7, 5), "fp16"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_the_precision_of_a_gpu_follows_its_generation(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], expected: str
):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert machine.fastest_precision(torch.device("cuda")) == expected


def test_other_devices_take_fp32():
    assert machine.fastest_precision(torch.device("mps")) == "fp32"


@pytest.mark.parametrize("fastest", ["fp32", "bf16"])
def test_auto_converts_loaded_models_and_copies_given_ones(monkeypatch: pytest.MonkeyPatch, fastest: str):
    monkeypatch.setattr(machine, "_cpu_precision", lambda: fastest)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[fastest]
    loaded = Upscaler().operator
    assert next(loaded.parameters()).dtype == dtype
    given = Upscaler(precision="fp32").operator
    assert next(Upscaler(model=given).operator.parameters()).dtype == dtype
    assert next(given.parameters()).dtype == torch.float32
    half = given.to(torch.float16)
    assert Upscaler(model=half).operator is half


@pytest.mark.parametrize("own", [None, "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"])
def test_waiting_threads_sleep_soon_unless_the_environment_sets_it(monkeypatch: pytest.MonkeyPatch, own: str | None):
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    if own is not None:
        monkeypatch.setenv(own, "7")
    machine.wait_briefly()
    now = {name: os.environ[name] for name in names if name in os.environ}
    assert now == ({own: "7"} if own else {"GOMP_SPINCOUNT": str(machine.SPIN_COUNT), "KMP_BLOCKTIME": "0"})
    for name in names:  # also what the function has set
        monkeypatch.delenv(name, raising=False)
