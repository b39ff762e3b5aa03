"""`srno serve` as a process: its address, its queues, Ctrl-C, and mistakes on the command line."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest
from serving import picture

from srno.checkpoints.catalogue import find, list_models
from srno.cli import main
from srno.commands import serve
from srno.server.workers import StoppedError, Task


class Server:
    """A running `srno serve`."""

    def __init__(self, model: Path, *flags: str) -> None:
        command = [sys.executable, "-m", "srno", "serve", "--no-open", "--port", "0", "-m", str(model), *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stderr
        self.first_line = self.process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.first_line)
        assert found, self.first_line
        self.port = int(found[1])

    def open(self, path: str, data: bytes | None = None, headers: dict[str, str] | None = None) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers or {})
        return urllib.request.urlopen(request, timeout=60)

    def upload(self, data: bytes) -> str:
        head = b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
        form = {"content-type": "multipart/form-data; boundary=x"}
        with self.open("/api/images", head + data + b"\r\n--x--\r\n", form) as answer:
            return json.load(answer)["id"]

    def tile(self, name: str, level: tuple[int, int], rect: tuple[int, ...]) -> bytes:
        query = f"level={level[0]},{level[1]}&rect={','.join(map(str, rect))}"
        with self.open(f"/api/images/{name}/tile?source=rough&{query}") as answer:
            return answer.read()

    def export(self, name: str, **options: Any) -> str:
        """Start an export and return its job."""
        body = json.dumps({"model": "rough", **options}).encode()
        with self.open(f"/api/images/{name}/exports", body) as answer:
            return json.load(answer)["job"]

    def job(self, name: str) -> dict[str, Any]:
        with self.open(f"/api/jobs/{name}") as answer:
            return json.load(answer)

    def until(self, job: str, key: str) -> dict[str, Any]:
        """Ask about a job until its state has a key."""
        for _ in range(6000):
            state = self.job(job)
            if state.get(key):
                return state
            time.sleep(0.01)
        raise AssertionError(f"no {key}: {state}")


@pytest.fixture(scope="module")
def server(models) -> Iterator[Server]:
    server = Server(models["rough"])
    yield server
    server.process.kill()
    server.process.communicate()


def test_the_printed_address_serves_the_page(server):
    assert server.first_line.startswith("srno: http://127.0.0.1:")
    with server.open("/") as answer:
        assert b"A picture is a function" in answer.read()


def test_only_this_machine_can_connect(server):
    listening = socket.socket()
    address = socket.gethostbyname(socket.gethostname())
    if address.startswith("127."):
        pytest.skip("this machine has no network address")
    assert listening.connect_ex((address, server.port)) != 0


def test_a_tile_does_not_wait_for_a_slow_export(server):
    name = server.upload(picture(80, 60))
    job = server.export(name, scale=60)  # 17 million pixels
    server.until(job, "share")
    assert server.tile(name, (800, 600), (100, 100, 200, 200)).startswith(b"\x89PNG")
    assert server.job(job)["share"] < 1
    assert "done" not in server.job(job)
    stop(server, job)


def stop(server: Server, job: str) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/api/jobs/{job}", method="DELETE")
    urllib.request.urlopen(request, timeout=60).close()


def test_a_stopped_export_makes_room_for_the_next(server):
    name = server.upload(picture(80, 60))
    slow = server.export(name, scale=100)
    server.until(slow, "share")
    stop(server, slow)
    assert server.until(server.export(name, scale=1), "done")
    assert server.job(slow) == {"error": "stopped"}


def test_tiles_are_cancelled_when_the_client_disconnects(served, address, monkeypatch):
    """Some while they are computed, the others while they wait."""
    tiles: list[Task[bytes]] = []
    submit = served.tile

    def record(*arguments: Any, **options: Any) -> Task[bytes]:
        tiles.append(submit(*arguments, **options))
        return tiles[-1]

    monkeypatch.setattr(served, "tile", record)
    name = served.open(picture(80, 60), "a.png").future.result(60)
    port = int(address.rpartition(":")[2])
    lines = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
    for left, line in enumerate(lines):  # four million pixels each
        path = f"/api/images/{name}/tile?source=rough&level=8000,6000&rect={left},0,2048,2048"
        line.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
    while len(tiles) < 8 or not any(tile.share for tile in tiles):
        time.sleep(0.001)
    for line in lines:
        line.close()
    futures = [tile.future for tile in tiles]
    assert not wait(futures, timeout=60).not_done
    assert [future for future in futures if not (future.cancelled() or type(future.exception()) is StoppedError)] == []
    assert any(future.cancelled() for future in futures)


def test_a_small_picture_does_not_wait_for_a_large_one(server):
    """The large one asks for a hundred blocks first; the small one is done while most of them wait."""
    large, small = server.upload(picture(2000, 1500, "L")), server.upload(picture(60, 40))
    lines = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
    for i, line in enumerate(lines):
        path = f"/api/images/{large}/tile?source=rough&level=2000,1500&rect={500 * i},0,500,1500&version=1"
        line.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
    try:
        assert server.tile(small, (600, 400), (0, 0, 100, 100)).startswith(b"\x89PNG")
        assert not select.select(lines, [], [], 0)[0]  # no answer yet
    finally:
        for line in lines:
            line.close()


def test_two_tabs_are_served_at_once(server):
    names = [server.upload(picture(40, 30, seed=seed)) for seed in (1, 2)]
    tiles: dict[str, bytes] = {}

    def load(name: str) -> None:
        tiles[name] = server.tile(name, (400, 300), (10, 10, 100, 100))

    tabs = [threading.Thread(target=load, args=(name,)) for name in names]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join(60)
    assert len({tiles[name] for name in names}) == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot send SIGINT to a process")
def test_ctrl_c_stops_the_server_during_an_upload_and_an_export(models):
    server = Server(models["rough"])
    form = "content-type: multipart/form-data; boundary=x\r\ncontent-length: 50000"
    upload = f"POST /api/images HTTP/1.1\r\nhost: localhost\r\n{form}\r\n\r\n--x\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.port)) as unfinished:
        unfinished.sendall(upload)  # and never sends the rest
        with socket.create_connection(("127.0.0.1", server.port)) as disconnected:
            disconnected.sendall(upload)
            time.sleep(0.2)
        job = server.export(server.upload(picture(80, 60)), scale=200)
        server.until(job, "share")
        server.process.send_signal(signal.SIGINT)
        out, err = server.process.communicate(timeout=20)
    assert server.process.returncode == 0
    assert (out, err) == ("", "")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems may have no second loopback address")
def test_other_devices_get_an_address_with_a_token(models):
    server = Server(models["rough"], "--host", "0.0.0.0")
    try:
        assert server.process.stderr
        lines = [server.process.stderr.readline() for _ in range(2)]
        assert re.search(r"other devices open http://\S+:\d+/\?token=[\w-]{16}\n", lines[0])
        assert "not encrypted" in lines[1]
        with server.open("/") as answer:  # this machine needs no token
            assert answer.status == 200
    finally:
        server.process.kill()
        server.process.communicate()


def test_the_head_of_a_request_has_to_arrive_in_time(models, monkeypatch, tmp_path):
    """In a process of its own with a short limit, since the server reads it when it starts."""
    code = (
        "import sys; from srno.server import serving; serving.HEADER_TIMEOUT_SECONDS = 0.5; from srno.cli import main; "
        f"main(['serve', '--no-open', '--port', '0', '-m', {str(models['rough'])!r}])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        port = int(process.stderr.readline().rpartition(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nhost: local")
            assert slow.recv(100) == b""  # closed without an answer
        with socket.create_connection(("127.0.0.1", port), timeout=60) as quick:
            quick.sendall(b"GET /api/about HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert quick.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        process.kill()
        process.communicate()


def test_a_file_named_like_a_shipped_model_is_listed_with_its_suffix(models, tmp_path):
    own = tmp_path / "light.safetensors"
    own.write_bytes(models["rough"].read_bytes())
    shipped = {name: find(name) for name in list_models()}
    assert serve._models(str(own)) == {"light.safetensors": own, **shipped}
    assert next(iter(serve._models("light").values())) == find("light")
    other = tmp_path / "other.safetensors"
    other.write_bytes(models["rough"].read_bytes())
    assert list(serve._models(str(other))) == ["other", *shipped]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--port", "99999"], "--port 99999"),
        (["--host", "no.such.host.invalid"], "--host 'no.such.host.invalid' is not a name or address of this machine"),
        (["--host", "192.0.2.1"], "--host '192.0.2.1' is not a name or address of this machine"),
        (["--memory", "much"], "memory 'much'"),
        (["--max-megapixels", "0"], "--max-megapixels 0"),
        (["--threads", "0"], "--threads 0"),
        (["-m", "nothing.safetensors"], "nothing.safetensors"),
    ],
    ids=lambda value: str(value),
)
def test_a_wrong_flag_prints_one_line(models, capsys, flags, words):
    with pytest.raises(SystemExit, match="2"):
        main(["serve", "--no-open", *([] if "-m" in flags else ["-m", str(models["plain"])]), *flags])
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1


def test_a_port_in_use_is_reported(models, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit, match="2"):
        main(["serve", "--no-open", "-m", str(models["plain"]), "--port", str(taken.getsockname()[1])])
    assert "--port 0" in capsys.readouterr().err
