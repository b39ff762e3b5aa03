"""The same plan on a cluster: the same picture, whatever happens to workers; errors in one line."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile
from distributed import Client
from giga_pictures import STREAMED, model_of, random_picture, request_for, scaled

from srno.cli import main
from srno.gigapixel import cluster as cluster_module
from srno.gigapixel import remote
from srno.gigapixel.cluster import Cluster, ClusterError, open_cluster
from srno.gigapixel.journal import journal_folder
from srno.gigapixel.make import make_large
from srno.gigapixel.passes import Status
from srno.imaging.read import read
from srno.imaging.write import write
from srno.upscaling.batch import spread
from srno.upscaling.jobs import Job
from srno.upscaling.outcome import Outcome
from srno.upscaling.sources import Source
from tiny_models import write_tiny


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    folder = str(Path(__file__).parent)
    with open_cluster("local:2") as started:
        started.client.run(lambda: __import__("sys").path.insert(0, folder))
        yield started


def kill_a_worker(cluster: Cluster) -> None:
    os.kill(next(iter(cluster.client.run(os.getpid).values())), signal.SIGKILL)


@pytest.mark.parametrize(("kind", "integral"), [("TIFF", "exact"), ("ZARR", 300)])
def test_a_worker_killed_in_each_pass_changes_nothing(tmp_path, cluster, kind, integral):
    picture = random_picture((41, 37))
    write(picture, tmp_path / "in.tif", format="TIFF")
    request = request_for(tmp_path / "in.tif", tmp_path / "one.tif", scaled(picture.size, "3"), integral=integral)
    request = replace(request, settings=replace(STREAMED, side=16))
    make_large(request, model_of("edsr"), lambda _: None)
    expected = read(request.output).samples()
    killed: set[int] = set()

    def report(status: Status) -> None:
        if status.tile and status.tile < status.tiles and status.number not in killed:
            killed.add(status.number)
            kill_a_worker(cluster)

    output = tmp_path / ("many.tif" if kind == "TIFF" else "many.zarr")
    request = replace(request, output=output, format=kind, settings=replace(request.settings, cluster=cluster))
    make_large(request, model_of("edsr"), report)
    assert killed == ({1, 2, 3} if integral == "exact" else {1, 2})
    # 10⁻⁵ is 0.66 of a level. With less than that, samples move by one level at most, and few of them do.
    levels = np.abs(samples_of(output).astype(int) - expected)
    assert levels.max() <= 1
    assert levels.mean() < 0.05


def samples_of(path: Path) -> np.ndarray:
    if path.suffix == ".tif":
        return read(path).samples()
    import zarr

    return np.asarray(zarr.open_group(str(path), mode="r")["0"]).transpose(1, 2, 0)


def test_a_worker_of_another_version_is_refused(tmp_path, cluster):
    write(random_picture((20, 20)), tmp_path / "in.tif", format="TIFF")
    request = request_for(tmp_path / "in.tif", tmp_path / "out.tif", scaled((20, 20), "2"))
    request = replace(request, settings=replace(STREAMED, cluster=cluster))
    worker = next(iter(cluster.workers))
    set_version(cluster, worker, "0.0.1")
    with pytest.raises(ClusterError, match=r"has srno 0\.0\.1, not .*; install the same version"):
        make_large(request, model_of("edsr"), lambda _: None)
    set_version(cluster, worker, cluster_module.__version__)
    assert not request.output.exists()


def test_a_worker_with_other_weights_is_found_out(tmp_path, cluster, monkeypatch):
    write(random_picture((20, 20)), tmp_path / "in.tif", format="TIFF")
    request = request_for(tmp_path / "in.tif", tmp_path / "out.tif", scaled((20, 20), "2"))
    request = replace(request, settings=replace(STREAMED, cluster=cluster))
    monkeypatch.setattr(remote, "weights_digest", lambda _: "that of the job")  # workers compute the real one
    with pytest.raises(ClusterError, match="a worker has other weights than the job; restart it"):
        make_large(request, model_of("edsr"), lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["in.tif"]


def set_version(cluster: Cluster, worker: str, version: str) -> None:
    def change() -> None:
        from srno.gigapixel import cluster as there

        there.__version__ = version

    cluster.client.run(change, workers=[worker])


def test_pictures_of_a_folder_are_spread_over_workers(tmp_path, cluster, capsys):
    (tmp_path / "in").mkdir()
    for number in range(3):
        write(random_picture((9, 7), bits=8, seed=number), tmp_path / "in" / f"{number}.png", format="PNG")
    (tmp_path / "in" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    model = str(write_tiny(tmp_path / "tiny.safetensors", strength=0.1))
    command = ["upscale", str(tmp_path / "in"), "-m", model, "-s", "2", "--json", "--precision", "fp32"]
    address = ["--cluster", cluster.client.scheduler.address]
    assert run([*command, "-o", str(tmp_path / "many"), *address]) == 1
    outcomes = {Path(line["input"]).name: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert run([*command, "-o", str(tmp_path / "one")]) == 1
    assert {name: line["status"] for name, line in outcomes.items()} == {
        **{f"{number}.png": "written" for number in range(3)},
        "broken.png": "failed",
    }
    for number in range(3):
        one, many = (read(tmp_path / where / f"{number}.png").samples() for where in ("one", "many"))
        np.testing.assert_array_equal(one, many)
    capsys.readouterr()
    assert run([*command, "-o", str(tmp_path / "many"), *address, "--skip-existing"]) == 1
    again = [json.loads(line)["status"] for line in capsys.readouterr().out.splitlines()]
    assert sorted(again) == ["failed", "skipped", "skipped", "skipped"]


def die_for_one(_: object, job: Job) -> Outcome:
    """Work of which one job takes its worker with it, as one does that needs too much memory."""
    if job.source.relative.name == "1.png":
        os.kill(os.getpid(), signal.SIGKILL)
    return Outcome(input=job.source.name, output=None, status="written")


def test_a_picture_on_which_workers_die_does_not_stop_the_others(cluster):
    jobs = [Job(Source(Path(name), Path(name))) for name in ("0.png", "1.png", "2.png")]
    outcomes = {job.source.name: outcome for job, outcome in spread(jobs, die_for_one, None, cluster)}
    assert {name: outcome.status for name, outcome in outcomes.items()} == {
        "0.png": "written",
        "1.png": "failed",
        "2.png": "written",
    }
    assert "most likely out of memory" in str(outcomes["1.png"].error)


def test_a_picture_that_fails_on_a_worker_is_a_one_line_error(tmp_path, cluster, capsys):
    """Half of its tiles are missing, which is found out when they are read."""
    samples = random_picture((200, 200), bits=8).samples()
    tifffile.imwrite(tmp_path / "in.tif", samples, tile=(16, 16), photometric="rgb")
    os.truncate(tmp_path / "in.tif", samples.size // 2)
    model = str(write_tiny(tmp_path / "tiny.safetensors", strength=0.1))
    address = ["--cluster", cluster.client.scheduler.address]
    for name, lines in (("out.zarr", 2), ("out.png", 1)):  # in tiles, with the line on disk needs, and as a whole
        command = ["upscale", str(tmp_path / "in.tif"), "-m", model, "-s", "6", "-o", str(tmp_path / name), *address]
        assert run(command) == 2
        told = capsys.readouterr().err.strip().splitlines()
        assert len(told) == lines
        assert told[-1].startswith(f"srno: {tmp_path / 'in.tif'}: damaged or cut short (tiff2vips: ")
        assert not (tmp_path / name).exists()


def run(arguments: list[str]) -> int:
    """The exit code of a command."""
    try:
        main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_a_scheduler_that_does_not_answer_is_a_one_line_error(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 1)
    write(random_picture((9, 7), bits=8), tmp_path / "in.png", format="PNG")
    model = str(write_tiny(tmp_path / "tiny.safetensors"))
    assert run(["upscale", str(tmp_path / "in.png"), "-m", model, "--cluster", "tcp://127.0.0.1:9"]) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1] == (
        "srno: --cluster tcp://127.0.0.1:9: no scheduler answers; start one with `dask scheduler` and `dask worker`"
    )


@contextmanager
def dask(*arguments: str) -> Generator["subprocess.Popen[bytes]"]:
    """A command of Dask's, which ends with the context."""
    with subprocess.Popen([sys.executable, "-m", "dask", *arguments], stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_scheduler_that_is_lost_is_one_line_and_the_work_goes_on(tmp_path, capfd):
    write(random_picture((250, 250), bits=8), tmp_path / "in.tif", format="TIFF")
    file, output, model = tmp_path / "scheduler.json", tmp_path / "out.tif", tmp_path / "tiny.safetensors"
    command = ["upscale", str(tmp_path / "in.tif"), "-m", str(write_tiny(model)), "-s", "10", "-o", str(output)]
    command += ["--compression", "none", "--precision", "fp32"]
    with (
        dask("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)) as scheduler,
        dask("worker", "--scheduler-file", str(file), "--nworkers", "1", "--nthreads", "1", "--no-nanny"),
    ):
        with Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(1)
        address = json.loads(file.read_text())["address"]

        def kill_when_a_tile_is_written() -> None:
            while scheduler.poll() is None and not (journal_folder(output) / "result.tif").exists():
                time.sleep(0.01)
            scheduler.kill()

        threading.Thread(target=kill_when_a_tile_is_written).start()
        capfd.readouterr()
        assert run([*command, "--cluster", address]) == 2
    told = capfd.readouterr().err.strip().splitlines()
    assert len(told) == 2  # with the line on disk needs
    assert "the connection to the scheduler was lost; what is done is kept" in told[-1]
    assert not output.exists()
    assert run([*command, "--resume"]) == 0
    assert read(output).size == (2500, 2500)


@pytest.mark.parametrize("text", ["local", "local:0", "host:8786"])
def test_an_invalid_cluster_address_is_refused(text):
    with pytest.raises(ClusterError, match="give tcp://HOST:PORT of a scheduler, or local:N"), open_cluster(text):
        pass
