"""Reading: a page of 100 objects as typed values, beside what httpx and json give."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import httpx

from pulumi_hosting.api.models import Page, Server, Transaction
from pulumi_hosting.client.client import Client
from tests.benchmarks.measure import Ratio, compare

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
SERVER = {
    "id": 1,
    "name": "web-1",
    "hostname": "web-1.example.org",
    "status": "active",
    "tariff": {"id": 3, "name": "S"},
    "location": "ams",
    "os": "debian-12",
    "primary_ip": "192.0.2.1",
    "ips": ["192.0.2.1", "2001:db8::1"],
    "resources": {"cpu": 2, "ram_mb": 2048, "disk_mb": 40960, "bandwidth_tb": 1},
    "flags": {"blocked": False, "suspended": False, "expired": False},
    "notes": None,
    "created_at": "2026-01-31T10:00:00Z",
}
PAGES_PER_ROUND = 20
BASE_URL = "https://api.example.org/v1"
KEY = "vk_live_" + "0" * 40


def ratios() -> Iterator[Ratio]:
    for path, row, model in (
        ("transactions", TRANSACTION, Page[Transaction]),
        ("servers", SERVER, Page[Server]),
    ):
        content = json.dumps(
            {"data": [{**row, "id": number} for number in range(1, 101)], "next_cursor": None}
        ).encode()
        # The transport answers from memory: what is measured is our part of a call, not the network's.
        transport = httpx.MockTransport(lambda request, content=content: _answer(content))
        with (
            Client(KEY, BASE_URL, transport=transport) as client,
            httpx.Client(base_url=BASE_URL, transport=transport) as plain,
        ):
            lists: Mapping[str, Callable[[], Iterable[object]]] = {
                "transactions": client.balance.transactions,
                "servers": client.servers.list,
            }
            yield compare(
                f"read 100 {path}",
                _repeated(partial(_consume, lists[path])),
                "httpx and json",
                _repeated(partial(_get, plain, path)),
            )
        yield compare(
            f"decode 100 {path}",
            _repeated(partial(model.model_validate_json, content)),
            "json",
            _repeated(partial(json.loads, content)),
        )


def _answer(content: bytes) -> httpx.Response:
    return httpx.Response(200, content=content, headers={"Content-Type": "application/json"})


def _consume(listed: Callable[[], Iterable[object]]) -> int:
    return sum(1 for _ in listed())


def _get(plain: httpx.Client, path: str) -> Any:
    return plain.get(path).json()


def _repeated(work: Callable[[], object]) -> Callable[[], object]:
    def run() -> None:
        for _ in range(PAGES_PER_ROUND):
            work()

    return run
