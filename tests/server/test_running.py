"""`srno serve` as people run it: a process with an address, which ends when it is told to."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import picture

from srno.cli import main


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

    def lift(self, name: str) -> None:
        with self.open(f"/api/images/{name}/lift?model=rough", b"") as answer:
            assert json.loads(answer.read().splitlines()[-1]) == {"done": True}

    def export(self, name: str, **order: Any) -> Any:
        """The answer, which comes in lines."""
        body = json.dumps({"model": "rough", **order}).encode()
        return self.open(f"/api/images/{name}/exports", body)


@pytest.fixture(scope="module")
def server(models) -> Iterator[Server]:
    server = Server(models["rough"])
    yield server
    server.process.kill()
    server.process.communicate()


def share(line: bytes) -> float:
    return json.loads(line)["share"]


def test_it_says_where_it_is_and_is_there(server):
    assert server.first_line.startswith("srno: http://127.0.0.1:")
    with server.open("/") as answer:
        assert b"A picture is a function" in answer.read()


def test_only_this_machine_can_reach_it(server):
    listening = socket.socket()
    address = socket.gethostbyname(socket.gethostname())
    if address.startswith("127."):
        pytest.skip("this machine has no address in a network")
    assert listening.connect_ex((address, server.port)) != 0


def test_a_slow_export_does_not_keep_a_view_waiting(server):
    name = server.upload(picture(80, 60))
    server.lift(name)
    with server.export(name, scale=60) as answer:  # 17 million pixels, exactly integrated
        assert share(answer.readline()) < 0.5
        begun = time.monotonic()
        with server.open(f"/api/images/{name}/tile?source=rough&level=800,600&rect=100,100,200,200") as tile:
            assert tile.read().startswith(b"\x89PNG")
        seen = time.monotonic() - begun
        before = share(answer.readline())
        assert before < 1
    assert seen < 10  # seconds on a machine that does other things; the export takes longer


def test_an_export_that_nobody_waits_for_makes_room_for_the_next(server):
    name = server.upload(picture(80, 60))
    with server.export(name, scale=100) as answer:
        answer.readline()
    begun = time.monotonic()
    with server.export(name, scale=1) as answer:
        *_, last = answer
    assert json.loads(last)["done"]
    assert time.monotonic() - begun < 20


def test_a_tile_that_nobody_waits_for_is_dropped(server):
    name = server.upload(picture(80, 60))
    server.lift(name)
    for left in range(8):  # four million pixels each
        with socket.create_connection(("127.0.0.1", server.port)) as line:
            path = f"/api/images/{name}/tile?source=rough&level=8000,6000&rect={left},0,2048,2048"
            line.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
            time.sleep(0.02)
    begun = time.monotonic()
    with server.open(f"/api/images/{name}/tile?source=rough&level=800,600&rect=0,0,50,50") as tile:
        tile.read()
    quick = time.monotonic() - begun
    begun = time.monotonic()
    with server.open(f"/api/images/{name}/tile?source=rough&level=8000,6000&rect=9,9,2048,2048") as tile:
        tile.read()
    assert quick < max(1.0, time.monotonic() - begun)  # less than for one of the eight


def test_two_tabs_are_served_at_once(server):
    names = [server.upload(picture(40, 30, seed=seed)) for seed in (1, 2)]
    tiles: dict[str, bytes] = {}

    def look(name: str) -> None:
        server.lift(name)
        with server.open(f"/api/images/{name}/tile?source=rough&level=400,300&rect=10,10,100,100") as tile:
            tiles[name] = tile.read()

    tabs = [threading.Thread(target=look, args=(name,)) for name in names]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join(60)
    assert len({tiles[name] for name in names}) == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal to send")
def test_ctrl_c_ends_it_at_once_whatever_it_is_doing(models):
    server = Server(models["rough"])
    form = "content-type: multipart/form-data; boundary=x\r\ncontent-length: 50000"
    upload = f"POST /api/images HTTP/1.1\r\nhost: localhost\r\n{form}\r\n\r\n--x\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.port)) as stays:
        stays.sendall(upload)  # and never sends the rest
        with socket.create_connection(("127.0.0.1", server.port)) as leaves:
            leaves.sendall(upload)
            time.sleep(0.2)
        name = server.upload(picture(80, 60))
        with server.export(name, scale=200) as answer:
            answer.readline()
            begun = time.monotonic()
            server.process.send_signal(signal.SIGINT)
            out, err = server.process.communicate(timeout=20)
    assert server.process.returncode == 0
    assert (out, err) == ("", "")
    assert time.monotonic() - begun < 15  # under a second where nothing else runs


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--port", "99999"], "--port 99999"),
        (["--host", "no.such.host.invalid"], "--host"),
        (["--memory", "much"], "memory 'much'"),
        (["--max-megapixels", "0"], "--max-megapixels 0"),
        (["--threads", "0"], "--threads 0"),
        (["-m", "nothing.safetensors"], "nothing.safetensors"),
    ],
    ids=lambda value: str(value),
)
def test_a_mistake_is_one_line(models, capsys, flags, words):
    with pytest.raises(SystemExit, match="2"):
        main(["serve", "--no-open", *([] if "-m" in flags else ["-m", str(models["plain"])]), *flags])
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1


def test_a_port_that_is_taken_is_told(models, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit, match="2"):
        main(["serve", "--no-open", "-m", str(models["plain"]), "--port", str(taken.getsockname()[1])])
    assert "--port 0" in capsys.readouterr().err
