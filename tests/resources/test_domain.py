"""Domains: what name is bought, whose a found one is, and what is left after a deletion that the API does
not have.
"""

import re
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.domain_powers import DOMAIN
from pulumi_hosting.session.errors import ResourceConflict, StillOrdered, WaitTimeout
from tests.resources.conftest import ResourceHarness

RESOURCE = DOMAIN
ME = "pulumi:t/dev/domain/shop"
RENAMED = "pulumi:t/prod/domain/shop"
DAY = 86400
HOSTS = ["ns1.example.net", "ns2.example.net"]


def inputs(**more: Any) -> Any:
    found = check(RESOURCE, {"name": "example-1.com", **more})
    assert not found.failures
    return found.inputs


def create(harness: ResourceHarness, given: Any = None, identity: str = ME, **more: Any) -> Any:
    return apply.create(harness.context(identity=identity, **more), RESOURCE, given or inputs())


def delete(harness: ResourceHarness, state: Any, identity: str = ME) -> None:
    apply.delete(harness.context(identity=identity), RESOURCE, state)


def preview(
    harness: ResourceHarness, given: Any, identity: str = ME, **more: Any
) -> tuple[dict[str, str], Any]:
    """Refusals, and what would be taken over."""
    context = harness.context(identity=identity, **more)
    failures = RESOURCE.validate(context, given.given(), frozenset(given.given()))
    return failures, None if failures else RESOURCE.takeover(context, given)


def the_one(harness: ResourceHarness) -> dict[str, Any]:
    (row,) = harness.control("GET", "/objects")["domains"]
    return dict(row)


def debits(harness: ResourceHarness) -> int:
    return sum(row["direction"] == "debit" for row in harness.account.ledger())


# --- what is bought


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "exam\u200bple.com"),
        ("name", "exam\u00adple.com"),
        ("name", "example.com\ufe0f"),
        ("name", "exa mple.com"),
        ("name", "example.com\n"),
        ("name", "a\ud800.com"),
        ("name", "-a.com"),
        ("name", f"{'a' * 64}.com"),
        ("name", "com"),
        ("nameservers", ["1.2.3.4", "5.6.7.8"]),
        ("nameservers", ["ns1", "ns2"]),
        ("nameservers", ["ns1.example.net", "NS1.example.net."]),
        ("nameservers", ["ns_1.example.net", "ns2.example.net"]),
        ("nameservers", ["-a.example.net", "ns2.example.net"]),
        ("nameservers", [f"{'a' * 64}.example.net", "ns2.example.net"]),
        ("nameservers", ["exam\u200bple.net", "ns2.example.net"]),
        ("promo_code", "A\x00"),
        ("auth_code", "EPP\n1"),
        ("auth_code", "EPP\ud800"),
        ("years", True),
        ("adopt_id", True),
    ],
)
def test_invalid_arguments_are_refused_by_name(field: str, value: Any) -> None:
    assert check(RESOURCE, {"name": "example-1.com", field: value}).failures.keys() == {field}


@pytest.mark.parametrize(
    ("written", "bought", "says"),
    [
        ("\u0430pple.com", "xn--pple-43d.com", "mixes Cyrillic and Latin letters"),
        ("xn--pple-43d.com", "xn--pple-43d.com", "mixes Cyrillic and Latin letters"),
        ("\u0445\u043e\u0440.com", "xn--n1aen.com", "letters that look like Latin ones"),
        ("M\u00fcnster-1.com", "xn--mnster-1-65a.com", None),
        ("EXAMPLE-1.com.", "example-1.com", None),
    ],
)
def test_the_name_that_is_bought_is_shown_with_its_price(
    harness: ResourceHarness, written: str, bought: str, says: str | None
) -> None:
    given = inputs(name=written)
    assert given.name == bought
    failures, taken = preview(harness, given)
    assert (failures, taken) == ({}, None)
    cost = RESOURCE.cost(harness.context(), given.given())
    assert cost is not None
    assert cost.what.startswith(bought)
    if bought.startswith("xn--"):
        assert f"{bought} (" in cost.what  # and as people read it
    warned = [line for line in harness.messages if "may be taken for another name" in line]
    assert bool(warned) is (says is not None)
    assert all(bought in line and str(says) in line for line in warned)


# --- whose it is


def test_what_an_earlier_run_ordered_is_announced_and_taken_over(harness: ResourceHarness) -> None:
    first = create(harness)
    # the service shows its time in whole seconds
    harness.control("POST", "/clock", {"advance": 2 * 3600 + 60})
    failures, taken = preview(harness, inputs())
    assert failures == {}
    line = taken.announcement(harness.context().service_now())
    assert line == (
        f"{first.name} is already on the account (domain {first.id}, ordered 2 h ago, 12.00 EUR, invoice "
        "40001). If this stack bought it, it is adopted; if not, the run stops. "
        f"Next: set adopt_id={first.id}"
    )
    assert create(harness).id == first.id
    assert debits(harness) == 1
    assert [told for told in harness.messages if told.startswith("takes over")] == [
        f"takes over domain {first.id}, ordered 2 h ago, 12.00 EUR, invoice 40001 "
        "(an interrupted run ordered it)"
    ]


def test_another_resources_domain_stops_and_the_edit_resolves_it(harness: ResourceHarness) -> None:
    first = create(harness)
    with pytest.raises(ResourceConflict, match=re.escape(f"Next: set adopt_id={first.id} to take it over")):
        create(harness, identity=RENAMED)
    adopting = inputs(adopt_id=first.id)
    failures, taken = preview(harness, adopting, RENAMED)
    assert (failures, taken.reason) == ({}, "adopt_id names it")
    assert create(harness, adopting, RENAMED).id == first.id
    assert debits(harness) == 1


@pytest.mark.parametrize(("days", "refused"), [(0, False), (6.9, False), (7.1, True), (30, True)])
def test_an_old_one_is_refused_in_the_preview(harness: ResourceHarness, days: float, refused: bool) -> None:
    first = create(harness)
    harness.control("POST", "/clock", {"advance": days * DAY})
    failures, _ = preview(harness, inputs())
    assert bool(failures) is refused
    if refused:
        assert f"Next: set adopt_id={first.id} to take it over" in failures["name"]
        with pytest.raises(
            ResourceConflict, match="it is older than seven days, and another state may have it"
        ):
            create(harness)
    else:
        assert create(harness).id == first.id
    assert debits(harness) == 1


def test_under_strict_only_with_a_scope(harness: ResourceHarness) -> None:
    first = create(harness)
    failures, _ = preview(harness, inputs(), strict=True)
    assert "strict is set and hosting:scope is not" in failures["name"]
    with pytest.raises(ResourceConflict, match=f"adopt_id={first.id}"):
        create(harness, strict=True)
    assert create(harness, strict=True, scope="shop").id == first.id
    assert debits(harness) == 1


def test_after_a_stack_was_renamed_and_destroyed_the_domain_is_adopted(harness: ResourceHarness) -> None:
    """The identity that ordered it went with the state."""
    first = create(harness, inputs(auto_renew=True))
    delete(harness, first)
    with pytest.raises(ResourceConflict, match=f"adopt_id={first.id}"):
        create(harness, inputs(auto_renew=True), RENAMED)
    again = create(harness, inputs(auto_renew=True, adopt_id=first.id), RENAMED)
    assert (again.id, again.auto_renew) == (first.id, True)
    assert the_one(harness)["auto_renew"] is True
    assert debits(harness) == 1


# --- what is left


def stays(harness: ResourceHarness) -> list[str]:
    return [line for line in harness.messages if "stays" in line]


@pytest.mark.parametrize("renews", [True, False])
def test_a_deletion_turns_auto_renew_off_and_says_until_when_it_stays(
    harness: ResourceHarness, renews: bool
) -> None:
    state = create(harness, inputs(auto_renew=renews))
    delete(harness, state)
    row = the_one(harness)
    assert row["auto_renew"] is False
    (line,) = stays(harness)
    until = (state.expires_at or "")[:10]
    assert line == (
        f"domain example-1.com (id {state.id}, {state.price_renew} EUR a year if renewed) stays until "
        f"{until}: auto-renew is off; the API cannot delete domains"
    )


def test_one_whose_auto_renew_is_not_shown_is_turned_off(harness: ResourceHarness) -> None:
    state = create(harness, inputs(auto_renew=True))
    harness.fault({"patch": {"data": [{"auto_renew": None}]}}, path="^/domains$", method="GET", times=99)
    harness.fault({"patch": {"auto_renew": None}}, path="^/domains/[0-9]+$", method="GET", times=99)
    delete(harness, state)
    assert the_one(harness)["auto_renew"] is False
    assert len(stays(harness)) == 1


def test_one_that_cannot_be_changed_yet_is_not_reported_as_removed(harness: ResourceHarness) -> None:
    harness.fault({"registrar": "pending"}, path="^/domains$")
    state = create(harness)
    harness.control("PATCH", f"/domains/{state.id}", {"auto_renew": True})
    with pytest.raises(
        WaitTimeout,
        match="is pending, and its auto-renew cannot be turned off before it is active; nothing was changed",
    ):
        delete(harness, state)
    context = harness.context(identity="ansible:play", name_is_identity=True)
    with pytest.raises(WaitTimeout, match="before it is active"):
        apply.ensure_absent(context, RESOURCE, inputs())
    # what the message says
    harness.control("POST", "/clock", {"advance": 3 * DAY})
    delete(harness, state)
    assert the_one(harness)["auto_renew"] is False


def test_one_that_is_pending_and_does_not_renew_stays(harness: ResourceHarness) -> None:
    harness.fault({"registrar": "pending"}, path="^/domains$")
    state = create(harness)
    delete(harness, state)
    assert [line for line in stays(harness) if "stays (pending): auto-renew is off" in line]


def test_an_order_that_is_not_listed_yet_is_not_reported_as_removed(harness: ResourceHarness) -> None:
    unlisted = RESOURCE.State.partial(
        {"id": "example-1.com", "name": "example-1.com", "status": "pending", "mode": "live"}
    )
    assert apply.read(harness.context(identity=ME), RESOURCE, unlisted) == unlisted
    with pytest.raises(
        StillOrdered,
        match=r"the registration of example-1.com is under way, and its auto-renew cannot be turned off yet; "
        "nothing was deleted",
    ):
        delete(harness, unlisted)
    first = create(harness)
    delete(harness, unlisted)
    assert apply.read(harness.context(identity=ME), RESOURCE, unlisted).id == first.id


@pytest.mark.parametrize(
    "action", [{"status": 502, "code": "upstream_error"}, {"patch": {"auto_renew": True}}]
)
def test_a_deletion_that_fails_is_no_success(harness: ResourceHarness, action: dict[str, Any]) -> None:
    state = create(harness, inputs(auto_renew=True))
    harness.fault(action, path="^/domains/", method="PATCH", times=99)
    with pytest.raises(HostingError, match=r"upstream_error|still renews"):
        delete(harness, state)
    assert stays(harness) == []


def test_an_answer_with_a_strange_name_server_is_read(harness: ResourceHarness) -> None:
    state = create(harness)
    harness.control(
        "PATCH", f"/domains/{state.id}", {"nameservers": ["_odd_.Example.net.", "ns2.example.net"]}
    )
    assert apply.read(harness.context(identity=ME), RESOURCE, state).nameservers == [
        "_odd_.example.net",
        "ns2.example.net",
    ]
