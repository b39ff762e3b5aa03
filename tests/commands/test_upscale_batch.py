"""srno upscale: inputs, outputs, messages and exit codes."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from upscale_runs import call, pillow, spawn

from imaging.making import noise, png
from srno.upscaling.batch_view import BatchView
from srno.upscaling.jobs import Job
from srno.upscaling.outcome import Outcome
from tiny_models import write_tiny

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model and some pictures."""
    monkeypatch.chdir(tmp_path)
    write_tiny(tmp_path / "tiny.safetensors")
    for name in ("a.png", "tree/b.png", "tree/below/c.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(noise(6, 8, 3)))
    return tmp_path


def up(capsys: Capture, *tokens: str | Path) -> tuple[int, str, str]:
    return call(capsys, "-m", "tiny.safetensors", *tokens)


def pictures(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in (".safetensors", ".json")
    }


SOURCES = {"a.png", "tree/b.png", "tree/below/c.png"}


def test_the_result_is_beside_the_input_and_nothing_is_printed(here: Path, capsys: Capture):
    assert up(capsys, "a.png", "-s", "1.5") == (0, "", "")
    assert pictures(here) == SOURCES | {"a_1.5x.png"}


def test_the_tree_is_kept(here: Path, capsys: Capture):
    assert up(capsys, "tree", "-r", "-o", "out")[0] == 0
    assert pictures(here) == SOURCES | {"out/b.png", "out/below/c.png"}


def test_subfolders_are_left_out_without_r(here: Path, capsys: Capture):
    assert up(capsys, "tree", "-o", "out")[0] == 0
    assert pictures(here) == SOURCES | {"out/b.png"}


@pytest.mark.parametrize(
    "tokens", [["-i", "a.png", "-i", "tree/b.png"], ["a.png", "-i", "tree/b.png"], ["-i", "a.png", "tree/b.png"]]
)
def test_i_is_the_same_as_an_input_without_it(here: Path, capsys: Capture, tokens: list[str]):
    assert up(capsys, *tokens, "-o", "out/")[0] == 0
    assert pictures(here) == SOURCES | {"out/a.png", "out/b.png"}


def test_patterns_are_expanded_and_templates_filled_in(here: Path, capsys: Capture):
    assert up(capsys, "tree/**/*.png", "-s", "2x3", "-o", "out/{stem}_{scale}_{width}.{ext}")[0] == 0
    assert pictures(here) == SOURCES | {"out/b_2x3_16.png", "out/below/c_2x3_16.png"}


def test_existing_files_are_refused_before_any_work(here: Path, capsys: Capture):
    assert up(capsys, "a.png")[0] == 0
    stamp = (here / "a_2x.png").stat().st_mtime_ns
    code, out, err = up(capsys, "a.png", "tree/b.png")
    assert (code, out) == (2, "")
    assert err == "srno: a_2x.png exists; choose --skip-existing or --overwrite\n"
    assert pictures(here) == SOURCES | {"a_2x.png"}
    assert (here / "a_2x.png").stat().st_mtime_ns == stamp


def test_overwrite_replaces_existing_files(here: Path, capsys: Capture):
    (here / "a_2x.png").write_bytes(b"old")
    assert up(capsys, "a.png", "--overwrite")[0] == 0
    assert pillow((here / "a_2x.png").read_bytes()).size == (16, 12)


def test_skip_existing_writes_only_what_is_missing(here: Path, capsys: Capture):
    (here / "a_2x.png").write_bytes(b"earlier result")
    assert up(capsys, ".", "-r", "--skip-existing")[0] == 0
    assert (here / "a_2x.png").read_bytes() == b"earlier result"
    assert pictures(here) == SOURCES | {"a_2x.png", "tree/b_2x.png", "tree/below/c_2x.png"}
    code, out, _ = up(capsys, ".", "-r", "--skip-existing", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["status"] for line in lines] == ["skipped"] * 3
    assert pictures(here) == SOURCES | {"a_2x.png", "tree/b_2x.png", "tree/below/c_2x.png"}


def test_earlier_results_are_left_out_and_reported(here: Path, capsys: Capture):
    assert up(capsys, "a.png")[0] == 0
    code, _, err = up(capsys, ".", "-s", "3", "-v")
    assert code == 0
    assert "a_2x.png; with -o FOLDER" in err
    assert pictures(here) == SOURCES | {"a_2x.png", "a_3x.png"}
    assert up(capsys, "a_2x.png")[0] == 0  # a file that is named is enlarged
    assert "a_2x_2x.png" in pictures(here)


def test_results_inside_the_source_folder_are_not_sources(here: Path, capsys: Capture):
    for _ in range(2):
        assert up(capsys, ".", "-r", "-o", "large", "--overwrite")[0] == 0
    assert pictures(here) == SOURCES | {"large/a.png", "large/tree/b.png", "large/tree/below/c.png"}


def test_two_sources_with_the_same_result_are_refused(here: Path, capsys: Capture):
    (here / "tree/a.png").write_bytes((here / "a.png").read_bytes())
    code, _, err = up(capsys, "a.png", "tree/a.png", "-o", "out", "--overwrite")
    assert code == 2
    assert "a.png and tree/a.png would both become out/a.png" in err
    assert not (here / "out").exists()


def test_sources_of_the_same_stem_get_different_names(here: Path, capsys: Capture):
    folder = here / "same"
    folder.mkdir()
    for name in ("b.gif", "b.bmp", "b.png", "c.gif"):
        pillow((here / "a.png").read_bytes()).save(folder / name)
    assert up(capsys, "same", "-o", "out/big_{stem}.{ext}")[0] == 0
    assert pictures(here / "out") == {"big_b.png", "big_b_gif.png", "big_b_bmp.png", "big_c.png"}
    results = {"b_2x.png", "b_gif_2x.png", "b_bmp_2x.png", "c_2x.png"}
    for _ in range(2):  # results beside their sources are not sources
        assert up(capsys, "same", "--skip-existing")[0] == 0
        assert pictures(folder) == {"b.gif", "b.bmp", "b.png", "c.gif"} | results


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ([], "no pictures given"),
        (["gone.png"], "gone.png: no such file"),
        (["a.png", "--bogus"], "unknown option --bogus"),
        (["a.png", "-s", "big"], "scale 'big'"),
        (["a.png", "-s", "0"], "more than 0"),
        (["a.png", "-s", "2", "--size", "9x9"], "scale and size together"),
        (["a.png", "--size", "9"], "size '9'"),
        (["a.png", "--fit", "cover"], "needs a size"),
        (["a.png", "--fit", "squeeze", "--size", "9x9"], "contain"),
        (["a.png", "-q", "101"], "--quality 101"),
        (["a.png", "-f", "exr"], "--format 'exr'"),
        (["a.png", "-o", "b.exr"], ".exr is not a known format"),
        (["a.png", "-o", "b.heic"], ".heic is read but not written"),
        (["a.png", "--frames", "last"], "last"),
        (["a.png", "-o", "b.png", "-f", "tiff"], "contradict"),
        (["a.png", "tree/b.png", "-o", "b.png"], "several pictures"),
        (["a.png", "tree/b.png", "-o", "-"], "several pictures"),
        (["a.png", "-o", "-", "--json"], "--json"),
        (["a.png", "--skip-existing", "--overwrite"], "contradict"),
        (["a.png", "-d", "abacus"], "device 'abacus'"),
        (["a.png", "--threads", "0"], "--threads 0"),
        (["a.png", "--memory", "lots"], "memory 'lots'"),
        (["a.png", "--integral", "some"], "integral 'some'"),
        (["a.png", "--bit-depth", "12"], "12"),
        (["a.png", "--width", "wide"], "wide"),
    ],
)
def test_wrong_use_is_a_one_line_error(here: Path, capsys: Capture, tokens: list[str], words: str):
    code, out, err = up(capsys, *tokens)
    assert (code, out) == (2, "")
    assert err.startswith("srno: ")
    assert err.count("\n") == 1
    assert words in err
    assert pictures(here) == SOURCES


def test_a_missing_model_is_a_one_line_error(here: Path, capsys: Capture):
    code, out, err = call(capsys, "a.png", "-m", "no-such")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no model 'no-such'" in err


def test_json_is_one_object_per_picture_and_nothing_else(here: Path, capsys: Capture):
    (here / "bad.png").write_bytes(b"no picture")
    code, out, err = up(capsys, "a.png", "bad.png", "tree/b.png", "-s", "1.5", "--json")
    assert code == 1
    first, second, third = (json.loads(line) for line in out.splitlines())
    assert {key: first[key] for key in ("input", "output", "input_size", "output_size", "scale", "model")} == {
        "input": "a.png",
        "output": "a_1.5x.png",
        "input_size": [8, 6],
        "output_size": [12, 9],
        "scale": [1.5, 1.5],
        "model": "tiny.safetensors",
    }
    assert (first["precision"], first["integral"]) == ("fp32", "exact")
    assert first["seconds"] > 0
    assert first["peak_mb"] > 0
    assert (second["status"], second["input"]) == ("failed", "bad.png")
    assert "not a picture" in second["error"]
    assert third["status"] == "written"
    assert err == f"srno: bad.png: {second['error']}\n2 written, 1 failed\n"


def test_verbose_prints_sizes_before_results(here: Path, capsys: Capture):
    code, out, err = up(capsys, "a.png", "tree/b.png", "-v", "--height", "50")
    assert (code, out) == (0, "")
    lines = err.splitlines()
    assert lines[0] == "2 pictures, 0.0 megapixels to make"
    assert lines[1] == "model tiny.safetensors on cpu"
    assert lines[2] == "a.png 8×6 → a_8.333x.png 67×50"
    written = next(line for line in lines if line.startswith("a_8.333x.png written in "))
    assert ", fp32 products, integral exact, " in written
    assert lines[-1] == "2 written"


@pytest.mark.usefixtures("here")
def test_reduced_sides_are_reported(capsys: Capture):
    assert "srno: a.png: reduced by a bicubic filter" in up(capsys, "a.png", "-s", "0.5")[2]
    assert "srno: a.png: height reduced by a bicubic filter" in up(capsys, "a.png", "-s", "2x0.5")[2]


def test_ensemble_and_integral_change_the_result(here: Path, capsys: Capture):
    write_tiny(here / "noisy.safetensors", strength=0.3)
    ways = {
        "plain": [],
        "ensemble": ["-x"],
        "few": ["--integral", "9"],
        "exact": ["--integral", "exact", "--memory", "64M"],
    }
    for name, tokens in ways.items():
        assert call(capsys, "a.png", "-m", "noisy.safetensors", "-o", f"{name}.png", *tokens)[0] == 0
    plain, ensemble, few, exact = ((here / f"{name}.png").read_bytes() for name in ways)
    assert plain == exact
    assert len({plain, ensemble, few}) == 3


def test_a_folder_that_cannot_be_written_is_reported_before_any_work(here: Path, capsys: Capture):
    (here / "out").write_bytes(b"in the way")
    for folder in ("out/", "out/below/", "/proc/out/"):
        code, _, err = call(capsys, "a.png", "-o", folder, "-m", "missing.safetensors")  # not even loaded
        assert code == 2
        assert err.startswith("srno: --output: ")
        assert err.count("\n") == 1


def test_a_result_without_room_is_reported_before_any_work(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10_000))
    code, _, err = up(capsys, "a.png", "-s", "40", "-o", "large.pnm")
    assert code == 2
    assert re.search(r"take about 0.2 MB, and 0.0 MB are free in .*; free some room, or give another folder", err)
    assert not (here / "large.pnm").exists()


def test_a_disk_that_may_become_full_is_reported_before_any_work(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=5_000))
    code, _, err = up(capsys, "a.png", "-s", "16", "-o", "large.png", "-v")
    assert code == 0
    lines = err.splitlines()
    assert lines[0].startswith("srno: the disk may become full: the results take about 0.0 MB")
    assert lines[-1].startswith("large.png written")
    assert (here / "large.png").exists()


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("--skip-existing", "; the same command with --skip-existing continues"),
        ("--overwrite", "; the next is tree/b.png, and the same command begins again"),
    ],
)
@pytest.mark.usefixtures("here")
def test_an_interrupt_says_how_to_continue(capsys: Capture, monkeypatch: pytest.MonkeyPatch, token: str, words: str):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    reached = BatchView.end

    def end(view: BatchView, job: Job, outcome: Outcome) -> None:
        reached(view, job, outcome)
        monkeypatch.setattr("srno.upscaling.steps.enlarge_picture", interrupt)  # while the second is computed

    monkeypatch.setattr(BatchView, "end", end)
    monkeypatch.setattr("srno.upscaling.batch.LARGEST_OVERLAP_PIXELS", 0)  # one after the other
    code, _, err = up(capsys, "a.png", "tree/b.png", token)
    assert (code, err) == (130, f"srno: interrupted: 1 of 2 pictures are done{words}\n")


def test_results_of_pictures_that_are_not_listed_are_recognised(here: Path, capsys: Capture):
    """A picture without a suffix is enlarged when it is named; its result in the folder is not enlarged again."""
    (here / "bare").write_bytes((here / "a.png").read_bytes())
    (here / "notes.txt").write_text("no picture")
    (here / "notes_2x.png").write_bytes((here / "a.png").read_bytes())
    assert up(capsys, "bare", "-s", "1.2")[0] == 0
    assert up(capsys, ".", "-s", "1.5")[0] == 0
    assert (here / "notes_2x_1.5x.png").exists()  # the text has no results
    assert not (here / "bare_1.2x_1.5x.png").exists()
    assert up(capsys, "bare_1.2x.png", "-s", "1.5")[0] == 0  # named by the user
    assert (here / "bare_1.2x_1.5x.png").exists()


# In a separate process


def test_standard_input_is_written_to_standard_output(here: Path):
    done = spawn("-", "-s", "2.5", "-m", "tiny.safetensors", input=(here / "a.png").read_bytes(), cwd=here)
    assert (done.returncode, done.stderr) == (0, b"")
    image = pillow(done.stdout)
    assert (image.format, image.size) == ("PNG", (20, 15))
    assert pictures(here) == SOURCES


@pytest.mark.parametrize("tokens", [["-s", "2"], ["-o", "out/", "--json"]])
def test_a_closed_standard_output_is_one_line_and_code_130(here: Path, tokens: list[str]):
    command = [sys.executable, "-m", "srno", "upscale", "-", *tokens, "-m", "tiny.safetensors"]
    with subprocess.Popen(command, cwd=here, stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write((here / "a.png").read_bytes())
        process.stdin.close()
        assert process.stderr.read() == b"srno: standard output was closed\n"
    assert process.returncode == 130


def test_invalid_standard_input_is_one_line(here: Path):
    done = spawn("-", "-f", "tiff", "-m", "tiny.safetensors", input=b"not a picture", cwd=here)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith("srno: standard input: not a picture")


def test_a_terminal_shows_the_size_and_a_bar(here: Path):
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "srno", "upscale", "a.png", "-s", "200", "-m", "tiny.safetensors"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=slave, env=environment) as process:
        os.close(slave)
        seen = b""
        while chunk := _read(master):
            seen += chunk
        out = process.stdout.read() if process.stdout else b""
    os.close(master)
    text = seen.decode()
    assert (process.returncode, out) == (0, b"")
    assert text.index("a.png 8×6 → a_200x.png 1600×1200") < text.index("━")
    assert re.search(r"[1-9]\d?%", text)
    assert "left" in text
    assert "a_200x.png written in" in text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # raised on Linux if the other end is closed
        return b""


def test_an_interrupt_leaves_no_partial_file(here: Path):
    (here / "large.png").write_bytes(png(noise(300, 300, 3)))
    command = [
        sys.executable,
        "-m",
        "srno",
        "upscale",
        "a.png",
        "large.png",
        "-s",
        "20",
        "-m",
        "tiny.safetensors",
        "-v",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # a shell that runs the tests in the background makes them and their children ignore Ctrl-C
    restore_interrupt = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        command, cwd=here, stderr=subprocess.PIPE, env=environment, text=True, preexec_fn=restore_interrupt
    ) as process:
        assert process.stderr
        for line in process.stderr:
            if line.startswith("large.png"):
                break
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "interrupted: 1 of 2 pictures are done; the same command with --skip-existing continues" in rest
    assert "Traceback" not in rest
    assert pictures(here) == SOURCES | {"large.png", "a_20x.png"}
