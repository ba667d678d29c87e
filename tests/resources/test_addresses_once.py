"""An address is bought once: runs that are killed, repeated and announced."""

from datetime import timedelta
from decimal import Decimal
from typing import Any, NoReturn

import pytest

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import Conflict, Forbidden
from pulumi_hosting.planning import apply
from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.resources.server_ip import SERVER_IP
from pulumi_hosting.session.errors import ResourceError
from tests.resources.addresses import DAY, A, B, WrongClock, bought, buy, debits, inputs_of, killed
from tests.resources.conftest import ResourceHarness


@pytest.mark.parametrize(("offset", "elsewhere"), [(0, False), (0, True), (-1, True), (1, True)])
@pytest.mark.parametrize("days", [0, 6.9, 7.1, 30])
def test_a_killed_purchase_is_never_paid_twice(
    harness: ResourceHarness, server: str, days: float, offset: int, elsewhere: bool
) -> None:
    clock = WrongClock(harness.control, offset=timedelta(days=offset))
    killed(harness, server, after=True, clock=clock)
    assert len(debits(harness)) == 1
    harness.control("POST", "/clock", {"advance": days * DAY})
    if elsewhere:
        harness.another_machine()
    if days < 7:
        assert buy(harness, server, clock=clock).id == bought(harness)[0]
    else:
        with pytest.raises(ResourceError, match="nothing was bought") as stopped:
            buy(harness, server, clock=clock)
        id = bought(harness)[0].rpartition("/")[2]
        assert "set adopt_id" in str(stopped.value)
        assert buy(harness, server, clock=clock, adopt_id=id).id == bought(harness)[0]
    assert len(debits(harness)) == len(bought(harness)) == 1


@pytest.mark.parametrize("days", [0, 7.1, 30])
def test_a_purchase_that_was_never_sent_is_made_once_later(
    harness: ResourceHarness, server: str, days: float
) -> None:
    killed(harness, server, after=False)
    assert debits(harness) == []
    harness.control("POST", "/clock", {"advance": days * DAY})
    buy(harness, server)
    assert len(debits(harness)) == len(bought(harness)) == 1


def test_order_attempt_allows_for_the_addresses_that_were_named_and_no_more(
    harness: ResourceHarness, server: str
) -> None:
    buy(harness, server, B)
    harness.another_machine()
    killed(harness, server, after=True, order_attempt=1)
    harness.control("POST", "/clock", {"advance": 30 * DAY})
    harness.another_machine()
    with pytest.raises(ResourceError, match="nothing was bought"):
        buy(harness, server, order_attempt=1)
    assert len(debits(harness)) == len(bought(harness)) == 2


def test_the_purchase_is_kept_in_the_state(harness: ResourceHarness, server: str) -> None:
    state = buy(harness, server)
    assert state.purchase_key is not None
    assert state.purchase_key.startswith("iac3-")
    invoices = [row for row in harness.control("GET", "/objects")["invoices"] if row["type"] == "ip_purchase"]
    assert [state.invoice_id] == [str(row["id"]) for row in invoices]


# --- announced (M30) ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_an_interrupted_run_bought_is_announced_and_costs_nothing(
    harness: ResourceHarness, server: str, elsewhere: bool
) -> None:
    inputs = inputs_of(server)
    assert SERVER_IP.takeover(harness.context(identity=A), inputs) is None
    killed(harness, server, after=True)
    if elsewhere:
        harness.another_machine()
    context = harness.context(identity=A)
    taken = SERVER_IP.takeover(context, inputs)
    assert taken is not None
    assert taken.state.id == bought(harness)[0]
    announced = taken.announcement(context.service_now())
    assert announced.startswith(f"takes over server address {taken.state.id}, ordered ")
    assert {request.split()[0] for request in harness.transports[-1].sent} == {"GET"}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_preview_says_what_the_purchase_will_do_after_the_key_s_seven_days(
    harness: ResourceHarness, server: str, elsewhere: bool
) -> None:
    id = buy(harness, server).id  # and the state forgot it
    harness.control("POST", "/clock", {"advance": 8 * DAY})
    if elsewhere:
        harness.another_machine()
        taken = SERVER_IP.takeover(harness.context(identity=A), inputs_of(server))
        assert taken is not None
        assert "the run will stop: it is older than the 7 days of its key" in taken.reason
        with pytest.raises(ResourceError, match="nothing was bought"):
            buy(harness, server)
    else:
        with pytest.raises(ResourceError) as announced:
            SERVER_IP.takeover(harness.context(identity=A), inputs_of(server))
        with pytest.raises(ResourceError) as stopped:
            buy(harness, server)
        assert str(announced.value) == str(stopped.value)
        assert str(stopped.value).endswith(f'Next: set adopt_id="{id.rpartition("/")[2]}" to take it over')
    assert buy(harness, server, adopt_id=id.rpartition("/")[2]).id == id
    assert len(debits(harness)) == len(bought(harness)) == 1


def test_a_preview_under_strict_stops_as_the_purchase_does(harness: ResourceHarness, server: str) -> None:
    buy(harness, server)
    with pytest.raises(ResourceError, match=r"strict is set and .*; nothing was bought"):
        SERVER_IP.takeover(harness.context(identity=A, strict=True), inputs_of(server))
    assert len(debits(harness)) == 1


def test_what_was_announced_as_found_and_is_paid_after_all_is_approved_first(
    harness: ResourceHarness, server: str
) -> None:
    """A preview cannot know what the other resources of the program have: here their claims come between
    preview and purchase.
    """
    first = buy(harness, server, A)
    harness.another_machine()
    context = harness.context(identity="pulumi:t/dev/server_ip/b")
    taken = SERVER_IP.takeover(context, inputs_of(server))
    assert taken is not None
    assert "nothing is paid before that is known" in taken.reason
    context.ownership.add(A, first.id)

    def refuse() -> NoReturn:
        raise ResourceError("beyond the limit")

    context.approve = refuse
    with pytest.raises(ResourceError, match="beyond the limit"):
        apply.create(context, SERVER_IP, inputs_of(server))
    assert debits(harness) == [Decimal("2.00")]


def test_what_an_interrupted_run_bought_leaves_the_limit_untouched(
    harness: ResourceHarness, server: str
) -> None:
    killed(harness, server, after=True)
    told: list[str] = []

    def connect(key: Secret | None, base_url: str | None, **options: Any) -> Client:
        return Client(key, base_url, transport=harness.account.transport(), **options)

    session = ProviderSession(
        {"HOSTING_API_KEY": harness.account.live_key, "HOSTING_BASE_URL": harness.account.base_url}, connect
    )
    session.configure({"maxCharge": "1.99"})  # an address costs 2.00
    adapter = Adapter(SERVER_IP, session, told.append)
    inputs, failures = adapter.check({}, {"serverId": server, "__identity": A})
    assert failures == {}
    assert [
        line
        for line in told
        if line.startswith(f"a: takes over server address {bought(harness)[0]}, ordered ")
    ]
    assert session.budget.total("EUR") == 0
    id, _ = adapter.create(inputs)
    assert [id] == bought(harness)
    assert len(debits(harness)) == 1
    assert session.budget.total("EUR") == 0
    _, failures = adapter.check({}, {"serverId": server, "__identity": B})
    assert "maxCharge" in " ".join(failures.values())


@pytest.mark.parametrize(
    ("refused", "allowed"),
    [
        ({"status": "suspended"}, {"status": "active"}),
        ({"status": "pending_cancel"}, {"status": "active"}),
        ({"blocked": True}, {"blocked": False}),
    ],
)
def test_a_refusal_for_the_state_of_the_server_ends_with_that_state(
    harness: ResourceHarness, server: str, refused: dict[str, Any], allowed: dict[str, Any]
) -> None:
    harness.control("PATCH", f"/servers/{server}", refused)
    for _ in range(2):
        with pytest.raises((Conflict, Forbidden), match="add_server_ip"):
            buy(harness, server)
    harness.control("PATCH", f"/servers/{server}", allowed)
    assert buy(harness, server).id == bought(harness)[0]
    assert len(debits(harness)) == len(bought(harness)) == 1


@pytest.mark.parametrize("refunded", [True, False])
def test_an_address_that_others_bought_after_the_own_one_was_deleted_is_not_its_own(
    harness: ResourceHarness, server: str, refunded: bool
) -> None:
    own = buy(harness, server)
    if refunded:
        harness.control("POST", f"/invoices/{own.invoice_id}/refund", {})
    harness.control("DELETE", f"/servers/{own.id.replace('/', '/ips/')}")
    harness.control("POST", f"/servers/{server}/ips", {"bought": True})
    with pytest.raises(ResourceError, match="has addresses of unknown origin"):
        buy(harness, server, wait_timeout=1.0)
    assert buy(harness, server, order_attempt=1).id != own.id
    assert len(debits(harness)) == 2
    assert len(bought(harness)) == 2
