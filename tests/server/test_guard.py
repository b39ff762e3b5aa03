"""Requests with other hosts or origins are refused, and the page cannot contact other hosts."""

import pytest
from serving import PORT, picture

from srno.server.app import make_app
from srno.server.guard import TOKEN_COOKIE, allowed_hosts

ALLOWED_HOSTS = ["127.0.0.1", "127.0.0.1:7766", "localhost", "localhost:80", "LOCALHOST:9000", "[::1]", "[::1]:7766"]
OTHER_HOSTS = [
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


@pytest.mark.parametrize("host", ALLOWED_HOSTS)
def test_local_hosts_are_accepted(client, host):
    assert client.get("/api/about", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_other_hosts_are_refused(client, host):
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


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_requests_of_other_sites_are_refused(client, site, status):
    for path in ("/", "/api/about", "/static/main.js"):
        assert client.get(path, headers={"sec-fetch-site": site}).status_code == status


def test_the_same_origin_is_accepted(client):
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
def test_the_host_flag_adds_its_value(host, allowed, refused):
    hosts = allowed_hosts(host)
    assert all(hosts.allows(name) for name in allowed)
    assert not any(hosts.allows(name) for name in refused)


def test_all_interfaces_accept_the_names_of_the_machine(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "Attic")
    monkeypatch.setattr("socket.getfqdn", lambda: "attic.home.example")
    hosts = allowed_hosts("0.0.0.0")
    assert all(hosts.allows(name) for name in ("attic", "attic:7766", "attic.local", "Attic.home.example:80"))


def device(studio, address: str, token: str | None = "secret"):
    """A client at an address."""
    testing = pytest.importorskip("starlette.testclient", reason="the server needs srno[serve]")
    app = make_app(studio, allowed_hosts("0.0.0.0"), token)
    return testing.TestClient(app, base_url="http://192.168.1.5:7766", client=(address, 50_000), follow_redirects=False)


def test_another_device_needs_the_token(studio):
    phone = device(studio, "192.168.1.9")
    for path in ("/", "/api/about", "/static/main.js", "/?token=wrong", "/api/about?token=secret"):
        assert phone.get(path).status_code == 403
    answer = phone.get("/?token=secret")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    for path in ("/", "/api/about", "/static/main.js"):
        assert phone.get(path).status_code == 200  # the client keeps the cookie
    stranger = device(studio, "192.168.1.10")
    stranger.cookies.set(TOKEN_COOKIE, "guess")
    assert stranger.get("/api/about").status_code == 403


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9", "::1"])
def test_this_machine_needs_no_token(studio, address):
    assert device(studio, address).get("/api/about").status_code == 200


def test_a_server_without_a_token_accepts_every_device(studio):
    assert device(studio, "192.168.1.9", None).get("/api/about").status_code == 200


@pytest.mark.parametrize("path", ["/", "/static/style.css", "/api/about", "/api/exports/nothing", "/nothing"])
def test_every_response_has_the_security_headers(client, path):
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
def test_paths_outside_the_static_folder_are_not_found(client, path):
    assert client.get(path).status_code == 404
