"""The rivals' weights: the public layouts, and ours."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from public_layouts import as_public, mean_shift
from rival_models import CONFIGS, FIXED, POINTWISE, random_rival
from torch import Tensor

from parity_checkpoints import PARITY_FIXTURES
from small_models import EDSR, random_coords, random_image
from srno.checkpoints.catalogue import read_checkpoint
from srno.checkpoints.native import Card, Checkpoint, write_checkpoint
from srno.checkpoints.public import read_public
from srno.config import EDSRConfig, FixedScaleConfig, ModelConfig
from srno.errors import SRNOError
from srno.operator.grid import cell_of, make_grid, pixel_centres
from srno.operator.model import Model
from srno.rivals.fixed import FixedScale
from srno.rivals.lte import LTE

PUBLIC = [
    *((name, name.partition("-")[0], POINTWISE[name]) for name in POINTWISE if not name.startswith("mlp")),
    *((f"{name}+", "lte-fast", POINTWISE[name]) for name in ("lte", "lte-rdn")),
    *((name, name.partition("-")[0], FIXED[name]) for name in FIXED if "shifted" not in name),
]


@pytest.mark.parametrize("system", ["liif", "lte", "lte-fast", "metasr"])
@pytest.mark.parametrize("picture", range(3))
def test_parity_with_public_code(parity_folder: Path, system: str, picture: int) -> None:
    """Whole grids, all rows and columns: none of these sizes puts a query on the last pixel's centre."""
    model: Any = read_checkpoint(parity_folder / f"{system}.pth").model()
    answers = np.load(PARITY_FIXTURES / f"{system}.npz")
    image = torch.from_numpy(answers[f"image{picture}"]).permute(2, 0, 1).unsqueeze(0) * 2 - 1
    expected = torch.from_numpy(answers[f"expected{picture}"])
    size, lr_size = expected.shape[:2], image.shape[-2:]
    coords = make_grid(*size).reshape(1, -1, 2)
    cell = cell_of(size[0] / lr_size[0], size[1] / lr_size[1])
    with torch.no_grad():
        features = model.encoder(image)
        forms = [model.reference(image, coords, cell), model.prepare(features, image, cell)(coords)]
        if isinstance(model, LTE):
            maps = model.prepare_maps(features, image, cell)(*(pixel_centres(n) for n in size))
            forms.append(maps.flatten(2).transpose(1, 2))
    for rgb in forms:
        assert (rgb.reshape(*size, 3) * 0.5 + 0.5 - expected).abs().max() < 1e-5


@pytest.mark.parametrize(("name", "config"), [(name, config) for _, name, config in PUBLIC], ids=[c[0] for c in PUBLIC])
def test_a_public_checkpoint_loads_as_the_same_model(tmp_path: Path, name: str, config: ModelConfig) -> None:
    model = random_rival(config)
    torch.save(as_public(model, name), tmp_path / "public.pth")
    assert_same(read_checkpoint(tmp_path / "public.pth"), model)


def test_a_fixed_scale_checkpoint_without_prefix_loads(tmp_path: Path) -> None:
    model = random_rival(FIXED["rdn-x4"])
    content = as_public(model, "rdn")
    content["model"]["sd"] = {key.removeprefix("encoder."): value for key, value in content["model"]["sd"].items()}
    torch.save(content, tmp_path / "public.pth")
    assert_same(read_checkpoint(tmp_path / "public.pth"), model)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_saving_a_loaded_model_gives_the_same_file(tmp_path: Path, config: ModelConfig) -> None:
    model = random_rival(config, dtype=torch.float32)
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    write_checkpoint(Checkpoint(config=config, state=model.state_dict(), card=Card(name="rival")), first)
    read = read_checkpoint(first)
    assert_same(read, model)
    write_checkpoint(Checkpoint(config=config, state=read.model().state_dict(), card=read.card), second)
    assert first.read_bytes() == second.read_bytes()


def assert_same(checkpoint: Checkpoint, model: Model) -> None:
    """Check that config and output are equal, bit for bit."""
    assert checkpoint.config == model.config
    dtype = next(model.parameters()).dtype
    image, coords = random_image(3, 4).to(dtype), random_coords(9)
    with torch.no_grad():
        assert torch.equal(
            checkpoint.model()(image, coords, cell_of(2.3, 3.1)), model(image, coords, cell_of(2.3, 3.1))
        )


@pytest.mark.parametrize(("channels", "damping"), [(6, 1.0), (256, 0.1)])
@pytest.mark.parametrize("scale", [2, 3, 4])
def test_the_original_edsr_equals_its_arithmetic(tmp_path: Path, channels: int, damping: float, scale: int) -> None:
    """The original files, against the original arithmetic on 0…255."""
    encoder = EDSRConfig(channels=channels, blocks=1)
    donor = random_rival(FixedScaleConfig(encoder=encoder, scale=scale))
    public = as_public(donor, "edsr")["model"]["sd"]
    state = {key.removeprefix("encoder."): value for key, value in public.items()}
    state |= {key: value.double() for key, value in mean_shift(255).items()}
    torch.save(state, tmp_path / "edsr.pt")
    model = read_checkpoint(tmp_path / "edsr.pt").model()
    assert isinstance(model, FixedScale)
    assert model.config == FixedScaleConfig(encoder=encoder, scale=scale, mean_shift=True)
    values = (random_image(4, 5) + 1) * 127.5
    with torch.no_grad():
        ours = (model.upscale(values / 127.5 - 1) + 1) * 127.5
    torch.testing.assert_close(ours, original_edsr(state, values, scale, damping), rtol=0, atol=1e-9)


def original_edsr(state: dict[str, Tensor], values: Tensor, scale: int, damping: float) -> Tensor:
    """(B, 3, h, w) in 0…255 → (B, 3, s·h, s·w), for one residual block."""

    def conv(x: Tensor, name: str) -> Tensor:
        return F.conv2d(
            x, state[f"{name}.weight"], state[f"{name}.bias"], padding=state[f"{name}.weight"].shape[-1] // 2
        )

    shallow = conv(conv(values, "sub_mean"), "head.0")
    block = shallow + damping * conv(conv(shallow, "body.0.body.0").relu(), "body.0.body.2")
    x = shallow + conv(block, "body.1")
    for step, factor in enumerate((2, 2) if scale == 4 else (scale,)):
        x = F.pixel_shuffle(conv(x, f"tail.0.{2 * step}"), factor)
    return conv(conv(x, "tail.1"), "add_mean")


def broken(change: dict[str, Tensor | None], *, args: dict[str, Any] | None = None) -> dict[str, Any]:
    """A public LIIF checkpoint with tensors replaced, or removed if None."""
    content = as_public(random_rival(POINTWISE["liif"]), "liif")
    content["model"]["args"] = args or {}
    state = content["model"]["sd"] | change
    content["model"]["sd"] = {key: tensor for key, tensor in state.items() if tensor is not None}
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (broken({"imnet.layers.0.weight": None}), "imnet.layers.0.weight is missing"),
        (broken({"imnet.layers.2.bias": None}), "imnet.layers.2.bias is missing"),
        (broken({"imnet.layers.2.weight": torch.zeros(9, 8)}), "shape"),
        (broken({"imnet.layers.0.weight": torch.zeros(())}), "shape"),
        (broken({"imnet.layers.2.weight": torch.zeros(9)}), "shape"),
        (broken({"surplus": torch.zeros(1)}), "unknown tensor surplus"),
        (broken({}, args={"local_ensemble": False}), "local_ensemble"),
        (broken({}) | {"model": {"name": "rdn", "sd": broken({})["model"]["sd"]}}, "tail.0.0.weight is missing"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(tmp_path: Path, content: dict[str, Any], message: str) -> None:
    path = tmp_path / "broken.pth"
    torch.save(content, path)
    with pytest.raises(SRNOError, match=message) as caught:
        read_public(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_original_edsr_in_another_range_is_refused(tmp_path: Path) -> None:
    donor = random_rival(FixedScaleConfig(encoder=EDSR))
    public = as_public(donor, "edsr")["model"]["sd"]
    torch.save({key.removeprefix("encoder."): value for key, value in public.items()}, tmp_path / "edsr.pt")
    with pytest.raises(SRNOError, match="sub_mean"):
        read_public(tmp_path / "edsr.pt")
