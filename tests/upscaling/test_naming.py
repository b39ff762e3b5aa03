"""Paths, names and formats of results."""

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srno.errors import SRNOError
from srno.imaging.formats import Format
from srno.upscaling.naming import Naming, parse_format, parse_output
from srno.upscaling.sizes import make_request
from srno.upscaling.sources import Source

CAT = Source(Path("photos/trip/cat.jpg"), Path("trip/cat.jpg"))


def output(
    text: str | None,
    source: Source = CAT,
    kind: Format = "JPEG",
    scale: str = "3.7",
    *,
    format_name: str | None = None,
    bits: int | None = None,
) -> str:
    naming = parse_output(text, format_name, bits, [str(source.path)])
    return str(naming.output(source, kind, make_request(scale=scale).target((10, 5))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "photos/trip/cat_3.7x.jpg"),
        ("out/", "out/trip/cat.jpg"),
        ("out", "out/trip/cat.jpg"),
        ("v1.5", "v1.5/trip/cat.jpg"),
        ("{stem}-{width}x{height}.{ext}", "photos/trip/cat-37x19.jpg"),
        ("big/{stem}_{scale}x.webp", "big/trip/cat_3.7x.webp"),
        ("{stem}_{width:05d}.png", "photos/trip/cat_00037.png"),
        ("/{stem}.png", "/trip/cat.png"),
        ("{stem}_{{x}}.png", "photos/trip/cat_{x}.png"),
    ],
)
def test_output_is_a_folder_a_template_or_beside_the_source(text: str | None, expected: str):
    assert output(text) == expected


def test_output_is_one_file():
    single = Source(Path("photos/cat.jpg"), Path("cat.jpg"))
    assert output("dog.png", single) == "dog.png"
    assert output("a/dog.TIFF", single) == "a/dog.TIFF"


def test_an_existing_folder_with_a_picture_suffix_is_a_folder(tmp_path: Path):
    folder = tmp_path / "odd.png"
    folder.mkdir()
    assert output(str(folder)) == str(folder / "trip/cat.jpg")


@pytest.mark.parametrize(
    ("kind", "suffix", "bits", "expected"),
    [
        ("PNG", ".png", None, "PNG"),
        ("JPEG", ".jpeg", None, "JPEG"),
        ("TIFF", ".tif", None, "TIFF"),
        ("GIF", ".gif", None, "PNG"),
        ("WEBP", ".webp", None, "PNG"),
        ("AVIF", ".avif", None, "PNG"),
        ("BMP", ".bmp", None, "PNG"),
        ("HEIF", ".heic", None, "PNG"),
        ("JXL", ".jxl", None, "PNG"),
        ("JP2", ".jp2", None, "PNG"),
        ("PNM", ".ppm", None, "PNG"),
        ("JPEG", ".jpg", 16, "PNG"),
        ("TIFF", ".tif", 16, "TIFF"),
    ],
)
def test_formats_that_lose_quality_become_png(kind: Format, suffix: str, bits: int | None, expected: Format):
    naming = Naming(bits=bits)
    assert naming.format_of(kind) == expected
    source = Source(Path("x" + suffix), Path("x" + suffix))
    name = naming.output(source, kind, make_request(scale=2).target((3, 3)))
    assert name == Path("x_2x" + (suffix if expected == kind else ".png"))


def test_the_content_decides_the_format_not_the_name():
    misnamed = Source(Path("really-a-png.jpg"), Path("really-a-png.jpg"))
    assert output(None, misnamed, "PNG", "2") == "really-a-png_2x.png"
    uppercase = Source(Path("IMG_1.JPG"), Path("IMG_1.JPG"))
    assert output(None, uppercase, "JPEG", "2") == "IMG_1_2x.JPG"
    assert output(None, uppercase, "JPEG", "2", format_name="webp") == "IMG_1_2x.webp"


def test_hyphens_mean_standard_output():
    assert parse_output("-", None, None, ["a.png"]).stdout
    assert parse_output(None, "tiff", None, ["-"]).stdout
    assert parse_output(None, "tiff", None, ["-"]).format_of("JPEG") == "TIFF"
    assert not parse_output("out.png", None, None, ["-"]).stdout
    assert output(None, Source(None, Path("stdin"))) == "stdin_3.7x.jpg"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("out.exr", {}, r"\.exr is not a known format.*\.png"),
        ("out.heic", {}, r"\.heic is read but not written.*\.png"),
        ("out.j2k", {}, r"\.j2k is read but not written.*\.jp2"),
        ("{stem}", {}, "no suffix is not a known format"),
        ("{stem}.exr", {}, r"\.exr"),
        ("{name}.png", {}, r"unknown \{name\}.*\{stem\}"),
        ("{stem.__class__}.png", {}, "unknown"),
        ("{}.png", {}, "unknown"),
        ("{stem.png", {}, "not a template"),
        ("{stem:d}.png", {}, "not a template"),
        ("{stem}/{scale}.png", {}, "only the name"),
        ("out.png", {"format_name": "jpeg"}, "contradict"),
        ("{stem}.png", {"format_name": "jpeg"}, "contradict"),
        ("-", {"format_name": "exr"}, "--format 'exr'.*png"),
        ("-", {"format_name": "heic"}, "--format 'heic'.*png"),
    ],
)
def test_an_invalid_output_is_refused(text: str, options: dict[str, Any], words: str):
    with pytest.raises(SRNOError, match=words):
        output(text, **options)


@pytest.mark.parametrize("inputs", [["a.png", "b.png"], ["."]])
def test_several_pictures_cannot_become_one_file(inputs: list[str]):
    with pytest.raises(SRNOError, match="several pictures"):
        parse_output("out.png", None, None, inputs)


@pytest.mark.parametrize(
    ("name", "expected"), [("png", "PNG"), ("JPG", "JPEG"), (".tif", "TIFF"), ("ppm", "PNM"), ("jxl", "JXL")]
)
def test_format_names_are_parsed(name: str, expected: str):
    assert parse_format(name) == expected


@pytest.mark.parametrize(("text", "options"), [("out.jxl", {}), ("{stem}.jxl", {}), ("out/", {"format_name": "jxl"})])
def test_a_missing_package_is_reported_before_any_work(
    text: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    single = Source(Path("cat.jpg"), Path("cat.jpg"))
    assert output(text, single, **options).endswith(".jxl")
    monkeypatch.setitem(sys.modules, "pillow_jxl", None)
    with pytest.raises(SRNOError, match=r"pip install 'srno\[jxl\]'"):
        output(text, single, **options)


stems = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=12).filter(
    lambda stem: stem not in (".", "..") and Path(stem + ".png").stem == stem
)


@given(stems, st.integers(1, 3000), st.sampled_from(["{stem}_{scale}x.{ext}", "{scale}x {stem} {width}.png"]))
def test_results_are_recognised_by_their_names(stem: str, percent: int, template: str):
    naming = Naming(template=template)
    source = Source(Path(stem + ".png"), Path(stem + ".png"))
    result = naming.output(source, "PNG", make_request(scale=str(percent / 100)).target((10, 10)))
    assert result is not None
    assert naming.source_stem(result.name) == stem


def test_other_names_are_not_results():
    assert Naming().source_stem("cat.png") is None
    assert Naming().source_stem("cat_x.png") is None
    assert Naming(template="all.png").source_stem("all.png") is None
