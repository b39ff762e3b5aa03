"""Parameters and FLOPs of the rivals, against the published numbers."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from srno.checkpoints.build import create_model
from srno.config import preset
from srno.operator.grid import cell_of, make_grid

PARAMETERS = {
    "liif/edsr-baseline": 1_567_299,
    "liif/rdn": 22_320_835,
    "lte/edsr-baseline": 1_714_243,
    "lte/rdn": 22_467_779,
    "metasr/edsr-baseline": 1_665_536,
    "metasr/rdn": 22_419_072,
    "edsr/x2": 1_369_859,
    "edsr/x3": 1_554_499,
    "edsr/x4": 1_517_571,
    "rdn/x2": 22_123_395,
    "rdn/x3": 22_308_035,
    "rdn/x4": 22_271_107,
}
GFLOPS = {
    "liif/edsr-baseline": (85.25, 85.0),
    "lte/edsr-baseline": (75.49, 75.3),
    "liif/rdn": (765.06, 765.2),
    "lte/rdn": (755.30, 755.5),
}
"""Counted and as published, for 128² pixels and 128² queries."""


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items())
def test_parameter_counts_are_exact(name: str, parameters: int) -> None:
    with torch.device("meta"):
        model = create_model(preset(name))
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize("system", ["liif", "lte", "metasr", "mlp"])
def test_rivals_have_the_encoder_of_the_preset(system: str) -> None:
    for encoder in ("edsr-baseline", "rdn", "light"):
        assert preset(f"{system}/{encoder}").encoder == preset(encoder).encoder


@pytest.mark.parametrize(("name", "gflops"), GFLOPS.items())
def test_flops_match_the_paper(name: str, gflops: tuple[float, float]) -> None:
    with torch.device("meta"), FlopCounterMode(display=False) as counter, torch.no_grad():
        model = create_model(preset(name))
        model.reference(torch.empty(1, 3, 128, 128), make_grid(128, 128).unsqueeze(0), cell_of(1, 1))
    for expected in gflops:
        assert counter.get_total_flops() == pytest.approx(expected * 1e9, rel=0.005)
