"""Results of tasks: changes before and after, codes of failures, charges, and what is reported once."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.hosting.cloud.plugins.plugin_utils.controller_action import simulated
from tests.ansible.in_process import Play, account_problems, ahead, charged, task_of
from tests.ansible.test_playbooks import KEY_LINE
from tests.ansible.test_specs import module
from tests.support.account import Account

FIVE = {"amount": "5.00", "currency": "EUR"}
ORDER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
URL = "https://hooks.example.com/results"


def play_on(emulated: Account, **options: Any) -> Play:
    """A play on an account with one of everything."""
    made = Play(emulated)
    made("server", name="a", **ORDER)
    made("domain", name="example-1.com")
    made("webhook_subscription", url=URL, events=["*"])
    return Play(emulated, **options)


# --- what changes, before and after (M28)

CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "server_renew": (
        {"name": "a", "until": ahead(100)},
        {},
        {"paid_until": f">= {ahead(100)}T00:00:00Z", "months": 3},
    ),
    "domain_renew": (
        {"name": "example-1.com", "until": ahead(400)},
        {},
        {"paid_until": f">= {ahead(400)}T00:00:00Z", "years": 1},
    ),
    "invoice_pay": ({}, {"status": "not_paid"}, {"status": "paid"}),
    "balance_topup": (
        {"amount": "50.00", "gateway": "card", "balance_below": "100000"},
        {"amount": None, "gateway": None},
        {"amount": "50.00", "gateway": "card"},
    ),
    "api_key_revoke": ({}, {"status": "active"}, {"status": "revoked"}),
    "server_password": ({"name": "a"}, {}, {}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_action_shows_its_change_before_and_after(name: str) -> None:
    options, before, after = CHANGES[name]
    shown = []
    for check_mode in (True, False):
        emulated = Account()
        play = play_on(emulated, check_mode=check_mode)
        invoice = emulated.control("POST", "/invoices", {"type": "other", "amount": "3.00"})
        if name == "invoice_pay":
            options = {"id": invoice["id"]}
        if name == "api_key_revoke":
            options = {"key_id": str(play.client(emulated.live_key, True).me().key.id)}
        if name == "server_password":
            options = {**options, "password_file": str(play.folder / "password")}
            after = {"password_file": str(play.folder / "password")}
        result = play(name, **options)
        assert result["changed"], result.get("msg")
        shown.append(result["diff"])
        for expected, part in ((before, "before"), (after, "after")):
            assert expected.items() <= result["diff"][part].items(), (name, check_mode, result["diff"])
    assert name == "server_password" or shown[0] == shown[1]
    assert "paid_until" not in after or shown[0]["before"]["paid_until"] < after["paid_until"].removeprefix(
        ">= "
    )


PAID: list[tuple[str, dict[str, Any], str]] = [
    ("server", {"name": "b", **ORDER, "months": 3}, "charge"),
    ("server_ip", {"server_name": "a"}, "charge"),
    ("server_renew", {"name": "a", "until": ahead(100)}, "charge"),
    ("server", {"name": "a", "state": "absent"}, "refund"),
    ("ssh_key", {"name": "b", "public_key": KEY_LINE}, ""),
]


@pytest.mark.parametrize(("name", "options", "amount"), PAID)
def test_what_is_charged_and_credited_is_in_the_difference(
    name: str, options: dict[str, Any], amount: str
) -> None:
    for check_mode in (True, False):
        emulated = Account()
        play = play_on(emulated, check_mode=check_mode)
        rows = len(emulated.ledger())
        result = play(name, **options)
        shown = result["diff"].get("prepared", "")
        if not check_mode:
            moved = emulated.ledger()[rows:]
            assert [f"{amount}: {row['amount']} EUR\n" for row in moved] == [shown] * bool(amount)
        assert shown == (f"{amount}: {result[amount]['amount']} EUR\n" if amount else "")
    play = play_on(Account(), check_mode=True)
    assert "diff" not in play("server", name="a", **ORDER)  # unchanged


def test_the_period_of_a_renewal_is_in_its_result() -> None:
    for check_mode in (True, False):
        play = play_on(Account(), check_mode=check_mode)
        assert play("server_renew", name="a", until=ahead(100))["server"]["months"] == 3
        assert play("domain_renew", name="example-1.com", until=ahead(400))["domain"]["years"] == 1
        assert play("server_renew", name="a", until=ahead(1))["server"]["months"] is None


# --- codes of failures (M43)

CAUSES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("max_charge", "server", {"name": "b", "max_charge": "1.00", **ORDER}, {}),
    ("not_found", "server", {"id": "4000000", "notes": "x"}, {}),
    ("not_found", "server_renew", {"name": "missing", "until": ahead(100)}, {}),
    ("not_found", "ptr", {"server_name": "missing", "domain": "a.example.com"}, {}),
    ("not_found", "invoice_pay", {"id": "999999"}, {}),
    ("wrong_mode", "server", {"name": "a", "notes": "x"}, {"key": "test"}),
    ("wrong_mode", "server", {"name": "b", "mode": "test", **ORDER}, {}),
    ("unchangeable", "server", {"name": "a", "tariff_id": 2}, {}),
    ("insufficient_funds", "server", {"name": "b", **ORDER}, {"balance": "1.00"}),
    ("invalid_input", "server", {"name": "b", "months": 2}, {}),
    ("invalid_input", "server", {"name": True, **ORDER}, {}),
    ("invalid_input", "server", {"name": "b", "months": True, **ORDER}, {}),
    ("invalid_input", "server", {"name": "b", "ssh_key_ids": [True], **ORDER}, {}),
    ("invalid_input", "server", {"name": "b", "max_charge": "", **ORDER}, {}),
    ("invalid_input", "server", {"name": "b", "max_charge": "1e2", **ORDER}, {}),
    ("invalid_input", "server", {"name": "b", "max_charge": "\u0665", **ORDER}, {}),
]


@pytest.mark.parametrize(("code", "name", "options", "account"), CAUSES)
def test_each_cause_has_its_code(
    code: str, name: str, options: dict[str, Any], account: dict[str, str]
) -> None:
    emulated = Account()
    play = play_on(emulated)
    if "balance" in account:
        emulated.control("PATCH", "/account", {"balance": account["balance"]})
    if "key" in account:
        play.key = emulated.test_key
    paid = charged(emulated)
    result = play(name, **options)
    assert result["failed"], result
    assert result["failure"]["code"] == code, result["msg"]
    assert charged(emulated) == paid


def test_a_run_warns_once_that_its_changes_are_simulated() -> None:
    emulated = Account()

    def warned(play: Play, **options: Any) -> int:
        task = task_of(play, "server", {**ORDER, **options})
        result = module("server").MODULE.answer(task)
        assert result["changed"], result
        return len(simulated(task, result))

    assert warned(Play(emulated), name="live") == 0
    assert warned(Play(emulated, check_mode=True, key=emulated.test_key), name="a") == 0
    play = Play(emulated, key=emulated.test_key)
    assert [warned(play, name="a"), warned(play, name="b"), warned(play, name="a", notes="new")] == [1, 0, 0]
    assert charged(emulated) == ["5.00"]


INFO_WITH_ID = (
    "server",
    "domain",
    "ssh_key",
    "webhook_subscription",
    "tariff",
    "order",
    "invoice",
    "api_key",
)


@pytest.mark.parametrize("kind", INFO_WITH_ID)
@pytest.mark.parametrize("id", ["x", "-1", "1.5", "0x10"])
def test_a_malformed_id_fails_in_every_info_module_alike(kind: str, id: str) -> None:
    result = Play(Account())(f"{kind}_info", id=id)
    assert result["failed"], result
    assert result["failure"]["code"] == "invalid_input"
    assert "id" in result["failure"]["fields"] or kind == "tariff"  # whose id is a number to Ansible itself


def test_numbers_may_be_written_as_text() -> None:
    emulated = Account()
    play = Play(emulated)
    assert play("server", name="a", tariff_id="1", os="debian-12", months="3")["changed"]
    assert play("ssh_key", name="k", public_key=KEY_LINE)["changed"]
    assert not play("server", id=20001, name="a")["changed"]
    assert account_problems(emulated, play) == []


# --- charges (M29, M31)


def test_a_charge_above_the_announced_price_is_reported_and_stops_purchases() -> None:
    emulated = Account()
    play = Play(emulated, max_charge="100.00")
    play.before_write = lambda: emulated.control("PATCH", "/tariffs/1", {"price_monthly": "50.00"})
    first = play("server", name="a", **ORDER)
    assert first["charge"] == {"amount": "50.00", "currency": "EUR"}
    assert ("50.00 EUR were charged for VDS-1, 1 month, more than the announced 5.00") in " ".join(
        first["warnings"]
    )
    second = play("ssh_key", name="k", public_key=KEY_LINE)
    assert second["changed"]
    third = play("domain", name="example-1.com")
    assert third["failure"]["code"] == "max_charge"
    assert "this run orders nothing more" in third["msg"]
    assert Play(emulated, max_charge="100.00")("domain", name="example-1.com")["changed"]
    assert charged(emulated) == ["50.00", "12.00"]


@pytest.mark.parametrize("name", ["server", "domain", "server_ip"])
def test_a_purchase_whose_answer_was_lost_is_reported_with_its_charge(name: str) -> None:
    emulated = Account()
    play = play_on(emulated)
    options = {
        "server": {"name": "b", **ORDER},
        "domain": {"name": "example-2.com"},
        "server_ip": {"server_name": "a"},
    }[name]
    paths = {"server": "^/servers$", "domain": "^/domains$", "server_ip": "^/servers/[0-9]+/ips$"}
    emulated.fault({"drop": "after"}, method="POST", path=paths[name], times=1)
    before = charged(emulated)
    result = play(name, **options)
    assert not result["failed"], result
    (amount,) = charged(emulated)[len(before) :]
    assert (result["changed"], result["charge"]) == (True, {"amount": amount, "currency": "EUR"})
    again = play(name, **options)
    assert (again["changed"], again["charge"]) == (False, None)


def test_what_an_interrupted_run_was_charged_is_reported_once() -> None:
    """By the next run, so that handlers run; it is not charged again, whatever the limit."""
    emulated = Account()
    lost = Play(emulated)
    emulated.fault({"drop": "after"}, method="POST", path="^/servers$", times=9)
    assert lost("server", name="a", **ORDER)["failed"]
    emulated.control("DELETE", "/faults")
    for changed, charge in ((True, FIVE), (False, None)):
        play = Play(emulated, max_charge="0.00")
        result = play("server", name="a", **ORDER)
        assert (result["failed"], result["changed"], result["charge"]) == (False, changed, charge)
        told = "an interrupted run bought server 20001: 5.00 EUR were charged, invoice 40001"
        assert (told in result["warnings"]) is changed
    assert charged(emulated) == ["5.00"]


@pytest.mark.parametrize("dialect", ["spec", "live"])
def test_a_deletion_returns_the_credit(dialect: str) -> None:
    emulated = Account(dialect=dialect)
    play = Play(emulated)
    play("server", name="a", **ORDER)
    emulated.advance(10 * 24 * 3600)
    predicted = Play(emulated, check_mode=True)("server", name="a", state="absent")
    deleted = play("server", name="a", state="absent")
    (credit,) = [row for row in emulated.ledger() if row["type"] == "refund"]
    assert 0 < Decimal(credit["amount"]) < 5
    assert deleted["refund"] == predicted["refund"] == {"amount": credit["amount"], "currency": "EUR"}
    again = play("server", name="a", state="absent")
    assert (again["changed"], again["refund"]) == (False, None)
    assert "refund" not in play("server", name="b", **ORDER)
    assert account_problems(emulated, play) == []


def test_the_credit_for_a_planned_server_is_not_asked_for() -> None:
    emulated = Account()
    play = Play(emulated, check_mode=True)
    play("server", name="a", **ORDER)
    deleted = play("server", name="a", state="absent")
    assert (deleted["failed"], deleted["changed"], deleted["refund"]) == (False, True, None)


def test_one_of_two_machines_that_order_the_same_server_reports_the_charge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    emulated = Account()
    first, second = Play(emulated), Play(emulated)
    ordered: list[dict[str, Any]] = []

    def elsewhere() -> None:
        # runs on one machine take turns
        monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "elsewhere"))
        ordered.append(second("server", name="a", **ORDER))

    first.before_write = elsewhere
    ordered.append(first("server", name="a", **ORDER))
    assert [result["failed"] for result in ordered] == [False, False]
    assert [(result["changed"], (result["charge"] or {}).get("amount")) for result in ordered] == [
        (True, "5.00"),
        (False, None),
    ]
    assert charged(emulated) == ["5.00"]


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b"null", b'"5"', b"\xff\xfe{", b"[" * 100_000], ids=lambda body: repr(body[:6])
)
def test_an_order_with_an_unreadable_response_is_reported_and_found_again(body: bytes) -> None:
    emulated = Account()
    play = Play(emulated)
    play.damage = body
    failed = play("server", name="a", **ORDER)
    assert failed["failed"]
    assert failed["failure"]["code"] == "invalid_response", failed["msg"]
    key, request_id = failed["failure"]["idempotency_key"], failed["failure"]["request_id"]
    orders = [
        row
        for row in emulated.control("GET", "/requests?since=0")
        if (row["method"], row["path"]) == ("POST", "/servers")
    ]
    (sent,) = {row["headers"]["idempotency-key"] for row in orders}
    assert key == sent
    assert request_id
    assert request_id in failed["msg"]
    again = Play(emulated, max_charge="0.00")
    found = again("server", name="a", **ORDER)
    assert (found["failed"], found["changed"], found["charge"]) == (False, True, FIVE)
    assert charged(emulated) == ["5.00"]
    assert account_problems(emulated, play, again) == []


# --- what a run reports


@pytest.mark.parametrize("times", [1, 99], ids=["one answer", "every answer"])
def test_a_lost_root_password_is_reported_in_every_run_until_it_is_reset(tmp_path: Path, times: int) -> None:
    """The answer of the order is lost: its replay shows no password."""
    emulated = Account()
    play = Play(emulated)
    file = tmp_path / "root"
    emulated.fault({"drop": "after"}, method="POST", path="^/servers$", times=times)
    desired = {"name": "a", "root_password_file": str(file), **ORDER}
    made = play("server", **desired)
    emulated.control("DELETE", "/faults")
    if times == 1:
        (warning,) = made["warnings"]
        assert "was not shown to this run" in warning
        assert "hosting.cloud.server_password" in warning
    else:
        assert made["failed"]
    for check_mode, by in ((True, "name"), (False, "name"), (False, "id")):
        again = Play(emulated, check_mode=check_mode)
        named = {"name": "a"} if by == "name" else {"id": "20001"}
        result = again("server", **{**desired, **named})
        (warning, *told) = result["warnings"]
        # the first real run also says what the interrupted one was charged
        is_told = times == 99 and not check_mode and by == "name"
        assert bool(told) is is_told
        reset = {**({"name": "a"} if by == "name" else {"id": "20001"}), "password_file": str(file)}
        options = " and ".join(f"{option}: {value}" for option, value in reset.items())
        assert warning.endswith(f"Next: reset it with hosting.cloud.server_password, options {options}")
        assert (result["failed"], result["changed"], file.exists()) == (False, is_told, False)
    reset_by = Play(emulated)
    assert reset_by("server_password", **reset)["changed"]
    assert len(file.read_text().strip()) >= 8
    calm = Play(emulated)
    assert calm("server", **desired)["warnings"] == []
    assert charged(emulated) == ["5.00"]
    assert account_problems(emulated, play, reset_by, calm) == []


def test_a_password_that_cannot_be_in_the_file_is_not_missed(tmp_path: Path) -> None:
    """A simulated password is never written, and a server that is still being ordered has none to reset."""
    file, emulated = tmp_path / "root", Account(provisioning_delay=45)
    desired = {"name": "a", "root_password_file": str(file), **ORDER}
    simulated = Play(emulated, key=emulated.test_key)
    simulated("server", **desired)
    assert simulated("server", **desired)["warnings"] == []
    emulated.fault({"panel_timeout": "active"}, method="POST", path="^/servers$", times=1)
    assert "order" in str(Play(emulated)("server", **desired, wait=False)["server"]["id"])
    assert Play(emulated)("server", **desired, wait=False)["warnings"] == []
    emulated.advance(60)
    (warning,) = Play(emulated)("server", **desired)["warnings"]
    assert "options name: a and password_file:" in warning


def test_a_reinstallation_is_announced_once(tmp_path: Path) -> None:
    file = tmp_path / "root"
    for check_mode in (True, False):
        play = play_on(Account(), check_mode=check_mode)
        desired = {"name": "a", "erase": "a", "state": "reinstalled", "root_password_file": str(file)}
        result = play("server", **desired)
        assert len(result["warnings"]) == 1, result["warnings"]
        assert "disk" in result["warnings"][0]
        assert result["diff"]["after"] == {"state": "reinstalled", "root_password_file": str(file)}


def test_the_password_file_is_in_the_diff_of_an_order(tmp_path: Path) -> None:
    file = str(tmp_path / "root")
    for check_mode in (True, False):
        result = Play(Account(), check_mode=check_mode)("server", name="a", root_password_file=file, **ORDER)
        assert result["diff"]["after"]["root_password_file"] == file


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_tariff_that_is_not_there_is_refused_with_those_that_are(check_mode: bool) -> None:
    play = Play(Account(), check_mode=check_mode)
    quoted, ordered = (
        play("quote_info", tariff_id=999),
        play("server", name="a", tariff_id=999, os="debian-12"),
    )
    choices = "there is no tariff 999: choose one of 1 (VDS-1), 2 (VDS-2), "
    for result in (quoted, ordered):
        assert choices in result["msg"]
        assert result["msg"].endswith("Next: correct tariff_id")
        assert result["failure"]["code"] == "invalid_input"
    assert "the quote is not valid: tariff_id: " in quoted["msg"]
    assert play("quote_info", tariff_id=1)["quote"]["tariff_id"] == 1


def test_discarded_passwords_are_one_warning_in_a_run() -> None:
    play = Play(Account())
    warnings = [line for name in ("a", "b", "c") for line in play("server", name=name, **ORDER)["warnings"]]
    (line,) = (line for line in warnings if "root password" in line)
    assert line.startswith("server 20001: its generated root password was discarded")


def test_a_refused_option_is_named_as_one() -> None:
    said = Play(Account())("invoice_info", id="abc")
    assert said["msg"] == "option id: must be a positive integer. Next: correct id"
    assert said["failure"]["fields"] == {"id": "must be a positive integer"}


def test_a_key_name_on_an_account_without_keys_offers_no_choice() -> None:
    said = Play(Account())("server", name="a", ssh_key_ids=["laptop"], **ORDER)["msg"]
    assert "there is no SSH key named 'laptop'; the account has none" in said
