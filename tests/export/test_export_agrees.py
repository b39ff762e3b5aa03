"""The graphs in onnxruntime against the engine: every system, any size, in one piece and in tiles."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import srno
from export.exported import (
    ALL,
    ALLOWED,
    KERNELS,
    difference,
    engine,
    exporter,
    load_client,
    open_session,
    picture,
    run_session,
    run_whole,
    tame_model,
    whole_session,
)
from srno.checkpoints.catalogue import load
from srno.checkpoints.native import Card
from srno.export.export import Exporter, GraphPrecision, save_onnx
from srno.operator.model import Model

POINTS = 60
BANDED = ("edsr", "edsr-one-layer", "edsr-narrow-heads", "rdn-nearest", "lte", "rdn-x4")


@dataclass(frozen=True)
class Job:
    """A picture and its new size, by a scale for each axis."""

    lr: tuple[int, int]
    scale: tuple[float, float]

    @property
    def image(self) -> np.ndarray:
        return picture(*self.lr, seed=self.lr[0])

    @property
    def size(self) -> tuple[int, int]:
        height, width = (max(1, round(side * scale)) for side, scale in zip(self.lr, self.scale, strict=True))
        return height, width


jobs = st.builds(Job, st.tuples(*[st.integers(1, 14)] * 2), st.tuples(*[st.floats(0.5, 6)] * 2))


@settings(max_examples=80)
@given(st.sampled_from(sorted(ALL)), jobs)
def test_any_system_and_size(name: str, job: Job):
    actual = run_whole(whole_session(name), job.image, job.size)
    assert difference(actual, engine(tame_model(name), job.image, job.size)) < ALLOWED["fp32"]


@settings(max_examples=40)
@given(st.sampled_from(KERNELS), jobs)
def test_integrals_from_points(name: str, job: Job):
    actual = run_whole(whole_session(name, POINTS), job.image, job.size)
    assert difference(actual, engine(tame_model(name), job.image, job.size, POINTS)) < ALLOWED["fp32"]


def test_values_are_clipped_to_the_range():
    image = np.indices((1, 3, 8, 8)).sum(0).astype(np.float32) % 2
    actual, expected = run_whole(whole_session("edsr"), image, (20, 20)), engine(tame_model("edsr"), image, (20, 20))
    assert (actual.min(), actual.max()) == (0, 1)
    assert 2 * np.abs(actual - expected).max() < ALLOWED["fp32"]


def test_points_are_an_estimate_of_the_exact_integral():
    """A graph that ignored the number of points would pass the tests above with the wrong engine."""
    image, size = picture(12, 12), (40, 40)
    exact, estimate = (run_whole(whole_session("edsr", points), image, size) for points in (None, POINTS))
    assert 1e-4 < np.abs(exact - estimate).max() < 0.1


@pytest.mark.parametrize("name", sorted(ALL))
def test_half_precision(name: str):
    image, size = picture(11, 8), (29, 31)
    actual = run_whole(whole_session(name, None, "fp16"), image, size)
    assert difference(actual, engine(tame_model(name), image, size)) < ALLOWED["fp16"]


@settings(max_examples=25)
@given(st.sampled_from(sorted(ALL)), jobs, st.data())
def test_a_tile_equals_the_crop_of_the_whole(name: str, job: Job, data: st.DataObject):
    top, left = (data.draw(st.integers(0, side - 1)) for side in job.size)
    bottom, right = (data.draw(st.integers(start + 1, side)) for start, side in zip((top, left), job.size, strict=True))
    inputs = {"image": job.image, "size": np.array(job.size), "tile": np.array([top, left, bottom, right])}
    parts = part_sessions(name)
    inputs["features"] = run_part(parts["encoder"], inputs)[0]
    if "integral" in parts:
        inputs["A"], inputs["a"] = run_part(parts["integral"], inputs)
    (tile,) = run_part(parts["render"], inputs)
    whole = engine(tame_model(name), job.image, job.size, POINTS)
    assert 2 * np.abs(tile - whole[:, :, top:bottom, left:right]).max() < ALLOWED["fp32"]


@cache
def part_sessions(name: str) -> dict[str, onnxruntime.InferenceSession]:
    return {part: open_session(graph) for part, graph in exporter(name, POINTS).parts().items()}


def run_part(session: onnxruntime.InferenceSession, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    return run_session(session, {each.name: inputs[each.name] for each in session.get_inputs()})


@pytest.mark.parametrize("name", BANDED)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_the_client_gives_the_whole_picture_in_any_bands(tmp_path: Path, name: str, precision: GraphPrecision):
    save_onnx(tame_model(name), tmp_path / "model.onnx", parts=True, precision=precision)
    image, size = picture(21, 13), (47, 40)
    expected = engine(tame_model(name), image, size)
    client = load_client()
    for strip, band in ((128, 1 << 16), (5, 300), (1, 1)):
        client.STRIP_ROWS, client.BAND_PIXELS = strip, band
        bands = list(client.enlarge(str(tmp_path / "model"), image, np.array(size)))
        assert len(bands) == -(-size[0] // max(1, band // size[1]))
        assert difference(np.concatenate(bands, axis=2), expected) < ALLOWED[precision]


@pytest.mark.parametrize("points", [None, 2000])
def test_shipped_weights_on_a_photograph(points: int | None):
    model = shipped()
    image = photograph()
    session = open_session(Exporter(model=model, card=Card(name="light"), points=points).whole())
    for size in ((60, 72), (97, 181), (131, 60)):
        actual, expected = run_whole(session, image, size), engine(model, image, size, points)
        assert np.mean((expected > 0) & (expected < 1)) > 0.9
        assert 2 * np.abs(actual - expected).max() < ALLOWED["fp32"]


def test_shipped_weights_in_half_precision():
    model, image = shipped(), photograph()
    session = open_session(Exporter(model=model, card=Card(name="light"), precision="fp16").whole())
    error = run_whole(session, image, (97, 111)) - engine(model, image, (97, 111))
    assert 2 * np.abs(error).max() < 1e-2
    assert 10 * np.log10(1 / np.mean(error**2)) > 60


def shipped() -> Model:
    return load("default").requires_grad_(False)


def photograph() -> np.ndarray:
    """(1, 3, 30, 36) in [0, 1]."""
    pixels = np.asarray(Image.open(Path(srno.__file__).parent / "examples" / "cat.png").convert("RGB"))
    return (pixels[60:90, 100:136].transpose(2, 0, 1)[None] / np.float32(255)).astype(np.float32)
