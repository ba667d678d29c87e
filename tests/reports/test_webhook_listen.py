"""``pulumi-hosting webhook listen``: the deliveries of the service, printed as they arrive."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from click.testing import CliRunner

from pulumi_hosting.cli import main
from tests.reports.conftest import Owner
from tests.support.waiting import interruptible, wait_until
from tests.webhooks.support import OTHER_SECRET, SECRET, body, signed

ORIGIN = "https://hooks.example.org"


@contextmanager
def listening(*options: str, secret: str = SECRET) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The command, and the URL that it says it listens on."""
    environ = {**os.environ, "HOSTING_WEBHOOK_SECRET": secret, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "pulumi_hosting.cli", "webhook", "listen", "--port", "0", *options]
    with interruptible():
        started = subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    with started as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("listening on http://127.0.0.1:"), line + process.stderr.read()
            yield process, line.removeprefix("listening on ").strip()
        finally:
            process.terminate()  # as Ctrl-C: it removes what it keeps


def ended(process: "subprocess.Popen[str]", how: signal.Signals) -> tuple[int, str, str]:
    process.send_signal(how)
    printed, said = process.communicate(timeout=600)
    return process.returncode, printed, said


def test_events_are_printed_and_bad_signatures_refused() -> None:
    with listening("--json") as (process, url):
        raw, forged = body("evt_1"), body("evt_2")
        assert httpx.post(url, content=raw, headers=signed(raw)).status_code == 200
        assert httpx.post(url, content=forged, headers=signed(forged, OTHER_SECRET)).status_code == 401
        assert httpx.post(url, content=raw, headers=signed(raw)).status_code == 200  # delivered again
        assert process.stdout is not None
        shown = json.loads(process.stdout.readline())
        code, printed, said = ended(process, signal.SIGINT)
    assert shown["event"] == json.loads(raw)
    assert shown["received_at"].endswith("Z")
    assert (code, printed) == (0, "")
    assert "refused a delivery from 127.0.0.1: no signature in X-Webhook-Signature matches" in said
    assert said.endswith("stopped\n")
    assert SECRET not in said


def test_a_delivery_of_the_service_is_printed_and_accepted(owner: Owner) -> None:
    made = owner.client.webhooks.create(url=f"{ORIGIN}/hosting", events=["server.created"])
    with listening("--path", "/hosting", secret=made.secret.reveal()) as (process, url):
        owner.control("PUT", "/webhook-routes", {ORIGIN: url.removesuffix("/hosting")})
        id = owner.order("web")
        assert process.stdout is not None
        line = process.stdout.readline()
        wait_until(
            lambda: [one.last_status for one in owner.client.webhooks.deliveries.list(made.id)] == [200]
        )
        code, printed, _ = ended(process, signal.SIGTERM)
    assert f"server.created  {id} web  (" in line
    assert (code, printed) == (0, "")
    assert owner.living_ids == [id]


def test_a_second_signal_does_not_disturb_the_end() -> None:
    with listening() as (process, _):
        process.send_signal(signal.SIGTERM)
        code, printed, said = ended(process, signal.SIGTERM)
    assert (code, printed) == (0, "")
    assert said.endswith("stopped\n")
    assert "Traceback" not in said


def test_what_is_not_printable_does_not_reach_the_terminal() -> None:
    with listening() as (process, url):
        raw = body("evt_1", data={"object": {"id": 11, "name": "web\x1b[2J"}, "previous": None})
        assert httpx.post(url, content=raw, headers=signed(raw)).status_code == 200
        assert process.stdout is not None
        assert "server.created  11 web?[2J  (evt_1)" in process.stdout.readline()


@pytest.mark.parametrize("given", [None, "mysecret"])
def test_without_a_secret_it_does_not_listen(given: str | None) -> None:
    environ = {"HOSTING_WEBHOOK_SECRET": given}
    answer = CliRunner().invoke(main, ["webhook", "listen", "--port", "0"], env=environ)
    assert answer.exit_code == 2
    assert answer.stderr.splitlines()[-1] == (
        f"error: {'HOSTING_WEBHOOK_SECRET holds what is ' if given else ''}no webhook secret"
        f"{' (not shown)' if given else ''}. Next: set HOSTING_WEBHOOK_SECRET to the subscription's whsec_…, "
        "shown when it is created or rotated"
    )


def test_a_port_that_is_taken_ends_it_with_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = [sys.executable, "-m", "pulumi_hosting.cli", "webhook", "listen", "--port", str(port)]
        environ = {**os.environ, "HOSTING_WEBHOOK_SECRET": SECRET}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"error: cannot listen on 127.0.0.1, port {port}: another program uses it. Next: give another --port"
    ]
