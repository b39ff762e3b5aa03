"""Parameter counts of the published models, and of ours."""

import pytest
import torch

from srno.checkpoints.build import create_model
from srno.config import preset


def counts(name: str) -> tuple[int, int]:
    """Parameters of the whole model, and of the part after the encoder."""
    with torch.device("meta"):
        model = create_model(preset(name))
    whole = sum(parameter.numel() for parameter in model.parameters())
    return whole, whole - sum(parameter.numel() for parameter in model.encoder.parameters())


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("edsr-baseline", 2_015_299),
        ("edsr-baseline-h", 2_015_299),
        ("edsr-baseline-w", 1_454_531),
        ("edsr-baseline-l", 1_685_315),
        ("light", 557_091),
    ],
)
def test_parameters_of_whole_models(name: str, whole: int) -> None:
    assert counts(name)[0] == whole


@pytest.mark.parametrize("encoder", ["edsr-baseline", "rdn"])
def test_decoder_does_not_depend_on_the_encoder(encoder: str) -> None:
    assert counts(encoder)[1] == counts(f"{encoder}-h")[1] == 794_883


def test_parameters_of_rdn() -> None:
    assert round(counts("rdn")[0] / 1e6, 1) == 22.8
    assert round((counts("rdn")[0] - counts("rdn")[1]) / 1e6) == 22


def test_nearest_lifting_is_narrower() -> None:
    """180 fewer inputs in place of offsets and weighted neighbours: 64 + 20 + 2 instead of 8 + 256 + 2."""
    assert counts("edsr-baseline")[1] - counts("edsr-baseline-i")[1] == (266 - 86) * 256


def test_weights_of_the_edsr_encoder() -> None:
    with torch.device("meta"):
        encoder = create_model(preset("edsr-baseline")).encoder
    weights = sum(parameter.numel() for name, parameter in encoder.named_parameters() if name.endswith("weight"))
    assert weights == 1_218_240
