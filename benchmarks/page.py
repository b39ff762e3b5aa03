"""Measure the web page in chromium: how soon it is sharp, how smoothly it zooms, and what memory it keeps.

    python benchmarks/page.py                              # everything
    python benchmarks/page.py --megapixels 0.3 --repeats 3 --only sharp

Starts `srno serve` for each part and prints Markdown tables. Times begin when the view comes to rest: at its last
change of position. A first line says how busy the machine is, since every number depends on it.
"""

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright

import srno

EXAMPLE = Path(srno.__file__).parent / "examples" / "coffee.png"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
WINDOW: ViewportSize = {"width": 1280, "height": 856}
"""CSS pixels; the bar at the top leaves 1280×800 for the picture."""
SMALL_WINDOW = {"width": 480, "height": 400}
SHARP = "#stage[data-sharp=true][data-drawn=true]"
TIMEOUT_MS = 300_000
SLOW_FRAME_MS = 34
PARTS = ("sharp", "cpu", "frames", "memory", "tabs")

WATCH = """() => {
    window.seen = { rest: 0, sharp: 0 };
    const stage = document.getElementById("stage");
    let view = "";
    new MutationObserver(() => {
        const { view: now, sharp } = stage.dataset;
        if (now !== view) Object.assign(window.seen, { rest: performance.now(), sharp: 0 });
        view = now;
        if (sharp === "true") window.seen.sharp ||= performance.now();
        else window.seen.sharp = 0;
    }).observe(stage, { attributes: true });
    performance.setResourceTimingBufferSize(100000);
}"""
TIMES = """(model) => {
    const { rest, sharp } = window.seen;
    const asked = performance.getEntriesByType("resource");
    const tiles = asked.filter(({ name }) => new RegExp(`/tile[?]source=${model}(&|%40)`).test(name));
    const width = document.getElementById("stage").dataset.view.split(",")[0];
    const ends = tiles.filter(({ name, responseEnd }) => name.includes(`level=${width}%2C`) && responseEnd)
        .map(({ responseEnd }) => responseEnd);
    return { first: Math.max(0, Math.min(...ends) - rest) / 1000, whole: (sharp - rest) / 1000 };
}"""
ZOOM = """(least) => {
    const stage = document.getElementById("stage");
    const zoom = Number(document.getElementById("zoom").textContent.slice(1));
    const turns = Math.ceil(Math.log(least / zoom) / (400 * Math.log(1.0018)));
    for (let i = 0; i < turns; i++) {
        stage.dispatchEvent(new WheelEvent("wheel", { deltaY: -400, clientX: 620, clientY: 430, cancelable: true }));
    }
}"""
"""Turn the wheel as often as this zoom needs, at once."""
SINCE = """([model, start]) => {
    const asked = performance.getEntriesByType("resource");
    const width = document.getElementById("stage").dataset.view.split(",")[0];
    const ends = asked.filter(({ name, responseEnd }) => name.includes(`/tile?source=${model}`) && responseEnd)
        .filter(({ name }) => name.includes(`level=${width}%2C`)).map(({ responseEnd }) => responseEnd);
    const since = (time) => (performance.timeOrigin + time - start) / 1000;
    return { first: since(Math.min(...ends)), whole: since(window.seen.sharp) };
}"""
"""Seconds from a time of the system's clock to the first tile and to the whole view."""
FRAMES = """() => {
    window.frames_seen = [];
    let before = performance.now();
    const step = (now) => {
        window.frames_seen.push(now - before);
        before = now;
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
}"""


@dataclass(frozen=True)
class Server:
    """A running `srno serve`."""

    address: str
    process: int

    @property
    def resident_megabytes(self) -> float:
        """Resident set of the server, in MB."""
        text = Path(f"/proc/{self.process}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", text)
        assert found
        return int(found[1]) * 1024 / 1e6

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the server so far, which does not depend on other programs."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(model: str, memory: str, threads: int | None) -> Iterator[Server]:
    """Run the server."""
    command = [sys.executable, "-m", "srno", "serve", "--no-open", "--port", "0", "-m", model, "--memory", memory]
    command += [] if threads is None else ["--threads", str(threads)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        address = re.search(r"http://\S+", process.stderr.readline())
        try:
            assert address, "srno serve has not started"
            yield Server(address[0].rstrip("/"), process.pid)
        finally:
            process.terminate()


def photo(megapixels: float) -> bytes:
    """A JPEG of this many pixels: an example, enlarged, with noise."""
    height = round((megapixels * 1e6 * 3 / 4) ** 0.5)
    width = height * 4 // 3
    image = Image.open(EXAMPLE).convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
    noise = np.random.default_rng(0).integers(-6, 7, (256, 256, 3), dtype=np.int16)
    pixels = np.array(image)
    for top in range(0, height, 256):
        rows = pixels[top : top + 256]
        tiled = np.tile(noise, (1, width // 256 + 1, 1))[: len(rows), :width]
        rows[:] = np.clip(rows + tiled, 0, 255)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=92)
    return stream.getvalue()


def visit(context: Any, server: Server) -> Any:
    """A page that handles events."""
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(server.address)
    page.wait_for_selector("body[data-ready]")
    page.evaluate(WATCH)
    return page


def choose(page: Any, data: bytes) -> None:
    """Open a picture and wait until it is shown, sharp or not."""
    page.set_input_files("#file", {"name": "photo.jpg", "mimeType": "image/jpeg", "buffer": data})
    page.wait_for_selector("body:not([data-opening])")


def zoom_to(page: Any, least: float) -> None:
    """Zoom in with the wheel until the zoom is at least this."""
    page.mouse.move(620, 430)
    while float(page.text_content("#zoom").removeprefix("×")) < least:
        page.mouse.wheel(0, -300)
        page.wait_for_timeout(60)


def measure_sharp(context: Any, server: Server, data: bytes, model: str) -> dict[str, float]:
    """Seconds from a choice of a file to its first window, and at the next zoom of at least ×4 to tile and window."""
    page = visit(context, server)
    start = time.perf_counter()
    choose(page, data)
    page.wait_for_selector(SHARP)
    opened = time.perf_counter() - start
    before, used = page.get_attribute("#stage", "data-view"), server.cpu_seconds
    fitted = float(page.text_content("#zoom").removeprefix("×"))
    zoom_to(page, max(4.0, 1.5 * fitted))
    page.wait_for_selector(f"{SHARP}:not([data-view='{before}'])")
    times = page.evaluate(TIMES, model) | {"cpu": server.cpu_seconds - used}
    zoom = float(page.text_content("#zoom").removeprefix("×"))
    page.close()
    return {"open": opened, "zoom": zoom, **times}


def first_tile_cpu(server: Server, data: bytes, model: str) -> float:
    """CPU seconds of the server from the request of a tile at ×4 to its pixels, with nothing known of the picture."""
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="photo.jpg"\r\n\r\n'
    form = {"content-type": "multipart/form-data; boundary=x"}
    request = urllib.request.Request(f"{server.address}/api/images", head + data + b"\r\n--x--\r\n", form)
    with urllib.request.urlopen(request) as answer:
        opened = json.load(answer)
    width, height = opened["width"] * 4, opened["height"] * 4
    query = f"source={model}&level={width},{height}&rect={width // 2},{height // 2},192,192&version=1"
    used = server.cpu_seconds
    urllib.request.urlopen(f"{server.address}/api/images/{opened['id']}/tile?{query}").read()
    return server.cpu_seconds - used


def cpu(server: Server, sizes: list[float], repeats: int, model: str) -> None:
    print("\n| picture | CPU time of its first tile |\n| --- | --- |")
    for megapixels in sizes:
        data = photo(megapixels)
        best = min(first_tile_cpu(server, data, model) for _ in range(repeats))
        print(f"| {megapixels:g} MP | {best:.2f} s |", flush=True)


def sharp(context: Any, server: Server, sizes: list[float], repeats: int, model: str) -> None:
    print("| picture | opened, whole | zoom | first sharp tile | whole view | CPU time of the server |")
    print("| --- | --- | --- | --- | --- | --- |")
    for megapixels in sizes:
        data = photo(megapixels)
        runs = [measure_sharp(context, server, data, model) for _ in range(repeats)]
        best = {name: min(run[name] for run in runs) for name in runs[0]}
        print(
            f"| {megapixels:g} MP | {best['open']:.1f} s | ×{best['zoom']:.1f} | {best['first']:.2f} s "
            f"| {best['whole']:.1f} s | {best['cpu']:.1f} s |",
            flush=True,
        )


def frames(context: Any, server: Server, sizes: list[float]) -> None:
    print(f"\n| picture | frames while zooming | over {SLOW_FRAME_MS} ms | longest |\n| --- | --- | --- | --- |")
    for megapixels in sizes:
        page = visit(context, server)
        choose(page, photo(megapixels))
        page.wait_for_selector(SHARP)
        page.mouse.move(620, 430)
        page.evaluate(FRAMES)
        for turn in [-200] * 20 + [200] * 20:
            page.mouse.wheel(0, turn)
            page.wait_for_timeout(50)
        seen = page.evaluate("window.frames_seen")
        slow = [ms for ms in seen if ms > SLOW_FRAME_MS]
        print(f"| {megapixels:g} MP | {len(seen)} | {len(slow)} | {max(seen):.0f} ms |", flush=True)
        page.close()


def memory(context: Any, server: Server, count: int, model: str) -> None:
    """Open pictures, then open and leave while the window is computed."""
    print("\n| resident set of the server | MB |\n| --- | --- |")
    print(f"| at the start | {server.resident_megabytes:.0f} |", flush=True)
    page, data = visit(context, server), photo(0.3)
    page.set_viewport_size(SMALL_WINDOW)  # what is kept does not depend on it, and it takes less time
    for i in range(count):
        choose(page, data + bytes([i]))
        page.wait_for_selector(SHARP)
    page.wait_for_timeout(2000)
    print(f"| after {count} pictures | {server.resident_megabytes:.0f} |", flush=True)
    large = photo(16)
    for _ in range(count):
        with page.expect_request(f"**/tile?source={model}*"):
            choose(page, large)
            page.mouse.move(240, 250)
            for _ in range(6):
                page.mouse.wheel(0, -400)
        page.click("#home")
        page.wait_for_selector("#welcome:not([hidden])")
    page.wait_for_timeout(3000)
    print(f"| after {count} cancellations at 16 MP | {server.resident_megabytes:.0f} |", flush=True)
    page.close()


def note(text: str) -> None:
    """Say how far a long part is, beside the tables."""
    print(text, file=sys.stderr, flush=True)


def tabs(context: Any, server: Server, count: int, model: str) -> None:
    """Tabs that look at large pictures, all at once, and one that opens a small one meanwhile.

    All of them are visible. They are opened together: one after the other would take most of the time, and the first
    would be done before the last begins.
    """
    pages = [visit(context, server) for _ in range(count)]
    note(f"{count} tabs are open")
    large, small = photo(16), photo(0.04)
    for page in pages[:-1]:
        page.set_input_files("#file", {"name": "photo.jpg", "mimeType": "image/jpeg", "buffer": large})
    for page in pages[:-1]:
        page.wait_for_selector("body:not([data-opening])")
        page.wait_for_selector(SHARP)
    note(f"{count - 1} pictures are open")
    start, used = time.time(), server.cpu_seconds
    before = [page.get_attribute("#stage", "data-view") for page in pages[:-1]]
    for page in pages[:-1]:
        page.evaluate(ZOOM, 4)
    choose(pages[-1], small)
    pages[-1].wait_for_selector(SHARP)
    last, used_then = time.time() - start, server.cpu_seconds - used
    note("the small picture is sharp")
    for page, view in zip(pages, before, strict=False):
        page.wait_for_selector(f"{SHARP}:not([data-view='{view}'])")
    used = server.cpu_seconds - used
    seen = [page.evaluate(SINCE, [model, 1000 * start]) for page in pages[:-1]]
    print(f"\n| {count} tabs | seconds | CPU time of the server |\n| --- | --- | --- |")
    print(f"| 0.04 MP, opened while {count - 1} tabs zoom into 16 MP | {last:.1f} | {used_then:.1f} s |")
    print(f"| first sharp tile in each of these, at the latest | {max(one['first'] for one in seen):.1f} | |")
    print(f"| all views whole | {max(one['whole'] for one in seen):.1f} | {used:.1f} s |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megapixels", nargs="+", type=float, default=[0.04, 0.3, 16, 48])
    parser.add_argument("--repeats", type=int, default=3, help="times are the best of so many")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--pictures", type=int, default=20, help="pictures and cancellations of the memory part")
    parser.add_argument("--tabs", type=int, default=10)
    parser.add_argument("--model", default="light", help="name of a shipped model")
    parser.add_argument("--memory", default="2G", help="--memory of srno serve")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} core(s), load {os.getloadavg()[0]:.1f} before the start\n", flush=True)
    parts: dict[str, Callable[[Any, Server], None]] = {
        "sharp": lambda context, server: sharp(context, server, given.megapixels, given.repeats, given.model),
        "cpu": lambda _, server: cpu(server, given.megapixels, given.repeats, given.model),
        "frames": lambda context, server: frames(context, server, given.megapixels),
        "memory": lambda context, server: memory(context, server, given.pictures, given.model),
        "tabs": lambda context, server: tabs(context, server, given.tabs, given.model),
    }
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=chromium, args=FLAGS)
        for name in (name for name in parts if name in given.only):
            # A server of its own, without what the part before it has left.
            with serving(given.model, given.memory, given.threads) as server:
                context = browser.new_context(viewport=WINDOW)
                parts[name](context, server)
                context.close()
        browser.close()


if __name__ == "__main__":
    main()
