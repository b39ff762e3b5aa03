"""A killed job resumes where it was; one that does not belong is refused; nothing half has the final name."""

import errno
import multiprocessing
import os
import random
import re
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from giga_pictures import STREAMED, model_of, random_picture, request_for, scaled

from srno.errors import SRNOError
from srno.gigapixel.journal import Journal, journal_folder
from srno.gigapixel.make import make_large
from srno.gigapixel.passes import Status
from srno.gigapixel.prepare import LargeRequest
from srno.imaging.read import read
from srno.imaging.write import write


def make_request(folder: Path, **options: object) -> LargeRequest:
    picture = random_picture((41, 37), 4)
    if not (folder / "in.tif").exists():
        write(picture, folder / "in.tif", format="TIFF")
    request = request_for(folder / "in.tif", folder / "out.tif", scaled(picture.size, "3"), integral="exact")
    return replace(request, settings=replace(STREAMED, pyramid=True), **options)


def resumed(request: LargeRequest) -> LargeRequest:
    return replace(request, settings=replace(request.settings, resume=True))


def stop_after(count: int) -> Callable[[Status], None]:
    """A report that is interrupted at its call of this number."""
    left = [count]

    def report(_: Status) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    return report


def make_and_die(request: LargeRequest, seconds: float) -> None:
    """Run in a process of its own, which is killed after a while."""
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    make_large(request, model_of("edsr"), lambda _: None)


def test_a_job_that_is_killed_at_random_moments_gives_the_same_picture(tmp_path):
    request = make_request(tmp_path)
    make_large(request, model_of("edsr"), lambda _: None)
    expected = read(request.output).samples()
    request.output.unlink()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["srno.gigapixel.make", "giga_pictures"])
    moments = random.Random(5)
    kills = 0
    for _ in range(4):
        child = context.Process(target=make_and_die, args=(resumed(request), moments.uniform(0.05, 1.5)))
        child.start()
        child.join()
        if child.exitcode != -signal.SIGKILL:
            break
        kills += 1
        if request.output.exists():  # killed after its end
            break
    assert kills or request.output.exists()
    if not request.output.exists():
        make_large(resumed(request), model_of("edsr"), lambda _: None)
    np.testing.assert_array_equal(read(request.output).samples(), expected)
    visible = sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("."))
    assert visible == ["in.tif", "out.tif"]


@pytest.mark.parametrize("kind", ["TIFF", "ZARR", "DZI"])
def test_finished_tiles_are_not_computed_again(tmp_path, kind):
    request = replace(make_request(tmp_path), format=kind, settings=replace(STREAMED, compression="deflate"))
    told: list[Status] = []
    make_large(request, model_of("edsr"), told.append)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    total = len(told)
    (request.output / "zarr.json" if kind == "ZARR" else request.output).unlink()
    for stop in (total // 3, 2 * total // 3):
        with pytest.raises(KeyboardInterrupt):
            make_large(resumed(request), model_of("edsr"), stop_after(stop))
    told.clear()
    make_large(resumed(request), model_of("edsr"), told.append)
    assert len(told) < total * 2 / 3
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("kind", ["TIFF", "ZARR", "DZI"])
def test_a_job_killed_between_its_last_steps_resumes(tmp_path, monkeypatch, kind):
    request = replace(make_request(tmp_path), format=kind, settings=replace(STREAMED, compression="deflate"))
    with monkeypatch.context() as patched:
        patched.setattr("srno.gigapixel.make.shutil.rmtree", interrupted)
        if kind == "DZI":
            patched.setattr("srno.gigapixel.deep_zoom.write_atomically", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make_large(request, model_of("edsr"), lambda _: None)
    assert request.output.exists() is (kind != "DZI")
    make_large(resumed(request), model_of("edsr"), lambda _: None)
    assert request.output.exists()
    assert not journal_folder(request.output).exists()


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_job_needs_resume_or_overwrite(tmp_path):
    request = make_request(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        make_large(request, model_of("edsr"), stop_after(5))
    assert not request.output.exists()
    with pytest.raises(SRNOError, match="left of an interrupted run; add --resume to continue, or --overwrite"):
        make_large(request, model_of("edsr"), lambda _: None)
    make_large(replace(request, settings=replace(request.settings, overwrite=True)), model_of("edsr"), lambda _: None)
    assert request.output.exists()


def test_a_journal_of_another_job_is_refused_and_the_difference_named(tmp_path):
    request = make_request(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        make_large(request, model_of("edsr"), stop_after(5))
    with pytest.raises(SRNOError, match="belongs to another job, which differs in model;"):
        make_large(resumed(request), model_of("edsr-narrow-heads"), lambda _: None)
    with pytest.raises(SRNOError, match="differs in settings;"):
        make_large(replace(resumed(request), bits=8), model_of("edsr"), lambda _: None)
    os.utime(request.source, ns=(1, 1))
    with pytest.raises(SRNOError, match="differs in source;"):
        make_large(resumed(request), model_of("edsr"), lambda _: None)


def test_a_truncated_record_is_dropped(tmp_path):
    journal = Journal.begin(tmp_path, {"job": 1})
    journal.add("tile", (1,), b"one")
    whole = journal.path.stat().st_size
    journal.add("tile", (2,), b"two")
    for length in range(whole, journal.path.stat().st_size):
        content = journal.path.read_bytes()
        other = tmp_path / str(length)
        other.mkdir()
        (other / "journal").write_bytes(content[:length])
        assert Journal.resume(other, {"job": 1}).entries("tile") == {(1,): b"one"}
        assert (other / "journal").stat().st_size == whole


def test_finished_work_survives_a_full_disk(tmp_path, monkeypatch):
    request = make_request(tmp_path)
    add = Journal.add

    def full_after_ten(self: Journal, *entry: Any) -> None:
        if len(self.known) > 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        add(self, *entry)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "add", full_after_ten)
        with pytest.raises(SRNOError, match=r"the disk is full; what is done is kept .* with --resume"):
            make_large(request, model_of("edsr"), lambda _: None)
    assert not request.output.exists()
    make_large(resumed(request), model_of("edsr"), lambda _: None)
    assert request.output.exists()


def test_a_disk_that_is_too_small_is_reported_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    request = make_request(tmp_path)
    request = replace(request, settings=replace(request.settings, compression="none"))
    with pytest.raises(SRNOError, match=r"needs about \d+\.\d MB on disk, and 0\.0 MB are free"):
        make_large(request, model_of("edsr"), lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["in.tif"]


def test_a_disk_that_is_likely_to_be_too_small_is_reported_and_tried(tmp_path, monkeypatch):
    request = make_request(tmp_path)
    request = replace(request, settings=replace(request.settings, compression="deflate"))
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=150_000))
    lines: list[str] = []
    make_large(request, model_of("edsr"), lambda _: None, lines.append)
    assert "; the disk is likely to lack " in lines[0]
    assert request.output.exists()


def test_the_size_of_the_journal_is_reported(tmp_path):
    request = replace(make_request(tmp_path), integral=10_000)
    journal, sizes, lines = journal_folder(request.output) / "journal", list[int](), list[str]()
    make_large(request, model_of("edsr"), lambda _: sizes.append(journal.stat().st_size), lines.append)
    told = re.search(r"([\d.]+) MB for the journal", lines[0])
    assert told is not None
    assert float(told[1]) * 1e6 == pytest.approx(max(sizes), abs=60_000)  # rounded to 0.1 MB, and records have heads


def test_two_processes_do_not_make_the_same_picture(tmp_path):
    from srno.files import locked

    request = make_request(tmp_path)
    folder = journal_folder(request.output)
    folder.mkdir()
    with (
        locked(folder / "lock", wait=False),
        pytest.raises(SRNOError, match="another process is making this picture"),
    ):
        make_large(request, model_of("edsr"), lambda _: None)
