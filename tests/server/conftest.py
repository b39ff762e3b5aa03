"""Fixtures: a studio with two small models, a client, a running server, a browser."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import CHROMIUM, FLAGS, WINDOW, Visitor
from serving import PORT, picture

from srno.server.app import make_app
from srno.server.guard import allowed_hosts
from srno.server.studio import Limits, Studio
from tiny_models import write_tiny


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """`rough` adds random detail to the picture, `plain` adds none."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "rough": write_tiny(folder / "rough.safetensors", strength=0.3),
        "plain": write_tiny(folder / "plain.safetensors"),
    }


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("examples") / "soft-hills.png"
    path.write_bytes(picture(48, 36))
    return path


@pytest.fixture(scope="module")
def served(models: dict[str, Path], example: Path) -> Iterator[Studio]:
    """What the running server works with."""
    limits = Limits(bytes=200_000, pixels=100_000)
    studio = Studio(models, examples={example.name: example}, memory=500_000_000, limits=limits, threads=2)
    yield studio
    studio.close()


@pytest.fixture(scope="module")
def address(served: Studio) -> Iterator[str]:
    """Address of a running server, for browsers."""
    uvicorn = pytest.importorskip("uvicorn", reason="the server needs srno[serve]")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(
            uvicorn.Config(make_app(served, allowed_hosts("127.0.0.1")), log_level="warning", lifespan="off")
        )
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        served.close()
        server.should_exit = server.force_exit = True
        thread.join(20)


@pytest.fixture
def studio(models: dict[str, Path], example: Path) -> Iterator[Studio]:
    limits = Limits(bytes=400_000, pixels=200_000)
    studio = Studio(models, examples={example.name: example}, memory=300_000_000, limits=limits, threads=2)
    yield studio
    studio.close()
    assert studio.join(5)


@pytest.fixture
def client(studio: Studio):
    testing = pytest.importorskip("starlette.testclient", reason="the server needs srno[serve]")
    return testing.TestClient(make_app(studio, allowed_hosts("127.0.0.1")), base_url=f"http://127.0.0.1:{PORT}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    if CHROMIUM is None:
        pytest.skip("the browser tests need chromium: apt-get install chromium")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Callable[..., Visitor]]:
    """Open the page with these browser settings; unexpected errors on it fail the test."""
    visitors: list[Visitor] = []

    def visit(**settings: Any) -> Visitor:
        # A service worker would answer before the routes of the tests.
        page = browser.new_context(**{"viewport": WINDOW, "service_workers": "block", **settings}).new_page()
        visitors.append(Visitor(page, address))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        visitor.page.context.close()
        assert visitor.errors == []
