"""Nobody from elsewhere gets in, and the page gets nowhere else."""

import pytest
from serving import PORT, picture

from srno.server.guard import names_for

OURS = ["127.0.0.1", "127.0.0.1:7766", "localhost", "localhost:80", "LOCALHOST:9000", "[::1]", "[::1]:7766"]
OTHERS = [
    "evil.example",
    "evil.example:7766",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "127.0.0.1@evil.example",
    "evil.example/127.0.0.1",
    "192.168.1.5",
    "[::2]",
    "::1",
    "",
    "localhost:port",
]


@pytest.mark.parametrize("host", OURS)
def test_our_own_names_are_answered(client, host):
    assert client.get("/api/about", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", OTHERS)
def test_other_names_are_refused(client, host):
    for path in ("/", "/api/about", "/static/main.js", "/nothing"):
        answer = client.get(path, headers={"host": host})
        assert answer.status_code == 403
        assert "--host" in answer.text


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:3000", "http://localhost:7766", f"ftp://127.0.0.1:{PORT}", ""],
)
def test_other_origins_are_refused(client, origin):
    headers = {"origin": origin}
    assert client.get("/api/about", headers=headers).status_code == 403
    assert client.post("/api/images", files={"file": ("a.png", picture(8, 8))}, headers=headers).status_code == 403


def test_our_own_origin_is_welcome(client):
    headers = {"origin": f"http://127.0.0.1:{PORT}"}
    assert client.post("/api/images", files={"file": ("a.png", picture(8, 8))}, headers=headers).status_code == 201


@pytest.mark.parametrize(
    ("host", "allowed", "refused"),
    [
        ("192.168.1.5", ["192.168.1.5:80", "localhost"], ["192.168.1.6", "evil.example"]),
        ("attic.local", ["attic.local", "ATTIC.local:7766"], ["cellar.local"]),
        ("fe80::1", ["[fe80::1]:7766"], ["[fe80::2]"]),
        ("0.0.0.0", ["192.168.1.5", "[fe80::1]:80", "10.0.0.1:7766", "localhost"], ["evil.example", "10.evil.example"]),
    ],
)
def test_what_host_adds(host, allowed, refused):
    names = names_for(host)
    assert all(names.allows(name) for name in allowed)
    assert not any(names.allows(name) for name in refused)


@pytest.mark.parametrize("path", ["/", "/static/style.css", "/api/about", "/api/exports/nothing", "/nothing"])
def test_every_answer_keeps_the_page_to_itself(client, path):
    headers = client.get(path).headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == policy["style-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/api/examples/.."]
)
def test_no_way_out_of_the_folder(client, path):
    assert client.get(path).status_code == 404
