"""Check mode knows what earlier tasks of the run would do, and predicts what the real run then does."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ansible.in_process import Play, Step, account_problems, ahead, charged
from tests.ansible.test_playbooks import KEY_LINE, OTHER_LINE
from tests.support.account import Account

ORDER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
URL = "https://hooks.example.com/planned"


def outcome(result: dict[str, Any]) -> tuple[Any, ...]:
    """What must be the same in check mode and for real."""
    return (
        result.get("changed", False),
        result["failed"],
        (result.get("failure") or {}).get("code"),
        (result.get("charge") or {}).get("amount"),
    )


def both(
    *tasks: Step, before: tuple[Step, ...] = (), **defaults: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Account]:
    """The results in check mode, then for real, on an account where the tasks ``before`` were done."""
    emulated = Account()
    prepared = Play(emulated)
    prepared.run(*before)
    paid = charged(emulated)
    checked = Play(emulated, check_mode=True, **defaults).run(*tasks)
    assert charged(emulated) == paid
    real = Play(emulated, **defaults)
    results = real.run(*tasks)
    assert account_problems(emulated, prepared, real) == []
    return checked, results, emulated


SEQUENCES: dict[str, tuple[tuple[Step, ...], tuple[Step, ...]]] = {
    "made once": (
        (),
        (
            ("server", {"name": "a", **ORDER}),
            ("server", {"name": "a", **ORDER}),
            ("server", {"name": "a", "notes": "x"}),
        ),
    ),
    "made with a tariff's name": (
        (),
        (
            ("server", {"name": "a", "tariff": "VDS-1", "os": "debian-12"}),
            ("server", {"name": "a", "tariff": "VDS-1", "os": "debian-12"}),
            ("server", {"name": "a", **ORDER}),
            ("server", {"name": "b", "tariff": "VDS-9", "os": "debian-12"}),
        ),
    ),
    "absent, then present": (
        (("server", {"name": "a", **ORDER}),),
        (
            ("server", {"name": "a", "state": "absent"}),
            ("server", {"name": "a", **ORDER}),
            ("server", {"name": "a", "state": "absent"}),
        ),
    ),
    "rename by id, then the new name and the old one": (
        (("server", {"name": "a", **ORDER}),),
        (
            ("server", {"id": "20001", "name": "b"}),
            ("server", {"name": "b", **ORDER}),
            ("server", {"name": "a", "notes": "gone"}),
            ("server", {"name": "a", "state": "absent"}),
        ),
    ),
    "absent, then everything on it": (
        (("server", {"name": "a", **ORDER}),),
        (
            ("server", {"name": "a", "state": "absent"}),
            ("server_renew", {"name": "a", "until": ahead(150)}),
            ("server", {"name": "a", "state": "restarted"}),
            ("server_ip", {"server_name": "a"}),
            ("ptr", {"server_name": "a", "domain": "a.example.com"}),
            ("server_ip", {"server_name": "a", "state": "absent"}),
        ),
    ),
    "addresses of a server that is there": (
        (("server", {"name": "a", **ORDER}),),
        (
            ("server_ip", {"server_name": "a"}),
            ("server_ip", {"server_name": "a", "position": 2}),
            ("server_ip", {"server_name": "a", "position": 4}),
            ("server_ip", {"server_name": "a", "position": 1}),
            ("server_ip", {"server_name": "a", "position": 2, "state": "absent"}),
            ("server_ip", {"server_name": "a", "position": 2, "state": "absent"}),
        ),
    ),
    "power and notes": (
        (("server", {"name": "a", **ORDER}),),
        (
            ("server", {"name": "a", "state": "stopped", "notes": "x"}),
            ("server", {"name": "a", "state": "stopped"}),
            ("server", {"name": "a", "state": "restarted"}),
            ("server", {"name": "a", "state": "started"}),
            ("server", {"name": "a", "notes": "x", "auto_renew": False}),
            ("server", {"name": "a", "auto_renew": False}),
        ),
    ),
    "keys": (
        (("ssh_key", {"name": "k", "public_key": KEY_LINE}),),
        (
            ("ssh_key", {"name": "other", "public_key": OTHER_LINE}),
            ("ssh_key", {"name": "other", "public_key": OTHER_LINE}),
            ("ssh_key", {"name": "k", "state": "absent"}),
            ("ssh_key", {"name": "k", "state": "absent"}),
            ("ssh_key", {"name": "k", "public_key": KEY_LINE}),
            ("ssh_key", {"name": "again"}),
        ),
    ),
    "domains": (
        (),
        (
            ("domain", {"name": "example-1.com"}),
            ("domain", {"name": "example-1.com", "auto_renew": True}),
            ("domain", {"name": "example-1.com", "auto_renew": True}),
            ("domain_renew", {"name": "example-1.com", "until": ahead(500)}),
            ("domain_renew", {"name": "example-1.com", "until": ahead(500)}),
            ("domain", {"name": "example-1.com", "state": "absent"}),
            ("domain", {"name": "example-1.com", "state": "absent"}),
        ),
    ),
    "webhooks": (
        (),
        (
            ("webhook_subscription", {"url": URL, "events": ["*"]}),
            ("webhook_subscription", {"url": URL, "events": ["server.created"]}),
            ("webhook_redeliver", {"url": URL}),
            ("webhook_subscription", {"url": URL, "state": "absent"}),
            ("webhook_test", {"url": URL}),
        ),
    ),
    "a key that is revoked": (
        (),
        (("api_key_revoke", {"key_id": "501"}), ("server", {"name": "a", **ORDER})),
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_check_mode_predicts_the_real_run(name: str) -> None:
    before, tasks = SEQUENCES[name]
    checked, real, _ = both(*tasks, before=before)
    for task, one, other in zip(tasks, checked, real, strict=True):
        assert outcome(one) == outcome(other), (task, one.get("msg"), other.get("msg"))


CHAIN: tuple[Step, ...] = (
    ("server", {"name": "a", **ORDER}),
    ("server_ip", {"server_name": "a"}),
    ("server_ip", {"server_name": "a", "position": 2}),
    ("server_ip", {"server_name": "a", "position": 3}),
)


@pytest.mark.parametrize(
    ("limit", "days", "code"), [("20.00", 300, "max_charge"), ("200.00", 300, None), ("200.00", 50, None)]
)
def test_objects_of_a_new_server_are_priced_or_reported_as_unpriced(
    limit: str, days: int, code: str | None
) -> None:
    """A server, its addresses and its renewal: a price that is not known before the server exists is not
    shown as free."""
    checked, real, _ = both(*CHAIN, ("server_renew", {"name": "a", "until": ahead(days)}), max_charge=limit)
    assert [outcome(result)[:3] for result in checked] == [outcome(result)[:3] for result in real]
    assert (real[-1].get("failure") or {}).get("code") == code
    assert outcome(checked[0]) == outcome(real[0])
    assert outcome(checked[-1]) == outcome(real[-1])
    for result in checked[1:4]:
        assert result["charge"] == {"amount": None, "currency": None}
        (warning,) = result["warnings"]
        assert "price of server address: not known before its server exists" in warning
        assert "max_charge was not checked" in warning
    assert all(Decimal(result["charge"]["amount"]) > 0 for result in real[1:4])


def test_an_unknown_price_names_the_limit_that_was_not_checked() -> None:
    checked, _, _ = both(*CHAIN, budget="200.00/month")
    assert "; budget was not checked for it" in checked[1]["warnings"][0]


def test_an_empty_server_id_means_the_only_server_that_would_be_ordered() -> None:
    """A template for the id of a new server gives nothing in check mode."""
    emulated = Account()
    play = Play(emulated, check_mode=True)
    play("server", name="a", **ORDER)
    assert play("server_ip", server_id="")["charge"] == {"amount": None, "currency": None}
    play("server", name="b", **ORDER)
    unknown = play("server_ip", server_id="")
    assert (unknown["changed"], unknown["charge"]["amount"]) == (True, None)
    assert "price of server address: not known before its server exists" in " ".join(unknown["warnings"])
    assert play("ptr", server_id="", domain="a.example.com")["changed"]
    assert Play(emulated)("server_ip", server_id="")["failure"]["code"] == "invalid_input"


def test_ids_of_planned_objects_are_not_shown() -> None:
    play = Play(Account(), check_mode=True)
    made = play("server", name="a", **ORDER)
    again = play("server", name="a", notes="x")
    play("server_ip", server_name="a")
    shown = [
        made["server"],
        again["server"],
        play("server_ip", server_name="a")["server_ip"],
        play("server_info")["servers"][0],
    ]
    assert [row["id"] for row in shown] == [None] * 4
    assert "19" not in str([row.get("server_id") for row in shown])
    assert "0.0.0." not in str(play.results)


def test_changes_predicted_with_one_key_are_not_predicted_for_another() -> None:
    play = Play(Account(), check_mode=True)
    assert [play("server", name="a", **ORDER)["changed"] for _ in "ab"] == [True, False]
    play.key = play.emulated.test_key
    assert [play("server", name="a", **ORDER)["changed"] for _ in "ab"] == [True, False]


def test_a_server_that_would_be_ordered_is_found_beside_a_cancelled_one_of_its_name() -> None:
    emulated = Account()
    emulated.control("POST", "/servers", {"name": "a"})
    emulated.control("PATCH", "/servers/20001", {"status": "cancelled"})
    play = Play(emulated, check_mode=True)
    assert [play("server", name="a", **ORDER)["changed"] for _ in "ab"] == [True, False]


def test_prices_after_a_planned_deletion_are_the_least() -> None:
    emulated = Account()
    Play(emulated)("server", name="a", **ORDER)
    play = Play(emulated, check_mode=True)
    results = play.run(
        ("server", {"name": "b", **ORDER}),
        ("server", {"name": "a", "state": "absent"}),
        ("server", {"name": "c", **ORDER}),
        ("server", {"name": "d", **ORDER}),
    )
    shown = [result["diff"].get("prepared") for result in results]
    assert shown[0] == "charge: 5.00 EUR\n"
    assert shown[2:] == ["charge: at least 5.00 EUR\n"] * 2
    assert [len(result["warnings"]) for result in results] == [0, 0, 1, 0]
    domain = play("domain", name="example-1.com")  # no discount of servers
    assert domain["diff"]["prepared"] == "charge: 12.00 EUR\n"
    assert play("balance_info")["balance"]["balance"] == "973.00"  # with the planned refund


def test_the_predicted_balance_falls() -> None:
    emulated = Account()
    emulated.control("PATCH", "/account", {"balance": "8.00"})
    checked = Play(emulated, check_mode=True).run(*(("server", {"name": name, **ORDER}) for name in "ab"))
    assert ["more than the balance" in " ".join(result["warnings"]) for result in checked] == [False, True]
    assert Play(emulated, check_mode=True)("balance_info")["balance"]["balance"] == "8.00"


STEPS: tuple[Step, ...] = (
    ("server", {"name": "a", **ORDER}),
    ("server", {"name": "b", "months": 3, **ORDER}),
    ("server", {"name": "a", "state": "absent"}),
    ("server", {"name": "b", "state": "absent"}),
    ("server", {"name": "b", "notes": "x"}),
    ("server", {"id": "20001", "name": "b"}),
    ("server", {"name": "a", "state": "stopped"}),
    ("server_renew", {"name": "a", "until": ahead(60)}),
    ("server_renew", {"name": "b", "until": ahead(60)}),
    ("ptr", {"server_name": "a", "domain": "a.example.com"}),
    ("ptr", {"server_name": "a", "state": "absent"}),
    ("ssh_key", {"name": "k", "public_key": KEY_LINE}),
    ("ssh_key", {"name": "renamed", "public_key": KEY_LINE}),
    ("ssh_key", {"name": "k", "state": "absent"}),
    ("webhook_subscription", {"url": URL, "events": ["*"]}),
    ("webhook_subscription", {"url": URL, "active": False, "events": ["*"]}),
    ("webhook_subscription", {"url": URL, "state": "absent"}),
    ("domain", {"name": "example-1.com"}),
    ("domain", {"name": "example-1.com", "auto_renew": True}),
    ("domain", {"name": "example-1.com", "state": "absent"}),
    ("domain_renew", {"name": "example-1.com", "until": ahead(400)}),
)


LOOKS = {
    "server_info": ("servers", "name"),
    "domain_info": ("domains", "name"),
    "ssh_key_info": ("ssh_keys", "name"),
    "webhook_subscription_info": ("webhook_subscriptions", "url"),
}
"""The tasks that show all objects of a kind, and what tells them apart."""


def looks(play: Play) -> dict[str, dict[str, Any]]:
    """The account as later tasks see it."""
    return {name: {row[key]: row for row in play(name)[rows]} for name, (rows, key) in LOOKS.items()}


@settings(max_examples=settings().max_examples // 4, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(STEPS), min_size=2, max_size=7), st.sampled_from([None, "6.00", "30.00"]))
def test_any_play_is_predicted(tasks: list[Step], limit: str | None) -> None:
    """Changes, charges and refusals are those of the real run, for any order of tasks. After them check mode
    shows the objects that the account has after the real writes, with the same values; what only the service
    knows is null or empty."""
    defaults: dict[str, Any] = {} if limit is None else {"max_charge": limit}
    emulated = Account()
    before, checked, real = (
        Play(emulated),
        Play(emulated, check_mode=True, **defaults),
        Play(emulated, **defaults),
    )
    before("server", name="a", **ORDER)
    predictions, predicted = checked.run(*tasks), looks(checked)
    results, found = real.run(*tasks), looks(real)
    for task, one, other in zip(tasks, predictions, results, strict=True):
        assert outcome(one) == outcome(other), (task, one.get("msg"), other.get("msg"), tasks)
    for name, rows in predicted.items():
        assert rows.keys() == found[name].keys(), (name, tasks)
        for field, value, shown in (
            (field, value, found[name][key][field])
            for key, row in rows.items()
            for field, value in row.items()
        ):
            is_date = field in ("next_due_at", "expires_at")  # predicted is what is paid until for certain
            assert value in (None, [], shown) or (is_date and value <= shown), (name, field, tasks)
    assert account_problems(emulated, before, real) == []


def test_a_text_that_looks_like_the_id_of_a_planned_object_is_shown() -> None:
    phone = "1912345678"
    (checked,), (real,), _ = both(("server", {"name": phone, "notes": phone, **ORDER}))
    assert checked["diff"] == real["diff"]
    assert (checked["server"]["name"], checked["server"]["notes"]) == (phone, phone)
    assert checked["server"]["id"] is None
