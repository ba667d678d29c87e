"""``ready: ssh``: waited for after the purchase, in both frontends. The peer listens on loopback; a program
named ``ssh-keyscan`` stands first on PATH and prints the keys that the peer has.
"""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.emulator import server_lifecycle
from pulumi_hosting.provider.failures import PartialFailure
from pulumi_hosting.provider.names import IDENTITY
from pulumi_hosting.resources import ssh_ready
from tests.ansible.in_process import Play
from tests.provider.processes import WEB, Entry, Process, Start, provider_process
from tests.support.account import Account

BANNER = b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"
FIRST, SECOND = "ssh-ed25519 AAAAfirst", "ssh-ed25519 AAAAsecond"
READY = {**WEB, "ready": "ssh"}
TASK = {"name": "web", "tariff_id": 1, "os": "debian-12", "ready": "ssh"}


@dataclass
class Peer:
    """What listens where the servers' SSH port is. ``says``: what it sends to each connection in turn, the
    last of them for ever; it then closes."""

    folder: Path
    listener: socket.socket
    says: list[bytes] = field(default_factory=lambda: [BANNER])
    connections: int = 0

    def serve(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:  # closed: the test is over
                return
            with peer:
                said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
                self.connections += 1
                peer.sendall(said)

    def has(self, *lines: str) -> None:
        """What the program prints from now on."""
        (self.folder / "keys").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def asked(self) -> str:
        """With which arguments and which environment the program was started last."""
        return (self.folder / "asked").read_text(encoding="utf-8")


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    program = tmp_path / "ssh-keyscan"
    program.write_text(
        f'#!/bin/sh\n(echo "$@"; env) > {tmp_path}/asked\ncat {tmp_path}/keys\n', encoding="utf-8"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(server_lifecycle, "FIRST_IPV4", 0x7F000000)  # the first server is 127.0.0.1
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(ssh_ready, "PORT", listener.getsockname()[1])
        made = Peer(tmp_path, listener)
        made.has(f"127.0.0.1 {FIRST}")
        thread = threading.Thread(target=made.serve)
        thread.start()
        yield made
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.fixture
def no_program(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(peer.folder / "empty"))


@pytest.fixture
def start(account: Account) -> Start:
    """Starts a provider process."""
    return lambda **settings: provider_process(account, **settings)


def up(process: Process, entry: Entry, given: dict[str, Any]) -> Entry:
    """What an engine does with the program: compare, then update what differs."""
    inputs, adapter = process.check("server", "web", given, entry.inputs), process.of("server")
    if not adapter.diff(entry.id, entry.outputs, inputs).changes:
        return Entry(entry.id, entry.outputs, inputs)
    return Entry(entry.id, adapter.update(entry.id, entry.outputs, inputs), inputs)


def failing(create: Callable[[], Any]) -> PartialFailure:
    with pytest.raises(PartialFailure) as failed:
        create()
    return failed.value


# --- Pulumi


def test_it_is_waited_for_and_its_key_recorded(start: Start, account: Account, peer: Peer) -> None:
    peer.says = [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"be welcome\r\n" + BANNER]
    made = start()
    web = made.create("server", "web", READY)
    assert (web.outputs["ready"], web.outputs["sshHostKey"]) == ("ssh", FIRST)
    assert peer.connections == 3
    line = f"web: server {web.id}: waiting for SSH: what listens there sends no SSH banner"
    assert made.lines.count(line) == 2
    again = start()
    assert up(again, again.refresh("server", web), READY).outputs == web.outputs
    assert peer.connections == 3  # the recorded key is never exchanged for another one
    assert ([str(server["id"]) for server in account.living], account.charges) == ([web.id], 1)


def test_the_program_gets_the_address_and_no_secret(start: Start, peer: Peer, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOSTING_API_KEY", "hk_secret")
    start().create("server", "web", READY)
    arguments, *environ = peer.asked().splitlines()
    assert arguments == f"-T 10 -p {ssh_ready.PORT} -t ed25519,ecdsa,rsa 127.0.0.1"
    assert {line.partition("=")[0] for line in environ} <= {"PATH", "PWD", "OLDPWD", "SHLVL", "_"}


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        (["h ssh-rsa AAAAr", "h ecdsa-sha2-nistp256 AAAAc=", f"h {FIRST}"], FIRST),
        (
            ["# h:22 SSH-2.0-x", "h ssh-rsa AAAAr", "h ssh-dss AAAAd", "h ssh-ed25519 {{ x }}"],
            "ssh-rsa AAAAr",
        ),
    ],
)
def test_the_newest_kind_of_key_is_recorded(start: Start, peer: Peer, lines: list[str], key: str) -> None:
    peer.has(*lines)
    assert start().create("server", "web", READY).outputs["sshHostKey"] == key


@pytest.mark.parametrize(
    ("banner", "why"),
    [(b"", "what listens there sends no SSH banner"), (BANNER, "ssh-keyscan shows no host key")],
)
def test_what_does_not_answer_was_bought_and_is_waited_for_by_the_next_run(
    start: Start, account: Account, peer: Peer, banner: bytes, why: str
) -> None:
    peer.says = [banner]
    peer.has()
    run = start()
    inputs = run.check("server", "web", {**READY, "autoRenew": False, "waitTimeout": 60})
    failure = failing(lambda: run.of("server").create(inputs))
    (server,) = account.living
    port = ssh_ready.PORT
    assert failure.reasons == [
        f"server {server['id']} exists and was charged 5.00 EUR, but: server {server['id']} did not answer "
        f"on SSH (127.0.0.1, port {port}) within 60 s: {why}. Next: see that its firewall lets port {port} "
        "through, and run again: it is waited for, not bought again"
    ]
    web = Entry(failure.id, {**failure.outputs}, inputs)
    assert (web.id, web.outputs["autoRenew"]) == (str(server["id"]), False)
    assert "ready" not in web.outputs
    assert "sshHostKey" not in web.outputs
    peer.says = [BANNER]
    peer.has(f"h {FIRST}")
    assert up(start(), web, inputs).outputs["sshHostKey"] == FIRST
    assert (account.living_ids, account.charges) == ([web.id], 1)


def test_an_order_that_is_under_way_is_saved_as_its_server(start: Start, peer: Peer) -> None:
    account = Account(provisioning_delay=30)
    peer.says = [b""]
    run = provider_process(account)
    inputs = run.check("server", "web", {**READY, "waitTimeout": 60})
    failure = failing(lambda: run.of("server", native=True).create(inputs))
    assert ([failure.id], failure.refresh) == (account.living_ids, False)
    assert account.charges == 1


def test_without_the_program_nothing_is_bought(start: Start, account: Account, no_program: None) -> None:
    inputs = {**READY, IDENTITY: "pulumi:t/dev/server/web"}
    _, failures = start().of("server").check({}, inputs)
    assert failures["ready"].startswith("needs the program ssh-keyscan, which is not on PATH. Next: install ")
    with pytest.raises(Exception, match="not on PATH"):
        start().of("server").create(inputs)
    assert (account.living, account.charges) == ([], 0)


def test_declared_later_it_costs_nothing_and_changes_nothing_else(
    start: Start, account: Account, peer: Peer
) -> None:
    web = start().create("server", "web", WEB)
    writes = len(account.requested("PATCH"))
    preview = start()
    found = preview.of("server").diff(web.id, web.outputs, preview.check("server", "web", READY, web.inputs))
    assert found.properties == {"ready": "ADD"}
    assert peer.connections == 0
    recorded = up(start(), web, READY)
    assert (recorded.outputs["ready"], recorded.outputs["sshHostKey"]) == ("ssh", FIRST)
    peer.has(f"h {SECOND}")
    removed = up(start(), recorded, WEB)
    assert up(start(), removed, READY).outputs["sshHostKey"] == FIRST
    assert (peer.connections, account.charges, len(account.requested("PATCH"))) == (1, 1, writes)


def test_an_imported_server_and_an_adopted_one_get_theirs(start: Start, account: Account, peer: Peer) -> None:
    id = str(account.server())
    found = start().of("server").read(id, {}, {})
    assert found is not None
    _, outputs, inputs = found
    assert up(start(), Entry(id, outputs, inputs), READY).outputs["sshHostKey"] == FIRST
    peer.has(f"h {SECOND}")
    adopted = start().create("server", "adopted", {**READY, "adoptId": id})
    assert adopted.outputs["sshHostKey"] == SECOND
    assert account.living_ids == [id]


def test_a_reinstalled_server_has_another_key(start: Start, account: Account, peer: Peer) -> None:
    given = {**READY, "rebuild": "reinstall"}
    web = start().create("server", "web", given)
    run = start()
    waiting = f"web: server {web.id}: waiting for SSH: the system of before its reinstallation answers"

    class Lines(list[str]):
        def append(self, line: str) -> None:
            super().append(line)
            if line == waiting:  # the old system is off now
                peer.has(f"h {SECOND}")

    run.lines = Lines()
    other = {**given, "os": "ubuntu-24.04"}
    inputs = run.check("server", "web", other, web.inputs)
    unknown = run.of("server").preview_update(web.id, web.outputs, inputs)["sshHostKey"]
    assert unknown not in (FIRST, SECOND)
    again = up(run, web, other)
    assert (again.id, again.outputs["sshHostKey"]) == (web.id, SECOND)
    assert run.lines.count(waiting) == 1
    assert account.charges == 1


def test_a_stopped_server_is_not_waited_for(start: Start, account: Account, peer: Peer) -> None:
    _, failures = start().of("server").check({}, {**READY, "power": "stopped"})
    assert failures == {"ready": "a stopped server does not answer. Next: leave ready out"}
    web = start().create("server", "web", WEB)
    account.control("PATCH", f"/servers/{web.id}", {"status": "stopped"})
    stopped = start().refresh("server", web)
    with pytest.raises(Exception, match=f"server {web.id} is stopped and does not answer on SSH. Next"):
        up(start(), stopped, READY)
    assert peer.connections == 0


def test_what_is_simulated_is_not_connected_to(start: Start, account: Account, peer: Peer) -> None:
    simulated = start(apiKey=account.test_key).create("server", "web", READY)
    assert simulated.outputs["ready"] == "ssh"
    assert "sshHostKey" not in simulated.outputs
    assert Play(account, key=account.test_key)("server", **TASK)["server"]["ssh_host_key"] is None
    assert (peer.connections, account.charges) == (0, 0)


def test_an_emulator_is_not_connected_to(start: Start, account: Account) -> None:
    web = start().create("server", "web", READY)
    assert web.outputs["ready"] == "ssh"
    assert "sshHostKey" not in web.outputs
    assert up(start(), web, READY).outputs == web.outputs


# --- Ansible


def test_each_task_waits_and_returns_the_key(account: Account, peer: Peer) -> None:
    checked = Play(account, check_mode=True)("server", **TASK)
    assert (checked["changed"], checked["server"]["ssh_host_key"], peer.connections) == (True, None, 0)
    made = Play(account)("server", **TASK)
    assert (made["changed"], made["server"]["ready"], made["server"]["ssh_host_key"]) == (True, "ssh", FIRST)
    peer.says = [b"", BANNER]
    again = Play(account)("server", **TASK)
    shown = ("id", "ip", "ready", "ssh_host_key")
    assert again["changed"] is False
    assert [again["server"][name] for name in shown] == [made["server"][name] for name in shown]
    without = Play(account)("server", name="web")
    assert (without["changed"], without["server"]["ssh_host_key"]) == (False, None)
    assert (account.living_ids, account.charges) == ([made["server"]["id"]], 1)


def test_a_task_that_waited_in_vain_is_run_again(account: Account, peer: Peer) -> None:
    peer.says = [b""]
    failed = Play(account)("server", **TASK, wait_timeout=0)
    assert (failed["failed"], failed["changed"], failed["charge"]["amount"]) == (True, True, "5.00")
    assert failed["failure"]["code"] == "wait_timeout"
    assert "did not answer on SSH (127.0.0.1, port" in failed["msg"]
    peer.says = [BANNER]
    again = Play(account)("server", **TASK)
    assert (again["failed"], again["changed"], again["server"]["ssh_host_key"]) == (False, False, FIRST)
    assert (account.living_ids, account.charges) == ([again["server"]["id"]], 1)


def test_a_reinstallation_returns_the_key_of_the_new_system(account: Account, peer: Peer) -> None:
    Play(account)("server", **TASK)
    peer.has(f"h {SECOND}")
    done = Play(account)("server", **TASK, state="reinstalled", erase="web")
    assert (done["failed"], done["changed"], done["server"]["ssh_host_key"]) == (False, True, SECOND)
    assert account.charges == 1


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_task_without_it_buys_nothing(account: Account, no_program: None, check_mode: bool) -> None:
    refused = Play(account, check_mode=check_mode)("server", **TASK)
    assert refused["failed"]
    assert "ready: needs the program ssh-keyscan, which is not on PATH" in refused["msg"]
    assert (account.living, account.charges) == ([], 0)


def test_a_task_that_does_not_wait_is_refused(account: Account, peer: Peer) -> None:
    refused = Play(account)("server", **TASK, wait=False)
    assert refused["failed"]
    assert "ready: is not waited for with wait: false" in refused["msg"]
    assert account.living == []
