"""srno.upscale and its neighbours: wrong arguments are named, and every kind of file is taken."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import srno
from imaging.making import P3, camera_exif, noise, png, tiff
from small_models import CONFIGS, random_model
from srno.imaging.read import read

ARRAY = noise(6, 8, 3)


@pytest.fixture(scope="module")
def model() -> Any:
    return random_model(CONFIGS["edsr"], dtype=torch.float32).eval()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A picture with 16-bit colour."""
    path = tmp_path / "deep.png"
    path.write_bytes(png(noise(6, 8, 3, bits=16)))
    return path


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"scale": [2, 3]}, r"scale \[2, 3\]"),
    ({"scale": (2, 3, 4)}, "scale"),
    ({"scale": True}, "scale True"),
    ({"size": 40}, "size 40"),
    ({"size": (40,)}, r"size \(40,\)"),
    ({"size": (40.5, 3)}, "size"),
    ({"size": {40, 30}}, "size"),
    ({"size": {40: 0, 30: 0}}, "size"),
    ({"width": 50.5}, "width 50.5"),
    ({"height": True}, "height True"),
    ({"device": torch.device("cpu")}, "device"),
    ({"memory": [1]}, "memory"),
    ({"integral": 1.5}, "integral 1.5"),
    ({"ensemble": 3}, "ensemble 3"),
    ({"precision": [1]}, "precision"),
    ({"alpha": 1}, "alpha 1"),
    ({"model": None}, "model"),
    ({"progress": 5}, "progress 5"),
    ({"quality": 90}, "output"),
]


@pytest.mark.parametrize(("options", "words"), OPTIONS)
def test_a_wrong_option_is_named(options: dict[str, Any], words: str):
    with pytest.raises(srno.SRNOError, match=words):
        srno.upscale(ARRAY, **options)


def closed_image() -> Image.Image:
    image = Image.new("RGB", (4, 4))
    image.close()
    return image


def cut_image() -> Image.Image:
    """Pillow finds out that the file is cut short only when the samples are needed."""
    stream = io.BytesIO()
    Image.fromarray(noise(90, 90, 3)).save(stream, "JPEG")
    return Image.open(io.BytesIO(stream.getvalue()[:2000]))


@pytest.mark.parametrize(
    "image",
    [torch.rand(3, 4, 4).to_sparse(), torch.empty(3, 4, 4, device="meta"), closed_image(), cut_image()],
    ids=["sparse", "meta", "closed", "cut"],
)
def test_pictures_without_values_are_refused(image: Any):
    with pytest.raises(srno.SRNOError):
        srno.upscale(image)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_tensors_of_every_float_keep_their_type(model: Any, dtype: torch.dtype, recwarn: pytest.WarningsRecorder):
    image = torch.rand(3, 6, 8, dtype=dtype, generator=torch.Generator().manual_seed(0)).requires_grad_()
    large = srno.upscale(image, model=model)
    assert (large.dtype, large.shape) == (dtype, (3, 12, 16))
    reference = srno.upscale(image.detach().float(), model=model)
    assert torch.allclose(large.float(), reference, atol=1e-2)
    assert not recwarn


@pytest.mark.parametrize(
    "image",
    [None, 5, {1}, b"", b"text", io.StringIO("text"), np.zeros((0, 4, 3), np.uint8), np.full((4, 4), np.nan)],
)
def test_what_is_not_a_picture_is_refused(image: Any):
    with pytest.raises(srno.SRNOError):
        srno.upscale(image)


def test_wrong_arguments_of_fields_and_models_are_named(model: Any):
    field = srno.lift(model, torch.zeros(3, 6, 8))
    point, cell = torch.zeros(5, 2), torch.ones(2)
    calls: dict[str, Callable[[], object]] = {
        "size 8": lambda: field.render(8),  # type: ignore[arg-type]
        r"size \(True, 8\)": lambda: field.render((True, 8)),
        "sparse": lambda: srno.lift(model, torch.zeros(3, 4, 4).to_sparse()),
        "without values": lambda: srno.lift(model, torch.zeros(3, 4, 4, device="meta")),
        "region": lambda: field.render((8, 8), region=(1, 2)),  # type: ignore[arg-type]
        "coords": lambda: field(torch.zeros(5, 3), cell),
        "cell": lambda: field(point, torch.zeros(2)),
        "ndarray": lambda: srno.lift(model, ARRAY),  # type: ignore[arg-type]
        "not empty": lambda: srno.lift(model, torch.zeros(3, 0, 4)),
        "uint8": lambda: srno.lift(model, torch.zeros(3, 4, 4, dtype=torch.uint8)),
        "255": lambda: srno.lift(model, torch.full((3, 4, 4), 255.0)),
        "nan": lambda: srno.lift(model, torch.full((3, 4, 4), torch.nan)),
        "model is a str": lambda: srno.lift("light", torch.zeros(3, 4, 4)),  # type: ignore[arg-type]
        "no model": lambda: srno.load(Image.fromarray(ARRAY)),  # type: ignore[arg-type]
        "device 'there'": lambda: srno.load(device="there"),
        "neither a preset": lambda: srno.create_model(5),  # type: ignore[arg-type]
        "path 5": lambda: srno.save(model, 5),  # type: ignore[arg-type]
    }
    for words, call in calls.items():
        with pytest.raises(srno.SRNOError, match=words):
            call()
    assert repr(field) == f"Field(SRNO, 6×8 pixels, {model.encoder.channels} features)"


def test_every_kind_of_file_is_the_same_picture(model: Any, path: Path):
    class OtherPath(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(path)

    expected = srno.upscale(path, model=model)
    assert isinstance(expected, np.ndarray)
    data = path.read_bytes()
    for image in (str(path), OtherPath(), data, bytearray(data), memoryview(data), io.BytesIO(data)):
        assert np.array_equal(np.asarray(srno.upscale(image, model=model)), expected)
    with path.open("rb") as file:
        assert np.array_equal(np.asarray(srno.upscale(file, model=model)), expected)
    several = srno.upscale((each for each in (path, data)), model=model)
    assert [np.array_equal(np.asarray(one), expected) for one in several] == [True, True]


@pytest.mark.parametrize("source", ["path", "bytes"])
def test_output_keeps_what_the_command_keeps(model: Any, tmp_path: Path, source: str):
    data = tiff(noise(6, 8, 3, bits=16), photometric="rgb", iccprofile=P3)
    (tmp_path / "in.tif").write_bytes(data)
    image = tmp_path / "in.tif" if source == "path" else data
    written = srno.upscale(image, output=tmp_path / "out.png", scale=1.5, model=model)
    picture = read(written)
    assert (written, picture.size, picture.bits, picture.icc) == (tmp_path / "out.png", (12, 9), 16, P3)
    with pytest.raises(srno.SRNOError, match="overwrite=True"):
        srno.upscale(image, output=tmp_path / "out.png", model=model)
    srno.upscale(image, output=tmp_path / "out.png", overwrite=True, model=model)
    assert read(written).size == (16, 12)


def test_output_keeps_exif_and_comes_from_files_only(model: Any, tmp_path: Path):
    Image.fromarray(ARRAY).save(tmp_path / "in.jpg", exif=camera_exif(1))
    written = srno.upscale(tmp_path / "in.jpg", output=str(tmp_path / "out.jpg"), quality=80, model=model)
    assert read(written).exif is not None
    for image in (ARRAY, [tmp_path / "in.jpg"]):
        with pytest.raises(srno.SRNOError, match="output is for one picture"):
            srno.upscale(image, output=tmp_path / "other.jpg", model=model)  # type: ignore[call-overload]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"quality": 0}, "quality 0"),
        ({"overwrite": "yes"}, "overwrite 'yes'"),
        ({"output": ""}, "output is empty"),
    ]
    for options, words in wrong:
        every: dict[str, Any] = {"output": tmp_path / "other.jpg", "model": model, **options}
        with pytest.raises(srno.SRNOError, match=words):
            srno.upscale(tmp_path / "in.jpg", **every)
