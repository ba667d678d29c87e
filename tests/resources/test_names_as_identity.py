"""Several orders of one name, and frontends that know a server by its name alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from pulumi_hosting.planning import apply
from pulumi_hosting.planning.apply import ApplyOptions, Outcome
from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.errors import (
    AmbiguousMatch,
    ResourceConflict,
    ResourceError,
    WaitTimeout,
)
from tests.resources.conftest import GOOD, KillingTransport, ProcessKilled, ResourceHarness
from tests.resources.orders import exchanges_of_an_order, predicted


@dataclass
class KilledOnceItIsOrdered(KillingTransport):
    """Dies when the first order that was carried out has been processed; ``is_there`` tells."""

    is_there: Callable[[], bool] = lambda: False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self.sent[-1] == "POST /v1/servers" and self.is_there():
            raise ProcessKilled
        return response


@dataclass
class KilledAtTheReplay(KillingTransport):
    """Dies before it sends an order, after it asked which keys are used."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path == "/v1/servers":
            raise ProcessKilled
        return super().handle_request(request)


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("searches", [0, 1])
@pytest.mark.parametrize("stops", [0, 1, 2, 3])
def test_orders_are_found_by_their_key_after_stops_that_probed_keys(
    harness: ResourceHarness, stops: int, searches: int, stored: bool, elsewhere: bool
) -> None:
    """``stops``: runs that met another's server; ``searches``: runs after the lost order that were killed
    while they looked for it; ``elsewhere``: each is on another machine."""
    harness.account.variant(refusals_stored=stored)

    def order(transport: KillingTransport | None = None) -> Any:
        if elsewhere:
            harness.another_machine()
        return harness.order(transport=transport)

    other = harness.order(identity="another", name_is_identity=True)
    for _ in range(stops):
        with pytest.raises(ResourceConflict):
            order()
    SERVER.delete(harness.context(), other)
    lost = KilledOnceItIsOrdered(is_there=lambda: bool(harness.living))
    with pytest.raises(ProcessKilled):
        order(lost)
    assert lost.sent.count("POST /v1/servers") <= 3
    assert len(harness.living) == 1
    for _ in range(searches):
        with pytest.raises(ProcessKilled):
            order(KilledAtTheReplay())
    state = order()
    assert harness.transports[-1].sent.count("POST /v1/servers") <= 2
    assert [str(server["id"]) for server in harness.living] == [state.id]
    assert harness.charges == 1


def test_a_program_edited_after_a_crash_buys_nothing_and_takes_nothing_unproven(
    harness: ResourceHarness,
) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=True))
    with pytest.raises(ResourceConflict):
        harness.order({**GOOD, "os": "ubuntu-24.04"})
    assert harness.charges == 1


@pytest.mark.parametrize("edited", [{"os": "ubuntu-24.04"}, {"tariff_id": 2}])
def test_another_machine_that_carries_the_tag_is_not_taken_over(
    harness: ResourceHarness, edited: dict[str, Any]
) -> None:
    """Its notes were copied, or the program was edited after the crash."""
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(4, after=True))
    for step in (lambda: predicted(harness, {**GOOD, **edited}), lambda: harness.order({**GOOD, **edited})):
        with pytest.raises(ResourceConflict, match=r"is another machine .*order_attempt=1.*adopt_id=20001"):
            step()
    assert harness.charges == 1
    # what the message names
    assert harness.order({**GOOD, "adopt_id": "20001"}).id == "20001"
    assert harness.order({**GOOD, **edited, "order_attempt": 1}).id != "20001"
    assert harness.charges == 2


def test_a_rotated_key_finds_what_the_old_one_ordered(harness: ResourceHarness) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=True))
    key = harness.control("POST", "/keys", {"mode": "live", "scopes": "full"})["key"]
    harness.order(key=key)
    assert len(harness.living) == 1
    assert harness.charges == 1


def test_adopting_checks_what_it_takes(harness: ResourceHarness) -> None:
    other = harness.order(identity="another", name_is_identity=True)
    with pytest.raises(ResourceError, match="os is 'debian-12'"):
        harness.order({**GOOD, "os": "ubuntu-24.04", "adopt_id": other.id})
    with pytest.raises(ResourceError, match="no active server"):
        harness.order({**GOOD, "adopt_id": "424242"})


# --- where the name is the identity


def ensure(
    harness: ResourceHarness, inputs: dict[str, Any] | None = None, id: str | None = None, **terms: Any
) -> Outcome:
    checked = check(SERVER, inputs or GOOD)
    context = harness.context(identity="ansible:/server/web-1", name_is_identity=True)
    return apply.ensure(context, SERVER, checked.inputs, id=id, options=ApplyOptions(**terms))


def test_the_ladder_of_a_stateless_frontend(harness: ResourceHarness) -> None:
    assert ensure(harness, dry_run=True).action == "created"
    assert harness.living == []
    assert ensure(harness).action == "created"
    assert ensure(harness).action == "unchanged"
    desired = {**GOOD, "notes": "hello"}
    assert ensure(harness, desired, dry_run=True).action == "updated"
    assert ensure(harness, desired).action == "updated"
    assert ensure(harness, desired).action == "unchanged"
    with pytest.raises(ResourceError, match="cannot be changed in place"):
        ensure(harness, {**GOOD, "os": "ubuntu-24.04"})
    checked = check(SERVER, GOOD)
    context = harness.context(name_is_identity=True)
    assert (
        apply.ensure_absent(context, SERVER, checked.inputs, options=ApplyOptions(dry_run=True)).action
        == "deleted"
    )
    assert apply.ensure_absent(context, SERVER, checked.inputs).action == "deleted"
    assert apply.ensure_absent(context, SERVER, checked.inputs).action == "unchanged"
    assert harness.living == []


def test_adopting_is_predicted_by_a_dry_run(harness: ResourceHarness) -> None:
    other = harness.order({**GOOD, "name": "old"}, identity="another", name_is_identity=True)
    predicted = ensure(harness, {**GOOD, "adopt_id": other.id}, dry_run=True)
    done = ensure(harness, {**GOOD, "adopt_id": other.id})
    for outcome in (predicted, done):
        assert outcome.before is not None
        assert (outcome.before["id"], outcome.before["name"]) == (other.id, "old")
        assert outcome.after is not None
        assert (outcome.after["id"], outcome.after["name"]) == (other.id, "web-1")
    with pytest.raises(ResourceError, match="is not as declared"):
        ensure(harness, {**GOOD, "name": "third", "tariff_id": 2, "adopt_id": other.id}, dry_run=True)
    assert harness.charges == 1


@pytest.mark.parametrize(("at", "after"), exchanges_of_an_order()[:10])
def test_a_stateless_frontend_killed_anywhere_buys_once(
    harness: ResourceHarness, at: int, after: bool
) -> None:
    checked = check(SERVER, GOOD)
    with pytest.raises(ProcessKilled):
        apply.ensure(
            harness.context(name_is_identity=True, transport=KillingTransport(at, after)),
            SERVER,
            checked.inputs,
        )
    ensure(harness)
    assert len(harness.living) == 1
    assert harness.charges == 1


def test_a_name_that_a_rename_set_free_gets_a_server_of_its_own(harness: ResourceHarness) -> None:
    """The key of the name is remembered for the server that was renamed; that one is another resource's
    by now.
    """
    first = ensure(harness)
    assert first.after is not None
    renamed = ensure(harness, {**GOOD, "name": "web-2"}, id=first.after["id"])
    assert renamed.action == "updated"
    second = ensure(harness)
    assert second.action == "created"
    assert sorted((server["name"], str(server["id"])) for server in harness.living) == [
        ("web-1", second.after["id"] if second.after else ""),
        ("web-2", first.after["id"]),
    ]
    assert harness.charges == 2


def test_what_is_set_once_a_slow_order_is_there_is_reported_as_a_change(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    desired = {**GOOD, "notes": "late"}
    predicted = ensure(harness, desired, dry_run=True)
    assert predicted.action == "updated"
    assert predicted.diff.fields == {"notes"}
    done = ensure(harness, desired)
    assert done.action == "updated"
    assert done.diff.fields == {"notes"}
    assert harness.living[0]["notes"].startswith("late")
    assert ensure(harness, desired).action == "unchanged"


def test_only_waiting_for_a_slow_order_is_no_change(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    assert ensure(harness, dry_run=True).action == "unchanged"
    assert ensure(harness).action == "unchanged"
    assert len(harness.living) == 1


@dataclass
class Overtaking(KillingTransport):
    """``meanwhile`` happens right after the servers were looked at for the first time."""

    meanwhile: Callable[[], Any] = lambda: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self.sent == ["GET /v1/servers"]:
            response.read()
            self.meanwhile()
        return response


def test_an_order_carried_out_between_two_looks_is_found(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    transport = Overtaking(meanwhile=lambda: harness.control("POST", "/clock", {"advance": 31}))
    checked = check(SERVER, GOOD)
    context = harness.context(name_is_identity=True, transport=transport)
    assert apply.ensure_absent(context, SERVER, checked.inputs).action == "deleted"
    assert harness.living == []


def test_several_servers_of_the_name_are_never_guessed_between(harness: ResourceHarness) -> None:
    harness.order()
    harness.order({**GOOD, "order_attempt": 1}, identity="another")
    with pytest.raises(AmbiguousMatch, match="matches several"):
        ensure(harness)


def test_absent_waits_for_an_order_that_is_still_under_way(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    checked = check(SERVER, GOOD)
    assert (
        apply.ensure_absent(harness.context(name_is_identity=True), SERVER, checked.inputs).action
        == "deleted"
    )
    assert harness.living == []
    assert harness.charges == 0 or harness.account.ledger()
