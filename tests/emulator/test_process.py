"""The emulator as a process: command line, ready line, broken connections, state file."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.emulator import NotStarted, Running, running
from pulumi_hosting.rehearsal.warm_python import PYTHON
from tests.emulator.support import OVER_HTTP
from tests.support.account import Account
from tests.support.emulators import EmulatorPool
from tests.support.waiting import HANG_SECONDS

SERVER = {"tariff_id": 1, "os": "debian-12"}
KEY = {"Idempotency-Key": "0123456789abcdef"}

pytestmark = pytest.mark.usefixtures("warm")  # processes are forked from one that has imported everything


def api(emulator: Running, **options: Any) -> httpx.Client:
    headers = {"Authorization": f"Bearer {emulator.live_key}"}
    return httpx.Client(base_url=emulator.base_url, headers=headers, **{**OVER_HTTP, **options})


def control(emulator: Running, method: str, path: str, body: Any = None) -> Any:
    response = httpx.request(method, f"{emulator.control_url}{path}", json=body, **OVER_HTTP)
    assert response.status_code == 200, response.text
    return response.json()


def start(*arguments: str, python: str | None = None) -> "subprocess.Popen[str]":
    command = [python or sys.executable, "-m", "pulumi_hosting.emulator", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# --- the command line -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_ready_line_and_exit_code_0(sign: signal.Signals) -> None:
    with start("--seed", "3", python=PYTHON) as process:
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        assert list(line) == ["base_url", "control_url", "console_url", "live_key", "test_key", "pid"]
        assert (line["pid"], line["base_url"].endswith("/v1"), line["control_url"].endswith("/_control")) == (
            process.pid,
            True,
            True,
        )
        httpx.get(
            f"{line['base_url']}/me",
            headers={"Authorization": f"Bearer {line['live_key']}"},
            **OVER_HTTP,
        ).raise_for_status()
        process.send_signal(sign)
        out, err = process.communicate(timeout=HANG_SECONDS)
        assert (process.returncode, out, err) == (0, "", "")


def test_account_and_now_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "account.yaml"
    file.write_text("account: {balance: '7.00'}\nservers:\n- {id: 812, next_due_at: 2031-03-01T00:00:00Z}\n")
    with running(account=file, now="2031-01-01T00:00:00Z", clock="manual") as emulator, api(emulator) as http:
        for _ in range(2):
            servers, me = http.get("/servers"), http.get("/me").json()
            assert [row["id"] for row in servers.json()["data"]] == [812]
            assert servers.headers["Date"] == "Wed, 01 Jan 2031 00:00:00 GMT"
            assert http.get("/balance").json()["balance"] == "7.00"
            control(emulator, "POST", "/reset", {})
        assert http.get("/me").json()["emulator_start"] != me["emulator_start"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("servers: [{tarif_id: 1}]", "servers, entry 1: unknown field: tarif_id; known: id"),
        ("server: []", "unknown section: server; known: account, locations"),
        ("[1]", "[1]"),
        ("a: b: c", "cannot read"),
        ("servers: web", "account.yaml: servers: must be a list, not 'web'. Next: correct the file\n"),
        (
            "servers: [{id: 1, ips: [{id: 7}]}, {id: 2, ips: [{id: 7}]}]",
            "servers, entry 2: id: there is a row 7",
        ),
        ("servers: [{ips: [{address: 192.0.2}]}]", "servers, entry 1: ips.0.address: must be an IPv4"),
        ("domains: [{name: shop.example}]", "'shop.example' is in no zone of the catalog. Next: correct"),
    ],
)
def test_a_wrong_account_file_is_one_line_and_exit_code_2(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "account.yaml").write_text(text)
    done = start("--account", str(tmp_path / "account.yaml"))
    out, err = done.communicate(timeout=HANG_SECONDS)
    assert (done.returncode, out, len(err.splitlines()), words in err) == (2, "", 1, True), err


def test_a_port_in_use_is_one_line_and_exit_code_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = start("--port", str(port))
        out, err = done.communicate(timeout=HANG_SECONDS)
        assert (done.returncode, out, len(err.splitlines())) == (2, "", 1)
        assert f"port {port}" in err
        with pytest.raises(NotStarted, match="exit code 2"), running(port=port):
            pass


@pytest.mark.parametrize("content", [b"this is no state file, whatever it is" * 30, None])
def test_an_unreadable_state_file_is_one_line_and_exit_code_2(content: bytes | None, tmp_path: Path) -> None:
    state = tmp_path / "state"
    if content is None:
        state.mkdir()
        state = state / "missing" / "file"
    else:
        state.write_bytes(content)
    done = start("--state", str(state))
    out, err = done.communicate(timeout=HANG_SECONDS)
    assert (done.returncode, out, len(err.splitlines())) == (2, "", 1)
    assert str(state) in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--dialect", "odd"],
        ["--webhook-route", "https://a.example.org"],
        ["--webhook-route", "https://a.example.org=http://example.com"],
        ["--tls", "no", "file"],
        ["--allow-host", "http://emulator"],
    ],
)
def test_wrong_options(arguments: list[str]) -> None:
    done = start(*arguments)
    _, err = done.communicate(timeout=HANG_SECONDS)
    assert done.returncode == 2
    assert "Traceback" not in err


def test_the_command_is_part_of_the_command_line() -> None:
    from click.testing import CliRunner

    from pulumi_hosting.emulator.cli import emulator

    shown = CliRunner().invoke(emulator, ["--help"]).output
    for option in (
        "host",
        "allow-host",
        "port",
        "dialect",
        "state",
        "seed",
        "clock",
        "provisioning-delay",
        "ip-delay",
        "tls",
        "webhook-route",
        "log",
        "export",
    ):
        assert f"--{option} " in shown


def test_options(tmp_path: Path) -> None:
    with (
        running(
            dialect="live",
            clock="manual",
            provisioning_delay=60,
            ip_delay=30,
            allow_host=["emulator", "[::2]"],
        ) as emulator,
        api(emulator) as http,
    ):
        for host, status in {"emulator:80": 200, "[::2]": 200, "evil.example": 403}.items():
            answer = httpx.get(f"{emulator.control_url}/objects", headers={"Host": host}, **OVER_HTTP)
            assert answer.status_code == status
        assert "vk_" not in repr(emulator)
        created = http.post("/servers", json=SERVER, headers=KEY).json()["server"]["id"]
        assert (
            http.post(f"/servers/{created}/ips", headers={"Idempotency-Key": "0123456789abcdeg"}).status_code
            == 201
        )
        assert len(http.get(f"/servers/{created}/ips").json()["data"]) == 2
        control(emulator, "POST", "/clock", {"advance": 30})
        assert len(http.get(f"/servers/{created}/ips").json()["data"]) == 3


def test_tls(tmp_path: Path) -> None:
    import ssl

    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(certificate, key)
    with running(tls=(certificate, key)) as emulator:
        assert emulator.base_url.startswith("https://127.0.0.1:")
        with api(emulator, verify=ssl.create_default_context(cafile=str(certificate))) as http:
            assert http.get("/me").status_code == 200


def make_certificate(certificate: Path, key: Path) -> None:
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


# --- connections ------------------------------------------------------------------------------------------


@pytest.fixture
def emulator(emulator_pool: EmulatorPool) -> Running:
    """One process for all tests of connections, with a fresh account for each."""
    return emulator_pool.get(clock="manual")


@pytest.mark.parametrize(("when", "ordered"), [("before", 0), ("after", 1)])
def test_drop(when: str, ordered: int, emulator: Running) -> None:
    control(emulator, "POST", "/faults", {"method": "POST", "action": {"drop": when}})
    with api(emulator) as http:
        with pytest.raises(httpx.RemoteProtocolError, match="disconnected"):
            http.post("/servers", json=SERVER, headers=KEY)
        assert len(http.get("/servers").json()["data"]) == ordered
        assert http.post("/servers", json=SERVER, headers=KEY).status_code == 201
        assert len(http.get("/servers").json()["data"]) == 1
        assert http.get("/balance").json()["balance"] == "995.00"
    seen = control(emulator, "GET", "/requests")[0]
    assert (seen["path"], seen["status"]) == ("/servers", 201 if ordered else None)


@pytest.mark.parametrize("size", [0, 1, 100])
def test_truncate(size: int, emulator: Running) -> None:
    control(emulator, "POST", "/faults", {"action": {"truncate": size}})
    with api(emulator) as http:
        with pytest.raises(httpx.RemoteProtocolError, match=rf"received {size} bytes"):
            http.post("/servers", json=SERVER, headers=KEY)
        assert len(http.get("/servers").json()["data"]) == 1
        control(emulator, "POST", "/faults", {"action": {"truncate": 100_000}})
        assert http.get("/me").status_code == 200


def test_drop_and_truncate_in_process() -> None:
    account = Account()
    for action, pattern in (
        ({"drop": "before"}, "disconnected"),
        ({"drop": "after"}, "disconnected"),
        ({"truncate": 7}, "complete message"),
    ):
        account.fault(action)
        with pytest.raises(httpx.RemoteProtocolError, match=pattern):
            account.api("GET", "/me")
    assert [row["status"] for row in account.control("GET", "/requests")] == [None, 200, 200]


def test_a_second_request_with_the_same_key_is_in_progress(emulator: Running) -> None:
    control(emulator, "POST", "/faults", {"method": "POST", "action": {"delay": 2.0}})
    answers: list[httpx.Response] = []
    with api(emulator) as http:
        slow = threading.Thread(
            target=lambda: answers.append(http.post("/servers", json=SERVER, headers=KEY))
        )
        slow.start()
        while not control(emulator, "GET", "/requests"):
            pass
        second = http.post("/servers", json=SERVER, headers=KEY)
        assert (second.status_code, second.json()["error"]["code"]) == (409, "idempotency_in_progress")
        assert int(second.headers["Retry-After"]) >= 1
        slow.join()
        assert answers[0].status_code == 201
        assert http.post("/servers", json=SERVER, headers=KEY).status_code == 201
        assert len(http.get("/servers").json()["data"]) == 1


def test_concurrent_requests_with_one_key_pay_once(emulator: Running) -> None:
    with api(emulator) as http:
        answers: list[int] = []
        threads = [
            threading.Thread(
                target=lambda: answers.append(http.post("/servers", json=SERVER, headers=KEY).status_code)
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(answers) == {201}
        assert http.get("/balance").json()["balance"] == "995.00"


def test_large_and_broken_bodies(emulator: Running) -> None:
    with api(emulator) as http:
        headers = {**KEY, "Content-Type": "application/json"}
        assert http.post("/servers", content=b"x" * 65536, headers=headers).status_code == 400
        assert http.post("/servers", content=b"x" * 65537, headers=headers).status_code == 413
        assert (
            http.post(
                "/servers", content=iter([b"x" * 40000, b"y" * 40000, b"z" * 400000]), headers=headers
            ).status_code
            == 413
        )
        assert http.get("/me").status_code == 200


def test_a_header_does_not_change_the_address_of_the_caller(emulator: Running) -> None:
    with api(emulator) as http:
        me = http.get("/me", headers={"X-Forwarded-For": "10.0.0.1"}).json()
    assert me["key"]["last_used_ip"] == "127.0.0.1"


def test_an_incomplete_request_changes_nothing(emulator: Running) -> None:
    host, port = emulator.base_url.split("/")[2].split(":")
    body = json.dumps(SERVER)
    key = f"Authorization: Bearer {emulator.live_key}\r\nIdempotency-Key: 0123456789abcdef\r\n"
    head = f"POST /v1/servers HTTP/1.1\r\nHost: x\r\n{key}"
    with socket.create_connection((host, int(port))) as line:
        line.sendall(
            (
                f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body[:10]}"
            ).encode()
        )
    with api(emulator) as http:
        assert http.get("/balance").json()["balance"] == "1000.00"
        assert http.get("/servers").json()["data"] == []


def test_paths_outside_the_api(emulator: Running) -> None:
    root = emulator.base_url.removesuffix("/v1")
    for path in ("/", "/v2/me", "/servers"):
        response = httpx.get(root + path, **OVER_HTTP)
        assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
    for method in ("HEAD", "OPTIONS", "TRACE"):
        refused = httpx.request(method, f"{emulator.base_url}/servers", **OVER_HTTP)
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, POST")
    assert httpx.get(emulator.base_url, **OVER_HTTP).status_code == 404
    assert httpx.get(emulator.control_url, **OVER_HTTP).json()["pid"] == emulator.pid
    server = httpx.post(f"{emulator.control_url}/servers", json={}, **OVER_HTTP).json()["id"]
    response = httpx.get(
        f"{emulator.base_url}/servers%2F{server}",
        headers={"Authorization": f"Bearer {emulator.live_key}"},
        **OVER_HTTP,
    )
    assert response.status_code == 404


# --- the state file ---------------------------------------------------------------------------------------


def everything(emulator: Running) -> dict[str, Any]:
    found = {path: control(emulator, "GET", path) for path in ("/objects", "/ledger", "/requests")}
    return dict(json.loads(json.dumps(found, sort_keys=True)))


def test_answered_changes_survive_a_kill(tmp_path: Path) -> None:
    state = tmp_path / "state"
    options: dict[str, Any] = {"state": state, "clock": "manual", "seed": 5, "provisioning_delay": 60}
    with running(**options) as emulator, api(emulator) as http:
        control(emulator, "POST", "/clock", {"advance": 3600})
        first = http.post("/servers", json=SERVER, headers=KEY)
        control(emulator, "POST", "/faults", {"path": "^/servers$", "action": {"panel_timeout": "active"}})
        order = http.post("/servers", json=SERVER, headers={"Idempotency-Key": "another-0123456789"}).json()
        http.post("/domains", json={"name": "example.com"}, headers={"Idempotency-Key": "domain-0123456789"})
        http.post("/webhooks", json={"url": "https://hooks.example.org/", "events": ["*"]})
        control(emulator, "PATCH", "/service", {"readings": {"deleted_servers": "listed"}, "dialect": "live"})
        control(emulator, "POST", "/faults", {"method": "DELETE", "action": {"status": 503}})
        remaining = http.get("/me").headers["X-RateLimit-Remaining"]
        before = everything(emulator)
        os.kill(emulator.pid, signal.SIGKILL)
    with running(**options) as emulator, api(emulator) as http:
        assert everything(emulator) == before
        again = http.post("/servers", json=SERVER, headers=KEY)
        assert (again.status_code, again.json()["server"], again.json()["root_password"]) == (
            201,
            first.json()["server"],
            "",
        )
        assert http.get("/me").headers["X-RateLimit-Remaining"] == str(int(remaining) - 1)
        assert http.delete("/keys/1").status_code == 503
        control(emulator, "POST", "/clock", {"advance": 60})
        assert http.get(f"/orders/{order['invoice_id']}").json()["status"] == "active"
        service = control(emulator, "PATCH", "/service", {})
        assert (service["dialect"], service["readings"]["deleted_servers"]) == ("live", "listed")
        fresh = http.post("/servers", json=SERVER, headers={"Idempotency-Key": "third-0123456789"})
        ids = [row["id"] for row in http.get("/servers").json()["data"]]
        assert len(set(ids)) == 3
        assert fresh.headers["X-Request-ID"] not in [row["response"] for row in before["/requests"]]
        control(emulator, "POST", "/reset", {})
    with running(**options) as emulator:
        assert control(emulator, "GET", "/requests") == []
        assert control(emulator, "GET", "/objects")["servers"] == []


def test_a_state_file_is_locked(tmp_path: Path) -> None:
    with running(state=tmp_path / "state"):
        second = start("--state", str(tmp_path / "state"))
        out, err = second.communicate(timeout=HANG_SECONDS)
    assert (second.returncode, out, len(err.splitlines())) == (2, "", 1)
    assert "locked" in err


def test_a_kill_before_the_answer_is_sent(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with running(state=state) as emulator, api(emulator) as http:
        control(emulator, "POST", "/faults", {"action": {"drop": "after"}})
        with pytest.raises(httpx.TransportError):
            http.post("/servers", json=SERVER, headers=KEY)
        os.kill(emulator.pid, signal.SIGKILL)
    with running(state=state) as emulator, api(emulator) as http:
        assert http.post("/servers", json=SERVER, headers=KEY).status_code == 201
        assert len(http.get("/servers").json()["data"]) == 1
