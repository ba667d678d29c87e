"""With another version in the base URL the service answers "not found" to everything. No module takes that
for the account's answer: each one fails, in check mode too, and the account stays as it is."""

from pathlib import Path
from typing import Any

import pytest

from tests.ansible.in_process import BASE_URL, Play
from tests.ansible.test_specs import MODULES, module
from tests.emulator.support import PUBLIC_KEY
from tests.support.account import Account

HOOK = "https://hooks.example.com/x"
ADDRESS = "{server}/{address}"
ID = {"id": "{server}"}
ABSENT: dict[str, Any] = {**ID, "state": "absent"}
# What each module is asked. Braces hold what the account has.
ASKED: dict[str, list[dict[str, Any]]] = {
    "api_key_info": [{"id": "1"}],
    "api_key_revoke": [{"key_id": "1"}],
    "balance_topup": [{"amount": "25.00", "gateway": "card", "balance_below": "5000"}],
    "domain": [{"id": "{domain}"}, {"id": "{domain}", "state": "absent"}, {"name": "old.com"}],
    "domain_availability_info": [{"name": "free.com"}],
    "domain_info": [{"id": "{domain}"}, {"name": "old.com"}],
    "domain_renew": [{"id": "{domain}", "until": "2035-01-01"}],
    "domain_transfer": [{"name": "moved.com", "auth_code": "Xy98-Quince"}],
    "invoice_info": [{"id": "{invoice}"}],
    "invoice_pay": [{"id": "{invoice}"}],
    "invoice_payment_link": [{"id": "{invoice}"}],
    "order_info": [{"id": "{invoice}"}],
    "os_image_info": [{"tariff_id": 1}],
    "ptr": [
        {"id": ADDRESS, "domain": "a.example.com"},
        {"id": ADDRESS, "state": "absent"},
        {"server_id": "{server}", "domain": "a.example.com"},
    ],
    "quote_info": [{"tariff_id": 1}],
    "server": [ABSENT, {**ID, "notes": "x"}, {**ID, "state": "stopped"}, {"name": "web", "state": "absent"}],
    "server_info": [ID, {"name": "web"}],
    "server_ip": [
        {"id": ADDRESS, "state": "absent"},
        {"id": ADDRESS},
        {"server_id": "{server}"},
        {"server_id": "{server}", "address": "198.18.1.2", "state": "absent"},
    ],
    "server_ip_info": [{"server_id": "{server}"}],
    "server_password": [{**ID, "password_file": "{folder}/password"}],
    "server_renew": [{**ID, "until": "2035-01-01"}],
    "ssh_key": [
        {"id": "{key}", "state": "absent"},
        {"name": "me", "state": "absent"},
        {"name": "me", "public_key": PUBLIC_KEY},
    ],
    "ssh_key_info": [{"id": "{key}"}],
    "tariff_info": [{"id": 1}],
    "webhook_delivery_info": [{"id": "{hook}"}, {"delivery_id": "1"}],
    "webhook_redeliver": [{"id": "{hook}"}, {"id": "{hook}", "delivery_id": "1"}],
    "webhook_subscription": [
        {"id": "{hook}", "state": "absent"},
        {"id": "{hook}", "active": False},
        {"url": HOOK, "state": "absent"},
    ],
    "webhook_subscription_info": [{"id": "{hook}"}],
    "webhook_test": [{"id": "{hook}"}],
}


@pytest.fixture(scope="module")
def account() -> Account:
    """One object of each kind."""
    made = Account()
    play = Play(made)
    play.run(
        ("server", {"name": "web", "tariff_id": 1, "os": "debian-12"}),
        ("server_ip", {"server_name": "web"}),
        ("domain", {"name": "old.com"}),
        ("ssh_key", {"name": "me", "public_key": PUBLIC_KEY}),
        ("webhook_subscription", {"url": HOOK, "events": ["*"], "secret_file": str(play.folder / "secret")}),
    )
    assert not [result["msg"] for result in play.results if result["failed"]]
    return made


def everything(account: Account) -> Any:
    found = account.control("GET", "/objects")
    return {kind: rows for kind, rows in found.items() if kind != "deliveries"}, account.ledger()


def filled(options: dict[str, Any], account: Account, folder: Path) -> dict[str, Any]:
    values = {
        "server": account.living_ids[0],
        "address": next(row["id"] for row in account.objects("addresses") if row["bought"]),
        "domain": account.objects("domains")[0]["id"],
        "invoice": account.objects("invoices")[0]["id"],
        "key": account.objects("ssh_keys")[0]["id"],
        "hook": account.objects("subscriptions")[0]["id"],
        "folder": folder,
    }
    return {
        name: value.format(**values) if isinstance(value, str) else value for name, value in options.items()
    }


def test_every_module_that_takes_an_id_is_asked_about_one() -> None:
    takes = {
        name for name in MODULES if {"id", "server_id", "key_id"} & module(name).MODULE.argument_spec.keys()
    }
    assert takes <= {
        name
        for name, asked in ASKED.items()
        if any({"id", "server_id", "key_id"} & options.keys() for options in asked)
    }
    assert set(ASKED) <= set(MODULES)


@pytest.mark.parametrize("check_mode", [False, True], ids=["run", "check"])
@pytest.mark.parametrize("name", MODULES)
def test_no_module_believes_another_version(
    account: Account, name: str, check_mode: bool, tmp_path: Path
) -> None:
    before, wrong = everything(account), f"{BASE_URL[:-1]}2"
    for options in ASKED.get(name, [{}]):
        play = Play(account, check_mode=check_mode, base_url=wrong)
        result = play(name, **filled(options, account, tmp_path))
        assert result["failed"], (options, result)
        assert f"no API answers at the base URL {wrong}" in result["msg"], (options, result["msg"])
        assert result["failure"]["code"] == "http_404"
        assert not result.get("changed")
    assert everything(account) == before


def test_a_run_asks_once_whether_this_is_the_api() -> None:
    """However many of its tasks find something gone."""
    account = Account()
    play = Play(account)
    for id in ("11", "12", "13"):
        assert play("server_info", id=id)["servers"] == []
        assert play("server", id=id, state="absent")["changed"] is False
    assert account.requested("GET").count("/me") == 1
