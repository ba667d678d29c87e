"""Decoding: a page of 100 objects as typed values, beside what httpx and json give."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx

from pulumi_hosting.api.models import Page, Response, Server, Transaction
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


def ratios() -> Iterator[Ratio]:
    yield _page_of("transactions", Page[Transaction], TRANSACTION)
    yield _page_of("servers", Page[Server], SERVER)


def _page_of(name: str, model: type[Response], row: dict[str, Any]) -> Ratio:
    content = json.dumps({"data": [{**row, "id": number} for number in range(1, 101)], "next_cursor": None}).encode()
    return compare(
        f"100 {name}, typed",
        _repeated(lambda: model.model_validate_json(_answer(content).content)),
        "httpx and json",
        _repeated(lambda: _answer(content).json()),
    )


def _answer(content: bytes) -> httpx.Response:
    return httpx.Response(200, content=content, headers={"Content-Type": "application/json"})


def _repeated(work: Callable[[], object]) -> Callable[[], object]:
    def run() -> None:
        for _ in range(PAGES_PER_ROUND):
            work()

    return run
