"""Finding pictures in files, folders and patterns."""

import sys
from pathlib import Path

import pytest

from srno.errors import SRNOError
from srno.upscaling.sources import find_sources, report_left_out


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = [
        "b.png", "a.JPG", "notes.txt", ".hidden.png", ".a.png.1f.partial", "photo[1].png",
        "in/c.webp", "in/deep/d.tif", "in/.secret/e.png", "out/f.png",
    ]  # fmt: skip
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*inputs: str, recursive: bool = False, excluded: str | None = None) -> list[tuple[str, str]]:
    found = find_sources(inputs, recursive=recursive, excluded=None if excluded is None else Path(excluded))
    return [(str(source.path), str(source.relative)) for source in found]


@pytest.mark.usefixtures("tree")
def test_folders_give_pictures_by_suffix_and_keep_the_tree():
    assert [name for _, name in names(".")] == ["a.JPG", "b.png", "photo[1].png"]
    assert names("in") == [("in/c.webp", "c.webp")]
    assert names("in", recursive=True) == [("in/c.webp", "c.webp"), ("in/deep/d.tif", "deep/d.tif")]


@pytest.mark.usefixtures("tree")
def test_the_excluded_folder_is_not_searched():
    everything = [name for name, _ in names(".", recursive=True)]
    assert "out/f.png" in everything
    rest = [name for name, _ in names(".", recursive=True, excluded="out")]
    assert rest == [name for name in everything if not name.startswith("out")]


@pytest.mark.usefixtures("tree")
def test_patterns_are_expanded_and_keep_the_tree_below_the_fixed_part():
    assert names("*.png") == [("b.png", "b.png"), ("photo[1].png", "photo[1].png")]
    assert names("in/**/*.tif") == [("in/deep/d.tif", "deep/d.tif")]
    assert names("?n/*.webp") == [("in/c.webp", "in/c.webp")]
    assert names("*") == [("a.JPG", "a.JPG"), ("b.png", "b.png"), ("photo[1].png", "photo[1].png")]


@pytest.mark.usefixtures("tree")
def test_named_files_are_taken_with_any_suffix():
    assert names("photo[1].png", "notes.txt", "in/c.webp") == [
        ("photo[1].png", "photo[1].png"),
        ("notes.txt", "notes.txt"),
        ("in/c.webp", "c.webp"),
    ]


def test_each_picture_is_found_once(tree: Path):
    assert names("b.png", "./b.png", str(tree / "b.png"), "*.png") == [
        ("b.png", "b.png"),
        ("photo[1].png", "photo[1].png"),
    ]


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (["gone.png"], "gone.png: no such file"),
        (["*.gif"], r"no picture matches '\*\.gif'"),
        (["b.png", "*.gif"], "no picture matches"),
        (["*.txt"], "1 file left out: 1 .txt"),
        (["--bogus"], "unknown option --bogus"),
        ([], "no pictures given"),
        (["a**b"], r"\*\*"),
    ],
)
def test_missing_inputs_are_refused(inputs: list[str], words: str):
    with pytest.raises(SRNOError, match=words):
        names(*inputs)


def test_the_error_for_an_empty_folder_lists_the_suffixes(tmp_path: Path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "x.png").write_bytes(b"")
    with pytest.raises(SRNOError, match=r"no pictures in this folder.*\.webp.*-r"):
        names(str(tmp_path))


def test_a_hyphen_is_standard_input():
    (source,) = find_sources(["-"])
    assert (source.path, source.relative.stem, source.name) == (None, "stdin", "standard input")


def test_files_left_out_of_a_folder_are_counted_by_suffix(tmp_path: Path):
    for name in ("a.cr2", "b.CR2", "c.nef", "d.jpg", "sub/e.txt", ".hidden", "out/f.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    folder = str(tmp_path)
    assert report_left_out([folder]) == "3 files left out: 2 .cr2, 1 .nef"
    assert report_left_out([folder], recursive=True, excluded=tmp_path / "out") == (
        "4 files left out: 2 .cr2, 1 .nef, 1 .txt"
    )
    assert report_left_out([folder, folder, f"{folder}/*.cr2"]) == "3 files left out: 2 .cr2, 1 .nef"
    assert report_left_out([f"{folder}/c*"]) == "1 file left out: 1 .nef"
    assert report_left_out([f"{folder}/*.jpg", f"{folder}/a.cr2", "-"]) is None


def test_many_kinds_of_left_out_files_are_summed_up(tmp_path: Path):
    for number in range(9):
        (tmp_path / f"x.kind{number}").write_bytes(b"")
    (tmp_path / "README").write_bytes(b"")
    report = report_left_out([str(tmp_path)])
    assert report is not None
    assert report.startswith("10 files left out: 1 ")
    assert report.endswith(", 4 others")


@pytest.mark.parametrize(
    ("module", "suffix", "extra"), [("pillow_heif", ".heic", "heif"), ("pillow_jxl", ".jxl", "jxl")]
)
def test_pictures_that_need_a_package_are_left_out_without_it(
    module: str, suffix: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("a" + suffix, "b" + suffix, "c.png"):
        (tmp_path / name).write_bytes(b"")
    assert len(find_sources([str(tmp_path)])) == 3
    assert report_left_out([str(tmp_path)]) is None
    monkeypatch.setitem(sys.modules, module, None)
    assert [source.relative.name for source in find_sources([str(tmp_path)])] == ["c.png"]
    assert report_left_out([str(tmp_path)]) == f"2 files left out: 2 {suffix} (pip install 'srno[{extra}]')"


def test_the_error_for_a_folder_of_other_files_counts_them(tmp_path: Path):
    (tmp_path / "a.cr2").write_bytes(b"")
    with pytest.raises(SRNOError, match=r"no pictures in this folder.*; 1 file left out: 1 \.cr2$"):
        names(str(tmp_path))
