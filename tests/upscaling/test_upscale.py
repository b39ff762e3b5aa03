"""srno.upscale: arrays, PIL images and paths."""

import io
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import srno
from imaging.making import P3, camera_exif, encode, noise, png
from srno.errors import SRNOError
from srno.field.ensemble import render_picture
from srno.imaging.resize import matlab_bicubic_float
from srno.upscaling.enlarge import enlarge
from srno.upscaling.sizes import make_request
from srno.upscaling.upscaler import Precision, Upscaler
from tiny_models import tiny_model, write_tiny

EXAMPLE = Path(srno.__file__).parent / "examples"
BILINEAR = tiny_model()
NOISY = tiny_model(strength=0.2)

Array = np.ndarray[Any, Any]
LAYOUTS = [(), (1,), (2,), (3,), (4,)]
DTYPES = ["uint8", "uint16", "float16", "float32", "float64"]


def samples(*shape: int, dtype: str) -> Array:
    """Random samples of any type, with some fully transparent pixels if there is alpha."""
    if dtype.startswith("float"):
        values = (noise(*shape, bits=16) / 65535).astype(dtype)
    else:
        values = noise(*shape, bits=16 if dtype == "uint16" else 8)
    if len(shape) == 3 and shape[2] in (2, 4):
        values[:2, :, -1] = 0
    return values


def bilinear(values: Array, width: int, height: int) -> Array:
    """Interpolate with torch: (h, w[, c]) → (height, width, c)."""
    planes = torch.from_numpy(values.astype(np.float64).reshape(*values.shape[:2], -1)).permute(2, 0, 1)[None]
    large = torch.nn.functional.interpolate(planes, (height, width), mode="bilinear", align_corners=False)
    return large[0].permute(1, 2, 0).numpy()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_keep_type_and_layout(layout: tuple[int, ...], dtype: str):
    image = samples(6, 9, *layout, dtype=dtype)
    before = image.copy()
    large = srno.upscale(image, scale=(2, 3), model=NOISY)
    assert (large.dtype, large.shape) == (image.dtype, (18, 18, *layout))
    assert np.array_equal(image, before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("channels", [1, 3])
def test_values_equal_the_operator_after_rounding(channels: int, dtype: str):
    image = samples(7, 5, channels, dtype=dtype)
    top = 1.0 if dtype.startswith("float") else np.iinfo(dtype).max
    large = srno.upscale(image, size=(13, 16), fit="stretch", model=BILINEAR)
    error = np.abs(large.astype(np.float64) - bilinear(image, 13, 16)).max()
    assert error <= {"float16": 1e-3, "float32": 1e-6, "float64": 1e-6}.get(dtype, 0.5 + 2e-6 * top)


def test_gray_is_the_mean_of_three_channels():
    gray = noise(8, 8)
    rgb = srno.upscale(
        np.repeat(gray[..., None], 3, axis=2) / np.float32(255), scale=2.5, model=tiny_model(strength=0.02)
    )
    mean = srno.upscale(gray / np.float32(255), scale=2.5, model=tiny_model(strength=0.02))
    inside = (rgb > 0).all(axis=2) & (rgb < 1).all(axis=2)
    assert np.ptp(rgb[inside], axis=1).max() > 1e-3
    assert np.abs(rgb.mean(axis=2) - mean)[inside].max() < 1e-6


def test_many_bands_give_the_same_picture(monkeypatch: pytest.MonkeyPatch):
    image = samples(9, 7, 4, dtype="uint8")
    whole = srno.upscale(image, scale=3, model=NOISY)
    monkeypatch.setattr("srno.upscaling.enlarge.BAND_PIXELS", 50)
    assert np.array_equal(srno.upscale(image, scale=3, model=NOISY), whole)


# Transparency


@pytest.mark.parametrize("by", ["operator", "bicubic"])
@pytest.mark.parametrize("model", [BILINEAR, NOISY], ids=["bilinear", "noisy"])
def test_opaque_and_empty_regions_stay_exact(by: Any, model: Any):
    alpha = np.full((16, 16), 255, np.uint8)
    alpha[:, :8] = 0
    large = srno.upscale(np.dstack([noise(16, 16, 3), alpha]), scale=4, model=model, alpha=by)[..., 3]
    assert (large[:, : 7 * 4] == 0).all()
    assert (large[:, 9 * 4 :] == 255).all()


@pytest.mark.parametrize("value", [0, 1, 77, 255])
@pytest.mark.parametrize("bits", [8, 16])
def test_constant_alpha_is_exact_and_needs_no_render(value: int, bits: int):
    alpha = np.full((6, 5, 1), value * (257 if bits == 16 else 1), np.uint16 if bits == 16 else np.uint8)
    shares: list[float] = []
    image: Any = np.concatenate([noise(6, 5, 3, bits=bits), alpha], axis=2)
    large = srno.upscale(image, scale=3, model=NOISY, progress=shares.append)
    assert (large[..., 3] == alpha[0, 0, 0]).all()
    opaque: list[float] = []
    srno.upscale(noise(6, 5, 3, bits=bits), scale=3, model=NOISY, progress=opaque.append)
    assert shares == opaque


def test_constant_alpha_of_floats_is_exact():
    image = np.concatenate([np.random.default_rng(0).random((4, 4, 1)), np.full((4, 4, 1), 0.3)], axis=2)
    assert (srno.upscale(image, scale=2, model=NOISY)[..., 1] == 0.3).all()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float32"])
def test_hidden_colours_do_not_reach_the_visible_edge(dtype: str):
    top = 1 if dtype.startswith("float") else np.iinfo(dtype).max
    image = np.zeros((12, 12, 4), dtype)
    image[:, 6:] = top  # white and opaque beside black and transparent
    large = srno.upscale(image, scale=4, model=BILINEAR)
    seen = large[..., 3] > 0
    assert seen[:, 22:].all()
    assert (large[seen][:, :3] >= 0.99 * top).all()


def test_alpha_is_enlarged_by_the_operator_unless_bicubic_is_chosen():
    alpha = np.tile(np.linspace(0, 1, 12, dtype=np.float32) ** 2, (12, 1))
    image = np.dstack([np.ones_like(alpha), alpha])
    by_operator = srno.upscale(image, scale=2, model=BILINEAR)[..., 1]
    by_bicubic = srno.upscale(image, scale=2, model=BILINEAR, alpha="bicubic")[..., 1]
    assert np.abs(by_operator - bilinear(alpha, 24, 24)[..., 0]).max() < 1e-6
    smooth = matlab_bicubic_float(alpha, (24, 24))
    assert np.abs(by_bicubic - smooth)[:, 2:-2].max() < 1e-6
    assert np.abs(by_operator - by_bicubic).max() > 1e-3


# Sizes


def test_cover_equals_the_centre_crop_of_the_whole_picture():
    image = samples(10, 20, 4, dtype="uint8")
    whole = srno.upscale(image, size=(60, 30), model=NOISY)
    assert np.array_equal(srno.upscale(image, size=(30, 30), fit="cover", model=NOISY), whole[:, 15:45])


def test_scales_below_one_use_the_bicubic_filter_alone():
    image = noise(20, 30, 3)
    small = srno.upscale(image, scale=0.4, model=NOISY)
    expected = matlab_bicubic_float(image.astype(np.float32) / np.float32(255), (8, 12))
    assert np.abs(small - np.clip(expected, 0, 1) * 255).max() <= 0.51


def test_one_side_is_reduced_and_the_other_enlarged():
    image = noise(20, 30, 3).astype(np.float32) / np.float32(255)
    mixed = srno.upscale(image, scale=(0.5, 2), model=BILINEAR)
    assert mixed.shape == (40, 15, 3)
    assert np.abs(mixed - np.clip(bilinear(matlab_bicubic_float(image, (20, 15)), 15, 40), 0, 1)).max() < 1e-5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_size_gives_the_same_samples(layout: tuple[int, ...], dtype: str):
    image = samples(6, 7, *layout, dtype=dtype)
    large = srno.upscale(image, scale=1, model=NOISY)
    assert np.array_equal(large, image)
    assert large.dtype == image.dtype
    assert not np.shares_memory(large, image)
    assert np.array_equal(srno.upscale(image, size=(5, 6), fit="cover", model=NOISY).shape[:2], (6, 5))
    assert np.array_equal(srno.upscale(image, size=(7, 4), fit="cover", model=NOISY), image[1:5])


def test_the_same_size_with_other_bits_is_exact():
    target = make_request(scale=1).target((5, 6))
    eight, sixteen = noise(6, 5, 3), noise(6, 5, 3, bits=16)
    deep, _ = enlarge(eight, None, target, Upscaler(model=NOISY), np.uint16)
    assert np.array_equal(deep, eight.astype(np.uint16) * 257)
    flat, _ = enlarge(sixteen, None, target, Upscaler(model=NOISY), np.uint8)
    assert np.abs(flat - sixteen / 257).max() <= 0.501


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_picture_of_one_pixel_keeps_its_colour(layout: tuple[int, ...], dtype: str):
    image = samples(1, 1, *layout, dtype=dtype)
    large = srno.upscale(image, scale=(5, 3), model=NOISY)
    assert large.shape == (3, 5, *layout)
    assert large.dtype == image.dtype
    assert (large == image).all()


@settings(max_examples=30)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 300))
def test_the_size_is_the_requested_one(width: int, height: int, tenths: int):
    large = srno.upscale(np.zeros((height, width), np.uint8), scale=tenths / 10, model=BILINEAR)
    assert large.shape[::-1] == make_request(scale=tenths / 10).target((width, height)).size


# PIL images and paths


@pytest.mark.parametrize(
    ("mode", "after"),
    [
        ("1", "L"),
        ("L", "L"),
        ("LA", "LA"),
        ("P", "RGB"),
        ("RGB", "RGB"),
        ("RGBA", "RGBA"),
        ("CMYK", "RGB"),
        ("I;16", "I;16"),
    ],
)
def test_pil_images_of_every_mode_keep_or_convert_the_mode(mode: str, after: str):
    image = Image.fromarray(noise(7, 9, bits=16)) if mode == "I;16" else Image.fromarray(noise(7, 9, 3)).convert(mode)
    large = srno.upscale(image, scale=2, model=BILINEAR)
    assert isinstance(large, Image.Image)
    assert (large.mode, large.size) == (after, (18, 14))


def test_pil_images_keep_profile_and_exif_and_are_turned_upright():
    data = encode(Image.fromarray(noise(7, 9, 3)), "PNG", icc_profile=P3, exif=camera_exif(6), dpi=(300, 300))
    large = srno.upscale(Image.open(io.BytesIO(data)), scale=2, model=BILINEAR)
    assert large.size == (14, 18)
    assert large.info["icc_profile"] == P3
    assert large.getexif().get(274, 1) == 1
    assert large.getexif()[271] == "Canon"


def test_a_path_gives_a_pil_image_or_a_16_bit_array(tmp_path: Path):
    for name, shape, bits, kind in [("gray.png", (5, 6, 1), 16, "I;16"), ("rgba.png", (5, 6, 4), 8, "RGBA")]:
        (tmp_path / name).write_bytes(png(noise(*shape, bits=bits)))
        for path in (tmp_path / name, str(tmp_path / name)):
            large = srno.upscale(path, scale=2, model=BILINEAR)
            assert isinstance(large, Image.Image)
            assert (large.mode, large.size) == (kind, (12, 10))
    deep = noise(5, 6, 3, bits=16)
    (tmp_path / "deep.png").write_bytes(png(deep))
    large = srno.upscale(tmp_path / "deep.png", scale=2, model=BILINEAR)
    assert isinstance(large, np.ndarray)
    assert np.array_equal(large, srno.upscale(deep, scale=2, model=BILINEAR))


# Model, device and progress


def test_models_by_path_and_by_object_agree(tmp_path: Path):
    path = write_tiny(tmp_path / "tiny.safetensors", strength=0.2)
    image = noise(6, 6, 3)
    by_object = srno.upscale(image, model=NOISY)
    assert by_object.shape == (12, 12, 3)
    assert np.array_equal(srno.upscale(image, model=path, device="cpu"), by_object)
    assert np.array_equal(srno.upscale(image, model=str(path), memory="64M", integral="exact"), by_object)


def test_ensemble_is_that_of_the_field():
    image = noise(6, 8, 3)
    tensor = torch.from_numpy(image).permute(2, 0, 1) / 127.5 - 1
    rgb = render_picture(NOISY, tensor, (15, 20), ensemble=True).permute(1, 2, 0).numpy()
    expected = (rgb * 0.5 + 0.5).clip(0, 1) * 255
    assert np.abs(srno.upscale(image, scale=2.5, model=NOISY, ensemble=True) - expected).max() <= 0.51


def test_an_integral_from_few_points_is_close_but_not_equal():
    image = noise(16, 16, 3).astype(np.float32) / 255
    exact, few = (srno.upscale(image, scale=3, model=NOISY, integral=how) for how in ("exact", 64))
    assert 0 < np.abs(exact - few).mean() < 0.05
    assert np.array_equal(srno.upscale(image, scale=3, model=NOISY, integral="auto"), exact)


def test_progress_covers_colour_and_alpha():
    shares: list[float] = []
    srno.upscale(samples(8, 8, 4, dtype="uint8"), scale=4, model=NOISY, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] == 1


def test_progress_advances_while_the_picture_is_lifted(monkeypatch):
    class SeenError(Exception):
        pass

    shares: list[float] = []

    def stop(share: float) -> None:
        shares.append(share)
        if len(shares) == 3:
            raise SeenError

    monkeypatch.setattr("srno.field.encode.SMALL_PIXELS", 0)
    with pytest.raises(SeenError):
        srno.upscale(noise(40, 40, 3), scale=1.1, model=NOISY, progress=stop)
    assert 0 < shares[0] < shares[1] < shares[2] < 0.9


# Several pictures


def test_a_list_gives_a_list_of_the_same_kinds(tmp_path: Path):
    (tmp_path / "a.png").write_bytes(png(noise(5, 7, 3)))
    (tmp_path / "deep.png").write_bytes(png(noise(5, 7, 4, bits=16)))
    kinds = [
        str(tmp_path / "a.png"),
        tmp_path / "deep.png",
        Image.fromarray(noise(6, 4, 2)),
        noise(3, 8),
        noise(4, 4, 3, bits=16) / 65535,
    ]
    large = srno.upscale(kinds, scale=2.5, model=NOISY)
    assert isinstance(large, list)
    assert [type(one) for one in large] == [Image.Image, np.ndarray, Image.Image, np.ndarray, np.ndarray]
    for one, image in zip(large, kinds, strict=True):
        alone = srno.upscale(image, scale=2.5, model=NOISY)
        assert np.array_equal(np.asarray(one), np.asarray(alone))
        assert np.asarray(one).dtype == np.asarray(alone).dtype
    assert np.array_equal(np.asarray(srno.upscale(tuple(kinds[2:4]), scale=2.5, model=NOISY)[1]), np.asarray(large[3]))
    assert srno.upscale([], model=NOISY) == []
    assert len(srno.upscale([noise(3, 3)], model=NOISY)) == 1


def test_a_list_loads_its_model_once(tmp_path: Path):
    path = write_tiny(tmp_path / "tiny.safetensors", strength=0.2)

    def delete_model(_share: float) -> None:
        path.unlink(missing_ok=True)

    first, second = srno.upscale([noise(4, 4), noise(4, 4)], model=path, progress=delete_model)
    assert not path.exists()
    assert np.array_equal(np.asarray(first), np.asarray(second))


def test_progress_of_a_list_covers_all_pictures():
    shares: list[float] = []
    srno.upscale([noise(5, 5)] * 4, model=NOISY, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] < 0.25
    assert shares[-1] == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.full((4, 4), 255.0), r"picture 2: floats must lie in \[0, 1\]"),
        (7, "picture 2: int is not a picture"),
        (Image.new("F", (3, 3)), "picture 2: samples of mode F"),
        ("no-such.png", "picture 2: no-such.png: No such file"),
    ],
)
def test_errors_in_a_list_name_the_picture(wrong: Any, words: str):
    with pytest.raises(SRNOError, match=words):
        srno.upscale([noise(4, 4), wrong], model=BILINEAR)


@pytest.mark.parametrize(
    ("image", "options", "words"),
    [
        (np.zeros((4, 4), np.int32), {}, "int32.*uint8, uint16 or floats"),
        (np.zeros((4, 4), bool), {}, "bool"),
        (np.zeros((4, 4, 5), np.uint8), {}, r"\(4, 4, 5\)"),
        (np.zeros((0, 4), np.uint8), {}, "not empty"),
        (np.zeros(4, np.uint8), {}, r"\(4,\)"),
        (np.full((4, 4), 255.0), {}, r"\[0, 1\].*255"),
        (np.full((4, 4), np.nan), {}, r"\[0, 1\].*nan"),
        (np.full((4, 4), -0.5, np.float32), {}, "-0.5"),
        ([[1, 2]], {}, "list is not a picture"),
        ("no-such.png", {}, "no-such.png: No such file"),
        (np.zeros((4, 4), np.uint8), {"scale": 2, "width": 3}, "scale and width"),
        (np.zeros((4, 4), np.uint8), {"alpha": "magic"}, "alpha 'magic'.*operator, bicubic"),
        (np.zeros((4, 4), np.uint8), {"integral": "some"}, "integral 'some'"),
        (np.zeros((4, 4), np.uint8), {"integral": 0}, "integral 0"),
        (np.zeros((4, 4), np.uint8), {"memory": "lots"}, "memory 'lots'"),
        (np.zeros((4, 4), np.uint8), {"device": "abacus"}, "device 'abacus'"),
        (np.zeros((4, 4), np.uint8), {"model": "no-such-model"}, "no model 'no-such-model'"),
        (np.zeros((4, 4), np.uint8), {"scale": 200_000}, "GB of memory"),
    ],
)
def test_invalid_arguments_are_refused(image: Any, options: dict[str, Any], words: str):
    with pytest.raises(SRNOError, match=words):
        srno.upscale(image, **cast(Any, {"model": BILINEAR, **options}))


def test_a_missing_device_is_refused():
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(SRNOError, match=r"'cuda' is not available.*cpu"):
        _ = Upscaler(model=BILINEAR, device="cuda").operator


def test_16_bit_output_of_8_bit_input_has_levels_in_between():
    target = make_request(scale=8).target((4, 1))
    large, _ = enlarge(np.array([[[0], [1], [2], [3]]], np.uint8), None, target, Upscaler(model=BILINEAR), np.uint16)
    assert len(np.unique(large)) > 4
    assert (
        np.abs(large[0, :, 0].astype(float) / 257 - bilinear(np.array([[[0], [1], [2], [3]]]), 32, 8)[0, :, 0]).max()
        < 0.003
    )


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_is_within_three_levels(precision: Precision):
    picture = np.asarray(Image.open(EXAMPLE / "cat.png").convert("RGB").resize((40, 30), Image.Resampling.BICUBIC))
    full = srno.upscale(picture, scale=2).astype(int)
    half = srno.upscale(picture, scale=2, precision=precision).astype(int)
    assert 0 < np.abs(half - full).max() <= 3
    assert abs(np.mean(half - full)) < 0.1


def test_precision_does_not_change_the_callers_model():
    model = srno.load("default")
    srno.upscale(np.zeros((4, 4, 3), np.uint8), model=model, precision="bf16")
    with pytest.raises(SRNOError, match="precision 'half': choose auto, fp32, bf16, fp16"):
        srno.upscale(np.zeros((4, 4, 3), np.uint8), precision="half")  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert next(model.parameters()).dtype == torch.float32


def test_bfloat16_tensors_keep_their_type():
    model = tiny_model()
    image = torch.rand(3, 5, 6)
    large = srno.upscale(image.bfloat16(), scale=2, model=model)
    assert large.dtype == torch.bfloat16
    expected = srno.upscale(image.bfloat16().float(), scale=2, model=model)
    assert torch.equal(large, expected.bfloat16())
