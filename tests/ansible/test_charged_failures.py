"""Tasks that fail after they bought or changed something: the result shows what was bought, and what it
cost."""

import errno
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.hosting.cloud.plugins.module_utils.run_memory import RunMemory
from ansible_collections.hosting.cloud.plugins.plugin_utils.run_files import RunFiles
from tests.ansible.in_process import Play, account_problems, ahead, charged
from tests.ansible.test_playbooks import KEY_LINE
from tests.support.account import Account

pytestmark = pytest.mark.usefixtures("waits_take_no_time")
SERVER: dict[str, Any] = {"name": "one", "tariff_id": 1, "os": "debian-12", "months": 1, "auto_renew": False}
FIVE = {"amount": "5.00", "currency": "EUR"}
AGAIN = "Next: run the playbook again, which sets the rest"


def reported(*plays: Play) -> Decimal:
    """The sum of the results' charges, those of failed tasks included."""
    charges = [result["charge"] for play in plays for result in play.results if result.get("charge")]
    return sum((Decimal(charge["amount"]) for charge in charges), Decimal(0))


def paid(emulated: Account) -> Decimal:
    return sum(map(Decimal, charged(emulated)), Decimal(0))


@pytest.mark.parametrize("status", [429, 409, 503])
@pytest.mark.parametrize("limit", [{}, {"max_charge": "7.00"}])
def test_a_server_whose_settings_could_not_be_set_is_reported_with_its_charge(
    status: int, limit: dict[str, str]
) -> None:
    codes = {429: "rate_limited", 409: "service_state", 503: "unavailable"}
    emulated = Account()
    play = Play(emulated)
    emulated.fault(
        {"status": status, "code": codes[status], "retry_after": 2},
        method="PATCH",
        path="^/servers/",
        times=99,
    )
    result = play("server", **SERVER, **limit)
    assert result["failed"]
    assert (result["changed"], result["charge"]) == (True, FIVE)
    assert (result["server"]["id"], result["server"]["name"]) == ("20001", "one")
    assert result["msg"].startswith("server 20001 exists and was charged 5.00 EUR; "), result["msg"]
    assert result["msg"].endswith(AGAIN), result["msg"]
    assert result["msg"].count("Next:") == 1
    assert "root_password" not in result["server"]
    assert account_problems(emulated, play) == []
    second = play("server", name="two", tariff_id=1, os="debian-12", **limit)
    if limit:  # what was charged counts
        assert second["failure"]["code"] == "max_charge"
    emulated.control("DELETE", "/faults")
    again = play("server", **SERVER, **limit)
    assert (again["failed"], again["changed"], again["charge"]) == (False, True, None)
    assert again["server"]["auto_renew"] is False
    assert reported(play) == paid(emulated)
    assert account_problems(emulated, play) == []


def test_a_domain_whose_renewal_could_not_be_set_is_reported_with_its_charge() -> None:
    emulated = Account()
    play = Play(emulated)
    emulated.fault({"status": 503, "code": "unavailable"}, method="PATCH", path="^/domains/", times=99)
    result = play("domain", name="example-1.com", auto_renew=True)
    assert result["failed"]
    assert (result["changed"], result["charge"]) == (True, {"amount": "12.00", "currency": "EUR"})
    assert result["domain"]["name"] == "example-1.com"
    assert "exists and was charged 12.00 EUR; " in result["msg"], result["msg"]
    assert reported(play) == paid(emulated)


def test_an_address_that_cannot_be_read_after_its_purchase_is_reported_with_its_charge() -> None:
    emulated = Account()
    play = Play(emulated)
    play("server", name="one", tariff_id=1, os="debian-12")
    play.before_write = lambda: emulated.fault(
        {"status": 503, "code": "unavailable"}, method="GET", path="^/servers", times=99
    )
    result = play("server_ip", server_id="20001")
    assert result["failed"]
    assert result["changed"] is True
    assert "an address for server 20001 is ordered and was charged" in result["msg"], result["msg"]
    assert reported(play) == paid(emulated)
    emulated.control("DELETE", "/faults")
    again = play("server_ip", server_id="20001")
    assert (again["failed"], again["charge"]) == (False, None)
    assert reported(play) == paid(emulated)
    assert account_problems(emulated, play) == []


@pytest.mark.parametrize("name", ["server_renew", "domain_renew", "invoice_pay"])
def test_a_payment_whose_object_cannot_be_read_afterwards_is_reported(name: str) -> None:
    emulated = Account()
    play = Play(emulated)
    play("server", name="one", tariff_id=1, os="debian-12")
    play("domain", name="example-1.com")
    invoice = emulated.control("POST", "/invoices", {"type": "other", "amount": "3.00"})
    options = {
        "server_renew": {"name": "one", "until": ahead(40)},
        "domain_renew": {"name": "example-1.com", "until": ahead(400)},
        "invoice_pay": {"id": str(invoice["id"])},
    }[name]
    play.before_write = lambda: emulated.fault(
        {"status": 503, "code": "unavailable"}, method="GET", path="^/", times=99
    )
    before = len(charged(emulated))
    result = play(name, **options)
    assert len(charged(emulated)) == before + 1
    assert result["changed"] is True, result
    assert reported(play) == paid(emulated), result
    assert not result["failed"] or "was carried out and was charged" in result["msg"], result["msg"]
    emulated.control("DELETE", "/faults")
    again = play(name, **options)
    assert (again["failed"], again["changed"]) == (False, False)
    assert reported(play) == paid(emulated)


def test_a_change_before_a_failure_is_reported() -> None:
    """A key is deleted to be replaced, and the new one is refused: the deletion must be reported."""
    emulated = Account()
    play = Play(emulated)
    play("ssh_key", name="k", public_key=KEY_LINE)
    emulated.fault({"status": 503, "code": "unavailable"}, method="POST", path="^/ssh-keys$", times=99)
    result = play(
        "ssh_key",
        name="k",
        public_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBMGJqVhzKcYkTQvkGbOmYH2RfpAc0bB8DLVhqEUHiYz k",
    )
    assert (result["failed"], result["changed"]) == (True, True), result


def test_a_secret_that_cannot_be_written_leaves_a_subscription_that_is_reported(tmp_path: Path) -> None:
    emulated = Account()
    play = Play(emulated)
    file = tmp_path / "secret"
    play.before_write = lambda: file.mkdir()
    result = play(
        "webhook_subscription", url="https://hooks.example.com/x", events=["*"], secret_file=str(file)
    )
    assert (result["failed"], result["changed"]) == (True, True), result
    assert result["webhook_subscription"]["id"]
    assert " exists; " in result["msg"]
    assert account_problems(emulated, play) == []


def test_a_refused_order_reports_no_change() -> None:
    emulated = Account()
    play = Play(emulated)
    emulated.fault({"status": 409, "code": "no_capacity"}, method="POST", path="^/servers$", times=99)
    result = play("server", **SERVER)
    assert (result["failed"], result.get("changed", False), result.get("charge")) == (True, False, None)
    assert charged(emulated) == []


def test_a_killed_run_is_reported_once_though_a_worker_of_it_still_writes(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    killed, own = tmp_path / f"ansible-local-{ended.pid}abcdefgh", tmp_path / "ansible-local-1abcdefgh"
    killed.mkdir()
    worker = RunMemory(RunFiles(killed), account=lambda: "one", holder="worker")
    worker.settle("server/a", FIVE)
    (line,) = RunFiles(own).charges_of_killed_runs()
    assert "5.00 EUR" in line
    worker.settle("server/b", FIVE)
    assert RunFiles(own).charges_of_killed_runs() == []


def test_a_run_that_ends_while_its_files_are_looked_for_is_none_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "ansible-local-4242abcdefgh", tmp_path / "ansible-local-4243abcdefgh"
    for folder in (first, second):
        folder.mkdir()
        RunMemory(RunFiles(folder), account=lambda: "one").settle("server/a", FIVE)

    def ends(pid: int) -> bool:
        if second.exists():
            shutil.rmtree(second)
        return pid == 4242

    monkeypatch.setattr("pulumi_hosting.client.private_directory.process_runs", ends)
    assert RunFiles(tmp_path / "ansible-local-1abcdefgh").charges_of_killed_runs() == []


@pytest.mark.parametrize("empty", ["", " \n"])
def test_an_empty_limit_is_refused(empty: str) -> None:
    result = Play(Account())("server", **SERVER, max_charge=empty)
    assert ("is empty, which would be no limit. Next: give an amount such as 25.00, or unset it") in result[
        "msg"
    ]


def test_a_password_is_kept_though_its_file_holds_no_text(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"\xff\xfe")
    result = Play(Account())("server", **SERVER, root_password_file=str(file))
    assert not result["failed"], result
    former = next(path for path in tmp_path.iterdir() if path != file)
    assert former.read_bytes() == b"\xff\xfe"
    assert len(file.read_text().strip()) > 8
    assert any(f"kept in {former}" in line for line in result["warnings"]), result["warnings"]


@pytest.mark.parametrize(
    ("kind", "options", "price"),
    [
        ("domain", {"name": "example-1.com"}, "12.00"),
        ("server_ip", {"server_id": "20001"}, "2.00"),
        ("server_renew", {"id": "20001", "until": "2029-07-01"}, "14.25"),
    ],
)
def test_an_order_whose_answer_is_lost_counts_though_the_account_refuses_the_key_afterwards(
    kind: str, options: dict[str, str], price: str
) -> None:
    emulated = Account()
    Play(emulated)("server", **{**SERVER, "auto_renew": True})
    play = Play(emulated, max_charge="70.00")
    emulated.fault(
        {"status": 504, "code": "upstream_timeout"}, method="POST", path="^/(domains|servers/)", times=99
    )
    play.before_write = lambda: emulated.fault(
        {"status": 401, "code": "invalid_token"}, method="GET", path="^/(domains|servers|invoices)", times=99
    )
    failure = play(kind, **options)["failure"]
    assert failure["code"] == "invalid_token"
    assert failure["outcome_unknown"] is True
    assert failure["charge"] == {"amount": price, "currency": "EUR"}


def test_what_the_budget_of_the_month_refuses_is_not_counted_as_charged() -> None:
    emulated = Account()
    emulated.control("PATCH", "/account", {"balance": "994.00"})  # 6.00 were spent
    play = Play(emulated, budget="10.00/month", max_charge="8.00")
    refused, bought = play("server", **SERVER), play("domain", name="example-1.de", budget=None)
    assert "budget is 10.00/month; it is not ordered" in refused["msg"]
    assert "charge" not in refused["failure"]
    assert bought["charge"] == {"amount": "8.00", "currency": "EUR"}
    assert [row["operation"] for row in emulated.control("GET", "/ledger")] == ["control", "register_domain"]
    assert emulated.objects("servers") == []


def test_a_file_that_cannot_be_written_is_no_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated, file = Account(), tmp_path / "invoice.pdf"
    Play(emulated)("server", **SERVER)

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    def unreachable(path: Path, data: bytes) -> None:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    monkeypatch.setattr(Path, "write_bytes", unreachable)
    assert "correct the path" not in Play(emulated)("invoice_info", id=40001, pdf=str(file))["msg"]
    monkeypatch.setattr(Path, "write_bytes", full)
    result = Play(emulated)("invoice_info", id=40001, pdf=str(file))
    assert result["msg"] == (f"{file}: No space left on device. Next: correct the path, or make room there")
    assert result["failure"]["code"] == "local_files_error"
