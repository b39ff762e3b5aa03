"""Encoding in strips, with progress."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from srno.config import EDSRConfig, RDNConfig
from srno.field.encode import encode
from srno.operator.encoder import make_encoder

ENCODERS = {
    "edsr": make_encoder(EDSRConfig(channels=4, blocks=2)),
    "rdn": make_encoder(RDNConfig(channels=4, growth=4, blocks=2, layers=2)),
}


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(sorted(ENCODERS)))
def test_progress_rises_to_one_and_does_not_change_the_features(rows: int, height: int, name: str):
    encoder, image, shares = ENCODERS[name], torch.rand(1, 3, height, 5), list[float]()
    with torch.no_grad():
        with_progress = encode(encoder, image, rows, shares.append)
        assert torch.equal(with_progress, encode(encoder, image, rows))
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5
    assert shares[-1] == 1
    before = len(shares)
    encoder(image)  # the encoder itself has no hooks: other threads may use it at the same time
    assert len(shares) == before


def test_progress_can_cancel():
    def stop(_share: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        encode(ENCODERS["edsr"], torch.rand(1, 3, 9, 9), 9, stop)
