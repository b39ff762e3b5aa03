"""Streamed sums equal those of the equations on all points at once, and do not depend on the pieces."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import srno
from rivals.rival_models import CONFIGS as RIVALS
from rivals.rival_models import random_rival
from small_models import CONFIGS, grid_queries, random_image, random_model
from srno.analysis import LatentSummary, basis_maps, choose_by_energy, kernel_distance, summarise
from srno.analysis.summary import halves
from srno.errors import SRNOError
from srno.operator.srno import SRNO

SIZE = (17, 23)
MODELS = ["edsr", "edsr-one-layer", "edsr-nearest"]


def textbook(model: SRNO, image: torch.Tensor, size: tuple[int, int]) -> dict[str, list[np.ndarray]]:
    """z, Q, K, V and M of every layer by the paper's equations, all points at once."""
    coords, cell = grid_queries((image.shape[-2], image.shape[-1]), size)
    z = model.lifting(model.encoder(image), *model.clip_cell(coords, cell, size))
    found: dict[str, list[torch.Tensor]] = {"z": [z[0]], "q": [], "k": [], "v": [], "M": []}
    for layer in model.kernel_layers():
        for name, linear in (("q", layer.query), ("k", layer.key), ("v", layer.value)):
            found[name].append(linear(z)[0])
        found["M"].append(layer.integral(z)[0])
        z = layer(z)
        found["z"].append(z[0])
    return {name: [each.detach().numpy() for each in values] for name, values in found.items()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("memory", ["1M", None])
def test_spectra_energies_and_kernels_are_those_of_the_equations(name: str, memory: str | None):
    model, image = random_model(CONFIGS[name]), random_image(5, 7)
    summary = summarise(srno.lift(model, image, memory=memory), SIZE)
    expected = textbook(model, image, SIZE)
    assert summary.points == SIZE[0] * SIZE[1]
    np.testing.assert_allclose(summary.kernels, np.stack(expected["M"]), atol=1e-10)
    for matrix in ("z", "q", "k", "v"):
        assert summary.count(matrix) == len(expected[matrix])
        for t, values in enumerate(expected[matrix]):
            spectrum = np.linalg.svd(values, compute_uv=False)
            # a singular value from a Gram matrix is exact to the square root of the rounding
            np.testing.assert_allclose(summary.spectrum(matrix, t), spectrum, atol=1e-7 * spectrum[0])
            np.testing.assert_allclose(summary.energy(matrix, t), values.var(0), atol=1e-10 * values.var(0).max())


def test_coercivity_is_the_smallest_cosine_between_the_subspaces():
    model, image = random_model(CONFIGS["edsr"]), random_image(6, 6)
    summary, expected = summarise(srno.lift(model, image), SIZE), textbook(model, image, SIZE)
    heads, width = summary.kernels.shape[1:3]
    for t in range(summary.layers):
        found = summary.coercivity(t)
        for head in range(heads):
            columns = slice(head * width, (head + 1) * width)
            q, v = (np.linalg.qr(expected[name][t][:, columns])[0] for name in "qv")
            assert found[head] == pytest.approx(np.linalg.svd(q.T @ v, compute_uv=False)[-1], abs=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_maps_are_the_columns_at_their_pixels(name: str):
    model, image = random_model(CONFIGS[name]), random_image(5, 7)
    field, expected = srno.lift(model, image), textbook(model, image, SIZE)
    found = basis_maps(field, SIZE, {"z": (1, 4), "q": (0,), "k": (3, 2, 1), "v": (5,)})
    for matrix, columns in found.channels.items():
        for t, maps in enumerate(found.maps[matrix]):
            want = expected[matrix][t][:, list(columns)].T.reshape(len(columns), *SIZE)
            np.testing.assert_allclose(maps, want, atol=1e-5 * np.abs(want).max())


def test_the_chosen_columns_have_the_largest_energy():
    model, image = random_model(CONFIGS["edsr"]), random_image(6, 7)
    summary, expected = summarise(srno.lift(model, image), SIZE), textbook(model, image, SIZE)
    for matrix, columns in choose_by_energy(summary, 3).items():
        shares = np.sum([each.var(0) / each.var(0).sum() for each in expected[matrix]], axis=0)
        assert list(columns) == sorted(range(12), key=lambda column: -shares[column])[:3]


def test_the_cell_clip_is_followed():
    field = srno.lift(random_model(CONFIGS["edsr"]), random_image(4, 4))
    clipped, unclipped = (summarise(field, (24, 24), cell_clip=clip).kernels for clip in (True, False))
    assert kernel_distance(clipped, unclipped).min() > 1e-6


def test_a_wrong_channel_and_a_model_without_layers_are_refused():
    field = srno.lift(random_model(CONFIGS["edsr"]), random_image(4, 4))
    with pytest.raises(SRNOError, match="channels 12 of q: there are 0 … 11"):
        basis_maps(field, (8, 8), {"q": (12,)})
    with pytest.raises(SRNOError, match="LIIF has no Galerkin layers"):
        summarise(srno.lift(random_rival(RIVALS["liif"]), random_image(4, 4)), (8, 8))


def test_halves_cover_the_picture():
    pixels = np.arange(5 * 6 * 3, dtype=np.float32).reshape(5, 6, 3)
    found = halves(pixels)
    np.testing.assert_array_equal(np.concatenate([found["left"], found["right"]], axis=1), pixels)
    assert (found["upper"].shape, found["lower"].shape) == ((2, 6, 3), (2, 6, 3))
    np.testing.assert_array_equal(found["lower"], pixels[3:])


PEAK = """
import torch, srno
from srno.analysis import summarise
from srno.evaluation.forms import resident_peak
from srno.config import EDSRConfig, SRNOConfig

torch.set_num_threads(1)
config = SRNOConfig(encoder=EDSRConfig(channels=8, blocks=1), d_z=64, heads=4, iterations=1, projection_width=8)
model = srno.SRNO(config).eval().requires_grad_(False)
summarise(srno.lift(model, torch.zeros(3, 16, 16), memory="8M"), (64, 64))
field = srno.lift(model, torch.zeros(3, 32, 512), memory="8M")
print(resident_peak(lambda: summarise(field, (64, 4096)) and None))
"""


def test_memory_does_not_grow_with_the_output():
    """z of this output has 67 MB in one state; the sums need a share of it that the budget of 8 MB bounds."""
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 40e6


def test_a_summary_holds_only_sums():
    small, large = (summarise(srno.lift(random_model(CONFIGS["edsr"]), random_image(4, 4)), (n, n)) for n in (8, 40))
    sizes = [sum(array.nbytes for array in arrays(each)) for each in (small, large)]
    assert sizes[0] == sizes[1]


def arrays(summary: LatentSummary) -> list[np.ndarray]:
    return [summary.moments, summary.kernels, *summary.maps.values()]
