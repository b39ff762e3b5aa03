"""Configs as data: the round trip gives an equal config, and invalid data is refused with an error that names it."""

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srno.config import (
    PRESETS,
    EDSRConfig,
    ModelConfig,
    RDNConfig,
    SRNOConfig,
    config_from_dict,
    config_to_dict,
    preset,
)
from srno.errors import SRNOError

encoders = st.one_of(
    st.builds(EDSRConfig, channels=st.integers(1, 300), blocks=st.integers(1, 40)),
    st.builds(
        RDNConfig,
        channels=st.integers(1, 300),
        blocks=st.integers(1, 40),
        layers=st.integers(1, 20),
        growth=st.integers(1, 99),
    ),
)


@st.composite
def srno_configs(draw: st.DrawFn) -> SRNOConfig:
    heads = draw(st.integers(1, 32))
    return SRNOConfig(
        encoder=draw(encoders),
        lifting=draw(st.sampled_from(["interpolation-free", "nearest"])),
        d_z=heads * draw(st.integers(2, 64)),
        heads=heads,
        iterations=draw(st.integers(1, 9)),
        projection_width=draw(st.integers(1, 999)),
    )


def whole_numbers(config: Any) -> list[str]:
    return [entry.name for entry in fields(config) if type(getattr(config, entry.name)) is int]


@pytest.mark.parametrize("config", PRESETS.values(), ids=PRESETS.keys())
def test_presets_survive_the_round_trip(config: ModelConfig) -> None:
    assert config_from_dict(json.loads(json.dumps(config_to_dict(config)))) == config


@given(srno_configs())
def test_any_config_survives_the_round_trip(config: SRNOConfig) -> None:
    assert config_from_dict(json.loads(json.dumps(config_to_dict(config)))) == config


def test_variants_differ_in_one_field_each() -> None:
    expected = {
        "i": {"lifting": "nearest"},
        "h": {"heads": 8},
        "w": {"d_z": 128},
        "l": {"iterations": 1},
    }
    halved = expected | {"h": {"heads": 1}, "w": {"d_z": 24}}
    for base, changes in (("edsr-baseline", expected), ("rdn", expected), ("light", halved)):
        for letter, change in changes.items():
            assert config_to_dict(preset(f"{base}-{letter}")) == config_to_dict(preset(base)) | change


def test_published_sizes() -> None:
    assert preset("edsr-baseline") == SRNOConfig(
        encoder=EDSRConfig(channels=64, blocks=16),
        lifting="interpolation-free",
        d_z=256,
        heads=16,
        iterations=2,
        projection_width=256,
    )
    assert preset("rdn").encoder == RDNConfig(channels=64, blocks=16, layers=8, growth=64)


@pytest.mark.parametrize("make", [EDSRConfig, RDNConfig, SRNOConfig])
@pytest.mark.parametrize("value", [0, -3, 2.0, "8", None, True], ids=repr)
def test_sizes_must_be_whole_and_positive(make: Any, value: object) -> None:
    for name in whole_numbers(make()):
        with pytest.raises(SRNOError, match=f"^{name} is {value!r}"):
            make(**{name: value})


@pytest.mark.parametrize(("d_z", "heads"), [(256, 7), (16, 16), (8, 16)])
def test_heads_must_divide_d_z_into_two_or_more(d_z: int, heads: int) -> None:
    with pytest.raises(SRNOError, match=f"d_z {d_z} .* {heads} heads"):
        SRNOConfig(d_z=d_z, heads=heads)


def test_an_unknown_lifting_is_refused() -> None:
    with pytest.raises(SRNOError, match=r"lifting is 'bicubic'.*interpolation-free"):
        SRNOConfig(lifting="bicubic")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"system": "gan"}, "unknown system 'gan'"),
        ({"system": None}, "unknown system None"),
        ({"system": ["srno"]}, "system"),
        ({"encoder": {"family": "swin"}}, "unknown encoder family 'swin'"),
        ({"encoder": {}}, "unknown encoder family None"),
        ({"encoder": {"family": "edsr", "growth": 3}}, "growth"),
        ({"encoder": {"family": "edsr", "blocks": 0}}, "blocks is 0"),
        ({"encoder": "edsr"}, "encoder"),
        ({"encoder": None}, "encoder"),
        ({"depth_of_field": 3}, "depth_of_field"),
        ({"two\nlines": 3}, "two"),
        ({"heads": 3}, "3 heads"),
        ({"lifting": "two\nlines"}, "lifting"),
        ({"lifting": ["nearest"]}, "lifting"),
    ],
    ids=str,
)
def test_invalid_config_data_is_refused(change: dict[str, Any], named: str) -> None:
    with pytest.raises(SRNOError, match=named) as refusal:
        config_from_dict(config_to_dict(SRNOConfig()) | change)
    assert "\n" not in str(refusal.value)


def test_config_data_without_an_encoder_is_refused() -> None:
    data = config_to_dict(SRNOConfig())
    del data["encoder"]
    with pytest.raises(SRNOError, match="encoder"):
        config_from_dict(data)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(SRNOError, match=r"unknown preset 'huge'; known: edsr-baseline,"):
        preset("huge")
