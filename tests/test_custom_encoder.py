"""An encoder of the user's own, through everything: the model, training, files, pictures and the commands."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import srno
from command_runs import run
from srno.config import EDSRConfig, SRNOConfig
from training.small_runs import SMALL, make_pictures, small_config

CONFIG = SRNOConfig(encoder=EDSRConfig(channels=4, blocks=1), d_z=8, heads=2, iterations=1, projection_width=8)


class SmallEncoder(nn.Module):
    """Two convolutions, with what the library asks for: channels and radius."""

    channels, radius = 6, 2

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        return self.second(self.first(image).relu())


NAME = f"{__name__}:SmallEncoder"


def test_a_field_in_pieces_equals_the_model_on_a_batch():
    torch.manual_seed(0)
    model = srno.SRNO(CONFIG, SmallEncoder()).eval()
    image = torch.rand(3, 40, 30) * 2 - 1
    size = (90, 77)
    field = srno.lift(model, image, memory="1M")
    with torch.no_grad():
        expected = model(image[None], size=size)[0]
    assert (field.render(size, integral="exact") - expected).abs().max() < 2e-5


def test_a_saved_model_names_the_class_and_needs_an_instance(tmp_path: Path):
    model = srno.SRNO(CONFIG, SmallEncoder())
    srno.save(model, tmp_path / "m.safetensors")
    with pytest.raises(srno.SRNOError, match=NAME):
        srno.load(tmp_path / "m.safetensors")
    again = srno.load(tmp_path / "m.safetensors", encoder=SmallEncoder())
    assert again.config == model.config
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor)


def test_training_upscaling_and_both_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    data = make_pictures(tmp_path / "data")
    best = srno.train(small_config(data, steps=2), tmp_path / "run", encoder=SmallEncoder())
    model = srno.load(best, encoder=SmallEncoder())
    image = np.random.default_rng(0).integers(256, size=(9, 12, 3), dtype=np.uint8)
    large = srno.upscale(image, model=model)
    assert large.shape == (18, 24, 3)

    Image.fromarray(image).save(tmp_path / "in.png")
    words = (tmp_path / "in.png", "-o", tmp_path / "out.png", "-m", tmp_path / "run", "--encoder", NAME)
    code, _, err = run(capsys, "upscale", *words)
    assert code == 0, err
    assert np.array_equal(np.asarray(Image.open(tmp_path / "out.png")), large)

    words = ("--data", data, "--out", tmp_path / "other", "--steps", "1", "--encoder", NAME, *SMALL)
    code, _, err = run(capsys, "train", *words)
    assert code == 0, err
    code, _, err = run(capsys, "upscale", tmp_path / "in.png", "-o", tmp_path / "o.png", "-m", tmp_path / "other")
    assert (code, NAME in err) == (2, True), err


class Halving(SmallEncoder):
    """Breaks the contract: its features have half the size of the picture."""

    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image)[..., ::2, ::2]


class Wide(SmallEncoder):
    """Breaks the contract: it has more channels than it says."""

    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image).repeat(1, 2, 1, 1)


@pytest.mark.parametrize(("encoder", "shape"), [(Halving, "(1, 6, 4, 5)"), (Wide, "(1, 12, 8, 10)")])
def test_features_of_another_shape_are_refused(encoder: type[SmallEncoder], shape: str):
    model = srno.SRNO(CONFIG, encoder()).eval()
    image = torch.zeros(3, 8, 10)
    for evaluate in (lambda: srno.lift(model, image), lambda: model(image[None], size=(16, 20))):
        with pytest.raises(srno.SRNOError) as refusal:
            evaluate()
        assert encoder.__name__ in str(refusal.value)
        assert shape in str(refusal.value)
        assert "(1, 6, 8, 10)" in str(refusal.value)
