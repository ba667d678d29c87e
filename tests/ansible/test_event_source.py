"""The event source as ansible-rulebook runs it: loaded by its path, and under the program itself.

The receiver is tested in tests/webhooks, what the event source adds to it in the collection's unit tests.
"""

import asyncio
import json
import os
import runpy
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from ansible_collections.hosting.cloud.tests.unit.plugins.event_source.test_webhook import *  # noqa: F403  # they count here as well
from pulumi_hosting.api.models import Delivery
from pulumi_hosting.client.client import Client
from pulumi_hosting.rehearsal.control_client import Control
from tests.ansible.conftest import BIN, COLLECTION, ROOT, kill_all
from tests.support.ports import free_port
from tests.support.waiting import HANG_SECONDS, wait_until
from tests.webhooks.support import OTHER_SECRET, SECRET, body, signed

FILE = COLLECTION / "extensions" / "eda" / "plugins" / "event_source" / "webhook.py"
ORIGIN = "https://hooks.example.org"
HOURLY = 3  # the tariff of the emulator that is paid by the hour


def test_a_delivery_reaches_the_queue(tmp_path: Path) -> None:
    """Loaded by its path, as ansible-rulebook does."""
    port = free_port()
    main = runpy.run_path(str(FILE))["main"]
    raw = body("evt_1")

    async def play() -> dict[str, Any]:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(1)
        task = asyncio.create_task(
            main(queue, {"port": port, "secret": SECRET, "state_file": str(tmp_path / "events.sqlite")})
        )
        transport = httpx.AsyncHTTPTransport(retries=10)  # with growing pauses, until it listens
        async with httpx.AsyncClient(transport=transport, timeout=HANG_SECONDS) as http:
            assert (
                await http.post(f"http://127.0.0.1:{port}/", content=raw, headers=signed(raw))
            ).status_code == 200
        async with asyncio.timeout(HANG_SECONDS):
            event = await queue.get()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return event

    event = asyncio.run(play())
    assert event["payload"] == json.loads(raw)
    assert (event["meta"]["uuid"], event["meta"]["endpoint"]) == ("evt_1", "/")
    assert event["meta"]["received_at"].endswith("Z")
    assert "source" not in event["meta"]  # ansible-rulebook sets it, and finds by it where feedback goes


class Subscriber:
    """An account with a subscription, at an emulator whose deliveries go where they are told to."""

    def __init__(self, emulator: Any) -> None:
        self.emulator = emulator
        self.control = Control(emulator.control_url)
        self.client = Client(emulator.live_key, emulator.base_url)
        made = self.client.webhooks.create(url=f"{ORIGIN}/hosting", events=["*"])
        self.id, self.secret = made.id, made.secret.reveal()
        self.servers = 0

    def route(self, url: str | None) -> None:
        self.control("PUT", "/webhook-routes", {} if url is None else {ORIGIN: url})

    def order(self, tariff_id: int = 1, **period: Any) -> str:
        """Order a server; the id of the event that says so."""
        self.servers += 1
        key = f"order-of-server-{self.servers:04d}"
        self.client.servers.create(
            tariff_id=tariff_id, os="debian-12", name=f"web-{self.servers}", idempotency_key=key, **period
        )
        self.control("POST", "/clock", {"advance": 0})
        return self.newest("server.created").event_id or ""

    def newest(self, event: str) -> Delivery:
        return next(row for row in self.client.webhooks.deliveries.list(self.id) if row.event_type == event)

    def delivered(self, event: str) -> Delivery:
        """The newest delivery of this event, which has been accepted."""
        self.control("POST", "/clock", {"advance": 0})
        found = self.newest(event)
        assert found.status == "delivered", found
        return found

    def redeliver(self, delivery: Delivery) -> None:
        self.client.webhooks.deliveries.redeliver(delivery.id)
        assert self.delivered(delivery.event_type).event_id == delivery.event_id


@pytest.fixture
def subscriber(emulator: Any) -> Subscriber:
    return Subscriber(emulator)


NEVER_TAKES = """
import asyncio, runpy, sys

class Rules:
    async def put(self, event):
        await asyncio.Event().wait()

main = runpy.run_path(sys.argv[1])["main"]
asyncio.run(main(Rules(), {"port": int(sys.argv[2]), "path": "/hosting", "state_file": sys.argv[3]}))
"""


class Program:
    """ansible-rulebook with an example rulebook, in a folder of its own."""

    def __init__(self, subscriber: Subscriber, home: Path, rulebook: str = "account.yml") -> None:
        self.subscriber, self.home, self.state = subscriber, home, home / "events.sqlite"
        self.rulebook = rulebook
        self.output = home / "output.txt"
        self.folder = home / "rulebooks"
        shutil.copytree(COLLECTION / "examples" / "rulebooks", self.folder)
        self.port = free_port()
        self.secret = home / "webhook-secret"
        self.secret.write_text(subscriber.secret)
        variables = {"port": self.port, "state_file": str(self.state), "secret_file": str(self.secret)}
        (home / "variables.yml").write_text(json.dumps(variables))
        subscriber.route(f"http://127.0.0.1:{self.port}")
        self.environ = {
            "HOME": str(home),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(home),  # each run_playbook has a folder there, which a kill leaves behind
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT),
            "HOSTING_API_KEY": subscriber.emulator.live_key,
            "HOSTING_BASE_URL": subscriber.emulator.base_url,
        }
        if "JAVA_HOME" in os.environ:
            self.environ["JAVA_HOME"] = os.environ["JAVA_HOME"]

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        command = [
            "ansible-rulebook",
            "--rulebook",
            self.rulebook,
            "--inventory",
            "inventory.yml",
            "--vars",
            str(self.home / "variables.yml"),
        ]
        with self.output.open("a") as output:
            process = subprocess.Popen(
                [str(BIN / command[0]), *command[1:], *arguments],
                env=self.environ,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        wait_until(self.listens)
        return process

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def deliver(self, raw: bytes, headers: Mapping[str, str]) -> int:
        return httpx.post(
            f"http://127.0.0.1:{self.port}/hosting", content=raw, headers=dict(headers), timeout=HANG_SECONDS
        ).status_code

    def said(self, text: str) -> int:
        return self.output.read_text().count(text)


@pytest.mark.slow
def test_rules_fire_under_ansible_rulebook(subscriber: Subscriber, tmp_path: Path) -> None:
    """The emulator delivers to the example rulebook: each event starts its playbook once, over duplicates and
    two kills."""
    program = Program(subscriber, tmp_path)

    # Kept and acknowledged, but no rule ever had it: the process is gone.
    arguments = [sys.executable, "-c", NEVER_TAKES, str(FILE), str(program.port), str(program.state)]
    doomed = subprocess.Popen(
        arguments, env={**program.environ, "HOSTING_WEBHOOK_SECRET": subscriber.secret}, cwd=tmp_path
    )
    wait_until(program.listens)
    subscriber.order()
    (server,) = subscriber.client.servers.list()
    subscriber.control("PATCH", f"/servers/{server.id}", {"status": "suspended"})
    suspended = subscriber.delivered("server.suspended")
    doomed.kill()
    doomed.wait()

    running = program.start()
    try:
        wait_until(
            lambda: program.said(f"{server.name} ({server.id}) is suspended. Look at unpaid invoices") == 1
        )
        subscriber.order(HOURLY, hours=24)
        subscriber.control("PATCH", "/account", {"balance": "0.01"})
        subscriber.delivered("balance.low")
        wait_until(lambda: program.said("Top up: ") == 1)
        # Nothing of this starts a playbook.
        raw = body("evt_forged", "balance.low")
        assert program.deliver(raw, signed(raw, OTHER_SECRET)) == 401
        assert program.deliver(raw, signed(raw, subscriber.secret, age=301)) == 401
        subscriber.redeliver(suspended)
    finally:
        kill_all(running)

    # This time an event is marked when the rule engine confirms it.
    rulebook = program.folder / "account.yml"
    rulebook.write_text(
        rulebook.read_text().replace("path: /hosting\n", "path: /hosting\n        feedback: true\n")
    )
    running = program.start("-vv", "--persistence-id", "account")
    try:
        subscriber.redeliver(suspended)
        subscriber.control("PATCH", f"/servers/{server.id}", {"status": "active"})
        subscriber.control("PATCH", f"/servers/{server.id}", {"status": "suspended"})
        wait_until(lambda: program.said("is suspended. Look at unpaid invoices") > 1)
        # The rules take one event after the other: what came before this one has been taken, too.
        assert program.said("TASK [Say what is to be done]") == 2
        assert program.said("TASK [Show what would renew automatically]") == 1
        running.terminate()
        running.wait(timeout=HANG_SECONDS)
    finally:
        if running.poll() is None:
            kill_all(running)

    with closing(sqlite3.connect(program.state)) as kept:
        assert kept.execute("SELECT count(*) FROM events WHERE done_at IS NULL").fetchone() == (0,)
    output = program.output.read_text()
    assert subscriber.secret not in output
    assert subscriber.emulator.live_key not in output
    assert "Traceback" not in output
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert [path for path, content in files.items() if subscriber.secret.encode() in content] == [
        program.secret
    ]
    # The API key is the playbooks' own, so it is in the environment that ansible-runner writes down for each.
    runners = {path for path in files if path.name == "command"}
    assert [
        path
        for path, content in files.items()
        if subscriber.emulator.live_key.encode() in content and path not in runners
    ] == []
