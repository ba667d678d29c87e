"""Reading: a page of 100 objects as typed values, every field of them read, beside what httpx and orjson
give untyped.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import get_args

import httpx
import orjson

from pulumi_hosting.api.models import Response, Server, Transaction
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.in_process_transport import Transport
from tests.benchmarks.answers import API_KEY, answering
from tests.benchmarks.measure import Ratio, compare

ROUNDS = 400
TRANSACTION = {
    "id": 1,
    "direction": "debit",
    "amount": "4.99",
    "currency": "EUR",
    "type": "payment",
    "gateway": None,
    "description": "Server renewal",
    "invoice_id": 7,
    "created_at": "2026-01-31T10:00:00Z",
}


def ratios() -> Iterator[Ratio]:
    transactions = [{**TRANSACTION, "id": number} for number in range(1, 101)]
    yield _measured(
        "transactions", _page(transactions), Transaction, lambda client: client.balance.transactions()
    )
    for dialect in ("spec", "live"):
        yield _measured(
            f"servers, {dialect} dialect", _servers(dialect), Server, lambda client: client.servers.list()
        )


def _measured(
    name: str, page: bytes, model: type[Response], listed: Callable[[Client], Iterable[object]]
) -> Ratio:
    with answering(page) as url, Client(API_KEY, url) as client, httpx.Client() as plain:
        fields = attrgetter(*_fields(model))
        address, headers = f"{url}/page?limit=100", {"Authorization": f"Bearer {API_KEY}"}

        def ours() -> None:
            for row in listed(client):
                fields(row)

        def untyped() -> None:
            orjson.loads(plain.get(address, headers=headers).content)

        return compare(
            f"read 100 {name}, {len(page) // 1000} kB", ours, "httpx and orjson", untyped, ROUNDS, 3.0
        )


def _fields(model: type[Response], before: str = "") -> Iterator[str]:
    """Every field, those of objects inside too, with dots."""
    for name, field in model.model_fields.items():
        inside = [
            kind
            for kind in get_args(field.annotation)
            if isinstance(kind, type) and issubclass(kind, Response)
        ]
        if inside:
            yield from _fields(inside[0], f"{before}{name}.")
        else:
            yield before + name


def _servers(dialect: str) -> bytes:
    """What the emulator answers for 100 servers."""
    core = Core(clock=Clock(manual=True), dialect=dialect)
    core.announce("http://emulator/v1", "http://emulator/_control", 0)
    headers = {"Authorization": f"Bearer {core.ready_line['live_key']}"}
    with httpx.Client(transport=Transport(core), base_url="http://emulator", headers=headers) as plain:
        for number in range(1, 101):
            notes = {"notes": f"server {number} of the shop"}
            made = plain.post("/_control/servers", json={"name": f"web-{number}.example.org"})
            plain.patch(f"/v1/servers/{made.json()['id']}", json=notes).raise_for_status()
        return plain.get("/v1/servers?limit=100").content


def _page(rows: list[dict[str, object]]) -> bytes:
    return json.dumps({"data": rows, "next_cursor": None}).encode()
