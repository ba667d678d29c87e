"""The client as a user's program uses it, against an account; at the end the account is asked."""

import asyncio
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting import CallError, Client, NotFound, OrderFailed, WaitTimeout, models
from tests.support.account import Account

pytestmark = pytest.mark.usefixtures("dialect")


def client_of(account: Account) -> Client:
    """A client whose pauses move the clock of the account."""
    return Client(
        account.live_key,
        account.base_url,
        transport=account.transport(),
        clock=account.clock.now,
        wall=account.clock.now,
        sleep=account.advance,
    )


def order(client: Client) -> models.Order:
    created = client.servers.create(tariff_id=1, os="debian-12", name="web")
    assert isinstance(created, models.Order)
    return created


@pytest.mark.emulator(provisioning_delay=120)
def test_a_slow_order_is_waited_for_and_paid_once(account: Account) -> None:
    client = client_of(account)
    account.fault({"panel_timeout": "active"})
    told: list[str] = []
    server = client.orders.wait(order(client), on_wait=lambda found: told.append(found.status))
    assert set(told) == {"provisioning"}
    assert 5 < len(told) < 30
    assert (account.living_ids, account.charges) == ([str(server.id)], 1)
    found = client.servers.get_by_name("web")
    assert found is not None
    assert found.raw["id"] == server.id
    assert found.raw.keys() >= {"id", "name", "status"}


@pytest.mark.emulator(provisioning_delay=120)
@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_an_order_that_is_not_delivered_costs_nothing(account: Account, status: str) -> None:
    client = client_of(account)
    account.fault({"panel_timeout": status})
    placed = order(client)
    with pytest.raises(WaitTimeout):
        client.orders.wait(placed, timeout=60)
    with pytest.raises(OrderFailed) as caught:
        client.orders.wait(placed.invoice_id)
    assert (caught.value.status, caught.value.invoice_id) == (status, placed.invoice_id)
    assert (account.living, account.moved()) == ([], Decimal(0))
    with pytest.raises(NotFound):
        client.orders.wait(placed.invoice_id + 1)


def test_a_raw_order_is_placed_once_however_often_its_answer_is_lost(account: Account) -> None:
    client = client_of(account)
    account.fault({"status": 503, "code": "temporarily_unavailable"}, path="^/servers$", method="POST")
    body = {"tariff_id": 1, "os": "debian-12", "name": "web"}
    first = client.request("POST", "/servers", body=body)
    again = client.request("POST", "/servers", body=body, idempotency_key=first.meta.idempotency_key)
    assert first.meta.attempts == 2
    assert first.data["server"]["id"] == again.data["server"]["id"]
    assert (len(account.living), account.charges) == (1, 1)
    listed = client.request("GET", "/servers", query={"limit": 1})
    assert [server["name"] for server in listed.data["data"]] == ["web"]


def test_power_invoices_and_threads(account: Account, tmp_path: Path) -> None:
    client = client_of(account)
    server = client.orders.wait(client.servers.create(tariff_id=1, os="debian-12", name="web"))
    client.servers.stop(server.id)
    assert account.living[0]["status"] == "stopped"
    client.servers.start(server.id)
    assert account.living[0]["status"] == "active"
    invoice = client.invoices.list().first()
    assert invoice is not None
    saved = client.invoices.pdf(invoice.id).save(tmp_path)
    assert saved.name == f"invoice-{invoice.id}.pdf"
    assert saved.read_bytes().startswith(b"%PDF-")

    async def names() -> list[str]:
        found = await asyncio.to_thread(lambda: client.servers.list().all())
        return [server.name for server in found]

    assert asyncio.run(names()) == ["web"]
    assert account.charges == 1


# --- purchases whose answer was damaged on the way

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
DAMAGE: dict[str, Callable[[httpx.Response], httpx.Response]] = {
    "html": lambda found: httpx.Response(found.status_code, html="<h1>Welcome</h1>"),
    "cut": lambda found: httpx.Response(
        found.status_code, content=found.read()[:-9], headers={"Content-Type": "application/json"}
    ),
    "another envelope": lambda found: httpx.Response(200, json={"ok": True, "result": found.json()}),
    "an error": lambda found: httpx.Response(200, json={"error": {"code": "no_capacity", "message": "no"}}),
    "503": lambda found: httpx.Response(503, html="<h1>overloaded</h1>"),
}
PURCHASES: dict[str, tuple[dict[str, Any], Callable[[Client], Callable[..., Any]]]] = {
    "server": ({"tariff_id": 1, "os": "debian-12", "name": "new"}, lambda client: client.servers.create),
    "renewal": ({"server_id": 20001, "months": 1}, lambda client: client.servers.renew),
    "address": ({"server_id": 20001}, lambda client: client.servers.ips.add),
    "domain": ({"name": "example-1.com"}, lambda client: client.domains.register),
}


class DamagingTransport(httpx.BaseTransport):
    """Damages the answers to the attempts of the first write."""

    def __init__(self, account: Account, damage: Callable[[httpx.Response], httpx.Response]) -> None:
        self.inner, self.damage, self.key = account.transport(), damage, ""
        self.sent: list[str] = []
        self.on = True

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        found = self.inner.handle_request(request)
        if request.method == "GET" or not self.on:
            return found
        self.sent.append(request.headers["Idempotency-Key"])
        return self.damage(found)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("what", PURCHASES)
def test_a_purchase_is_repeated_with_the_key_of_its_error(
    account: Account, what: str, damage: Callable[[httpx.Response], httpx.Response]
) -> None:
    account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12", "name": "old"})
    before = account.charges
    transport = DamagingTransport(account, damage)
    arguments, of = PURCHASES[what]
    with Client(account.live_key, account.base_url, transport=transport, sleep=account.advance) as client:
        buy = of(client)
        with pytest.raises(CallError) as caught:
            buy(**arguments)
        assert caught.value.outcome_unknown
        assert {caught.value.idempotency_key} == {*transport.sent}
        transport.on = False
        assert buy(**arguments, idempotency_key=caught.value.idempotency_key).charged
    assert account.charges == before + 1


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_the_program_of_the_documentation_buys_once(
    account: Account, damage: Callable[[httpx.Response], httpx.Response]
) -> None:
    (program,) = re.findall(
        r"```python\n(from pulumi_hosting import CallError\n.*?)```", PAGE.read_text(), re.S
    )
    transport = DamagingTransport(account, damage)
    client = Client(account.live_key, account.base_url, transport=transport, sleep=account.advance)
    real = client.servers.create

    def create(**fields: Any) -> Any:
        transport.on = "idempotency_key" not in fields
        return real(**fields)

    client.servers.create = create  # type: ignore[method-assign]  # seen from outside
    known: dict[str, Any] = {"client": client}
    exec(program, known)  # noqa: S102  # what the page tells users to write
    assert known["created"].server.name == "web"
    assert ([row["name"] for row in account.living], account.charges) == (["web"], 1)
