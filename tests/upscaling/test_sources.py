"""Finding pictures in files, folders and patterns."""

from pathlib import Path

import pytest

from srno.errors import SRNOError
from srno.upscaling.sources import find_sources


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
