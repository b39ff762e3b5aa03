"""The page's files: small, complete, and independent of other hosts."""

import re

import pytest

from srno.server.app import static_folder

FILES = sorted(static_folder().iterdir())


def test_all_files_together_have_less_than_150_kilobytes():
    assert sum(path.stat().st_size for path in FILES) < 150_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_refers_to_another_host(path):
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z0-9-]+\.[a-z]", text)


def test_every_referenced_file_is_served(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    wanted = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text))
    for path in FILES:
        wanted |= {f"/static/{name}" for name in re.findall(r'(?:from |import\()"\./([^"]+)"', path.read_text())}
    assert len(wanted) == len(FILES) - 2  # all but the page itself and its service worker
    types = {".js": "javascript", ".css": "css", ".svg": "svg", ".webmanifest": "manifest"}
    for name in wanted:
        answer = client.get(name)
        assert answer.status_code == 200, name
        assert types[name[name.rindex(".") :]] in answer.headers["content-type"]


def test_the_service_worker_keeps_every_file(client):
    text = client.get("/sw.js").text
    kept = set(re.findall(r'^  "(/[^"]*)",$', text, re.MULTILINE))
    assert kept == {"/"} | {f"/static/{path.name}" for path in FILES if path.name not in ("index.html", "sw.js")}


def test_the_page_has_no_inline_styles_or_scripts():
    page = (static_folder() / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)


def test_every_control_has_a_label():
    page = (static_folder() / "index.html").read_text()
    labelled = set(re.findall(r'<label[^>]* for="([^"]+)"', page))
    for tag in re.findall(r"<(?:input|select|progress)[^>]*>", page):
        wrapped = re.search(r'name="mode"|id="model"|id="against"', tag)  # inside their labels
        name = re.search(r'id="([^"]+)"', tag)
        assert wrapped or "aria-label" in tag or (name and name[1] in labelled), tag


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/static/style.css"])
def test_browsers_ask_for_changed_files(client, path):
    first = client.get(path)
    assert first.headers["cache-control"] == "no-cache"
    if path != "/":
        assert client.get(path, headers={"if-none-match": first.headers["etag"]}).status_code == 304
