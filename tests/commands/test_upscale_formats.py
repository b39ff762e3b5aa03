"""srno upscale: every format that is read, RAW files, what folders leave out, and results that stay the same."""

import json
import sys
from pathlib import Path

import numpy as np
import pillow_heif
import pytest
from PIL import Image
from upscale_runs import call, pillow, spawn

from imaging.making import CMYK, IPTC, P3, XMP, any_format, camera_exif, encode, heif, jxl, noise, png, tiff
from srno.imaging.formats import READ_FORMATS, READ_SUFFIXES
from srno.imaging.picture import Picture, Text
from srno.imaging.read import read
from srno.imaging.write import write
from tiny_models import write_tiny

Capture = pytest.CaptureFixture[str]


def up(capsys: Capture, *tokens: str | Path) -> tuple[int, str, str]:
    return call(capsys, "-m", "../tiny.safetensors", *tokens)


def smooth() -> Image.Image:
    y, x = np.mgrid[0:9, 0:14]
    return Image.fromarray(np.stack([x * 18, y * 28, 255 - x * 6], axis=-1).astype(np.uint8))


@pytest.mark.parametrize("kind", READ_FORMATS)
def test_every_format_is_enlarged(here: Path, capsys: Capture, kind: str):
    suffix = next(suffix for suffix, name in READ_SUFFIXES.items() if name == kind)
    (here / f"in{suffix}").write_bytes(any_format(smooth(), kind))
    assert up(capsys, f"in{suffix}", "-f", "png", "-o", "out/") == (0, "", "")
    large = np.asarray(pillow((here / "out/in.png").read_bytes()).convert("RGB")).astype(int)
    assert large.shape == (18, 28, 3)
    reference = np.asarray(smooth().resize((28, 18), Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(large - reference).mean() < 6


@pytest.mark.parametrize("suffix", ["jxl", "jp2", "ppm", "pgm", "tga", "ico", "avif", "webp"])
def test_every_format_is_written_by_its_suffix(here: Path, capsys: Capture, suffix: str):
    (here / "in.png").write_bytes(png(noise(9, 14, 3)))
    assert up(capsys, "in.png", "-o", f"out.{suffix}")[0] == 0
    picture = read(here / f"out.{suffix}")
    assert (picture.size, picture.format) == ((28, 18), READ_SUFFIXES[f".{suffix}"])


def test_a_phone_picture_keeps_rotation_profile_and_depth(here: Path, capsys: Capture):
    deep = noise(24, 32, 3, bits=16) >> 6
    (here / "phone.heic").write_bytes(heif(deep, bits=10, exif=camera_exif(6).tobytes(), icc_profile=P3))
    assert up(capsys, "phone.heic") == (0, "", "")
    large = read(here / "phone_2x.png")
    assert (large.size, large.bits, large.icc) == ((48, 64), 16, P3)
    assert large.exif is not None
    assert b"Canon" in large.exif


@pytest.mark.parametrize("name", ["photo.dng", "photo.tif"])
def test_a_raw_file_fails_with_advice_and_writes_nothing(here: Path, capsys: Capture, name: str):
    (here / name).write_bytes(tiff(noise(9, 14, 3), photometric="rgb", extratags=[(50706, 1, 4, b"\1\4\0\0", True)]))
    code, out, err = up(capsys, name)
    assert (code, out) == (1, "")
    assert err == (
        f"srno: {name}: DNG is a camera's RAW format and is not read; "
        "convert it to TIFF with the camera's software, darktable or RawTherapee\n"
    )
    assert [path.name for path in here.iterdir()] == [name]


def test_raw_on_standard_input_fails_with_advice(here: Path):
    done = spawn("-", "-m", "../tiny.safetensors", input=b"FUJIFILMCCD-RAW 0201" + bytes(99), cwd=here)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"srno: standard input: RAF is a camera's RAW format")


def test_files_left_out_of_a_folder_are_reported(here: Path, capsys: Capture):
    for name in ("a.cr2", "b.cr2", "c.mov", ".hidden.cr2"):
        (here / name).write_bytes(bytes(99))
    (here / "a.png").write_bytes(png(noise(4, 5, 3)))
    assert up(capsys, ".", "-o", "out") == (0, "", "3 files left out: 2 .cr2, 1 .mov\n")
    code, out, err = up(capsys, ".", "-o", "more", "--json")
    assert (code, err) == (0, "3 files left out: 2 .cr2, 1 .mov\n")
    assert json.loads(out)["status"] == "written"
    assert up(capsys, "a.png", "-o", "last/") == (0, "", "")


def test_a_missing_package_is_named_in_the_error(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch):
    (here / "a.heic").write_bytes(heif(noise(16, 16, 3)))
    (here / "b.jxl").write_bytes(jxl(noise(16, 16, 3)))
    (here / "c.png").write_bytes(png(noise(4, 5, 3)))
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    monkeypatch.setitem(sys.modules, "pillow_jxl", None)
    code, _, err = up(capsys, "a.heic")
    assert (code, err) == (
        1,
        "srno: a.heic: pillow_heif is not installed; install it with: pip install 'srno[heif]'\n",
    )
    code, _, err = up(capsys, "c.png", "-f", "jxl")
    assert (code, err) == (2, "srno: pillow_jxl is not installed; install it with: pip install 'srno[jxl]'\n")
    code, _, err = up(capsys, ".", "-o", "out")
    assert code == 0
    assert err.startswith("2 files left out: ")
    assert "1 .heic (pip install 'srno[heif]')" in err
    assert {path.name for path in (here / "out").iterdir()} == {"c.png"}


def test_metadata_stays(here: Path, capsys: Capture):
    described = Picture(colour=noise(9, 14, 3), xmp=XMP, iptc=IPTC, comments=(b"a comment",))
    write(described, here / "in.jpg", format="JPEG")
    assert b"PixelXDimension" in (here / "in.jpg").read_bytes()
    assert up(capsys, "in.jpg") == (0, "", "")
    large = read(here / "in_2x.jpg")
    assert (large.iptc, large.comments) == (IPTC, (b"a comment",))
    assert large.xmp is not None
    assert b"a cat &gt; a dog" in large.xmp
    for false in (b"PixelXDimension", b"ImageWidth", b"Orientation"):
        assert false not in (here / "in_2x.jpg").read_bytes()
    write(Picture(colour=noise(9, 14, 3), texts=(Text("Title", "cat"),)), here / "in.png", format="PNG")
    assert up(capsys, "in.png")[0] == 0
    assert read(here / "in_2x.png").texts == (Text("Title", "cat"),)
    assert "texts left out (Title): JPEG cannot hold any" in up(capsys, "in.png", "-o", "out.jpg")[2]
    assert up(capsys, "in.jpg", "--no-metadata", "-o", "bare.jpg")[0] == 0
    assert read(here / "bare.jpg").xmp is None


def test_an_input_that_is_replaced_is_noted(here: Path, capsys: Capture):
    (here / "in.png").write_bytes(png(noise(6, 8, 3)))
    code, _, err = up(capsys, "in.png", "-o", ".", "--overwrite")
    assert (code, err) == (0, "srno: in.png: the input is replaced by the result\n")
    assert read(here / "in.png").size == (16, 12)
    assert up(capsys, "in.png", "-o", "in_2.png", "--overwrite") == (0, "", "")


def test_the_primary_picture_of_several_in_heif_is_taken(here: Path, capsys: Capture):
    pictures = [Image.fromarray(noise(16, 16, 3, seed=seed)) for seed in range(3)]
    file = pillow_heif.from_pillow(pictures[0])
    for other in pictures[1:]:
        file.add_from_pillow(other)
    file.save(here / "burst.heic", quality=-1, chroma=444)
    code, _, err = up(capsys, "burst.heic", "-s", "1")
    assert (code, err) == (0, "srno: burst.heic: the first of 3 frames or pages; the others are left out\n")
    assert np.abs(read(here / "burst_1x.png").colour.astype(int) - noise(16, 16, 3)).max() <= 1


def test_cmyk_is_noted(here: Path, capsys: Capture):
    (here / "ink.jpg").write_bytes(encode(smooth().convert("CMYK"), "JPEG", icc_profile=CMYK))
    assert up(capsys, "ink.jpg") == (0, "", "srno: ink.jpg: CMYK converted to sRGB\n")


# The same size


@pytest.mark.parametrize(
    "tokens",
    [["-s", "1"], ["--width", "14"], ["--size", "14x9", "--fit", "stretch"], ["--size", "14x9", "--fit", "cover"]],
)
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
def test_the_same_size_gives_the_file_back(here: Path, capsys: Capture, kind: str, tokens: list[str]):
    suffix = {"PNG": "png", "JPEG": "jpg", "TIFF": "tif"}[kind]
    options = {} if kind == "TIFF" else {"exif": camera_exif(1)}
    (here / f"in.{suffix}").write_bytes(encode(Image.fromarray(noise(9, 14, 3)), kind, icc_profile=P3, **options))
    write_tiny(here.parent / "tiny.safetensors", strength=0.5)
    assert up(capsys, f"in.{suffix}", *tokens, "-o", "out/")[0] == 0
    assert (here / f"out/in.{suffix}").read_bytes() == (here / f"in.{suffix}").read_bytes()


def test_the_same_size_in_another_format_gives_the_same_samples(here: Path, capsys: Capture):
    write_tiny(here.parent / "tiny.safetensors", strength=0.5)
    source = noise(9, 14, 4, bits=16)
    source[:4, :, 3] = 0
    (here / "in.png").write_bytes(png(source))
    assert up(capsys, "in.png", "-s", "1", "-o", "out.tif")[0] == 0
    assert np.array_equal(read(here / "out.tif").samples(), source)
    (here / "rotated.jpg").write_bytes(encode(smooth(), "JPEG", exif=camera_exif(6)))
    assert up(capsys, "rotated.jpg", "-s", "1", "-o", "out.png")[0] == 0
    assert np.array_equal(read(here / "out.png").samples(), read(here / "rotated.jpg").samples())


@pytest.mark.parametrize("tokens", [["-q", "40"], ["--no-metadata"], ["--bit-depth", "16", "-f", "png"]])
def test_other_options_apply_at_the_same_size(here: Path, capsys: Capture, tokens: list[str]):
    (here / "in.jpg").write_bytes(encode(smooth(), "JPEG", exif=camera_exif(1)))
    assert up(capsys, "in.jpg", "-s", "1", "-o", "out/", *tokens)[0] == 0
    (result,) = (here / "out").iterdir()
    assert result.read_bytes() != (here / "in.jpg").read_bytes()
    assert read(result).size == (14, 9)


def test_the_same_size_to_standard_output(here: Path):
    data = png(noise(6, 8, 3))
    done = spawn("-", "-s", "1", "-m", "../tiny.safetensors", input=data, cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")


def test_a_picture_of_one_pixel_keeps_its_colour_with_the_shipped_model(here: Path, capsys: Capture):
    colour = np.array([[[200, 100, 50, 77]]], np.uint8)
    (here / "one.png").write_bytes(png(colour))
    assert call(capsys, "one.png", "-s", "4")[0] == 0
    assert np.array_equal(read(here / "one_4x.png").samples(), np.broadcast_to(colour, (4, 4, 4)))
