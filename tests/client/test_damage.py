"""Answers that are damaged in part: nothing is invented, ids stay, and a list with a damaged item proves
an absence.
"""

import copy
import json
import pickle  # noqa: TID251  # our own bytes
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from multiprocessing import get_context
from typing import Any

import pytest
from pydantic import BaseModel

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import exceptions
from pulumi_hosting.client.exceptions import InvalidResponse
from pulumi_hosting.client.results import matching, readable, whole
from tests.client.support import CLIENT_ONLY, KEY, answer, scripted
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.usefixtures("both")

SERVER: dict[str, Any] = {
    "id": 20001,
    "name": "web",
    "status": "active",
    "tariff": {"id": 1, "name": "VDS-1"},
    "location": "Amsterdam",
    "os": "debian-12",
    "primary_ip": "203.0.113.1",
    "ips": ["203.0.113.1"],
    "resources": {"vcpu": 1, "ram_mb": 1024, "disk_mb": 20480},
    "flags": {
        "blocked": False,
        "suspended": False,
        "expired": False,
        "is_test": False,
        "protected_until": "2030-01-01T00:00:00Z",
    },
    "billing": {
        "cycle": "monthly",
        "months": 1,
        "recurring_amount": "5.00",
        "next_due_at": "2030-01-01T00:00:00Z",
        "auto_renew": True,
    },
    "notes": "",
    "created_at": "2026-01-01T00:00:00Z",
}
CREATED: dict[str, Any] = {
    "server": SERVER,
    "root_password": "Secret-1234",
    "invoice_id": 40001,
    "charged": "5.00",
    "balance_after": "95.00",
    "currency": "EUR",
    "order_url": "https://x",
}
TARIFF: dict[str, Any] = {
    "id": 1,
    "name": "VDS-1",
    "location": {"code": "ams", "name": "Amsterdam"},
    "price_monthly": "5.00",
    "in_stock": True,
    "non_refundable": False,
    "excluded_os": ["windows"],
    "periods": [{"months": 1, "discount_percent": 0, "total": "5.00"}],
    "hourly_available": True,
}


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def changed(body: Any, path: tuple[Any, ...], how: str) -> Any:
    copied = json.loads(json.dumps(body))
    node = copied
    for part in path[:-1]:
        node = node[part]
    if how == "missing":
        del node[path[-1]]
    else:
        node[path[-1]] = (
            None
            if how == "null"
            else {"odd": ["canary"]}
            if not isinstance(node[path[-1]], dict | list)
            else 77
        )
    return copied


def shown(value: Any) -> Any:
    """What a model says, as plain data, without what was not sent."""
    if isinstance(value, BaseModel):
        return {name: shown(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, list):
        return [shown(item) for item in value]
    return value


def nothing_invented(damaged: Any, intact: Any) -> None:
    """Every value is the one of the intact answer, or None; a list is shorter only where its item was left
    out of the answer.
    """
    if isinstance(damaged, dict) and isinstance(intact, dict):
        for name, value in damaged.items():
            nothing_invented(value, intact[name])
    elif isinstance(damaged, list) and isinstance(intact, list) and len(damaged) == len(intact):
        for one, other in zip(damaged, intact, strict=True):
            nothing_invented(one, other)
    else:
        assert damaged is None or damaged == [] or damaged == intact


HOW = ["null", "missing", "wrong type"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("path", [*places(CREATED)], ids=lambda path: ".".join(map(str, path)))
def test_no_fault_in_an_order_s_answer_hides_the_purchase(path: tuple[Any, ...], how: str) -> None:
    client, _ = scripted(answer(201, CREATED), answer(201, changed(CREATED, path, how)))
    intact = client.servers.create(tariff_id=1, os="debian-12")
    found: Any
    try:
        found = client.servers.create(tariff_id=1, os="debian-12")
    except InvalidResponse as error:
        found = error
    if isinstance(found, InvalidResponse):
        assert found.idempotency_key
        assert "canary" not in str(found)
        if path[:2] != ("server", "id") and path != ("server",):
            assert found.object_id == 20001
            assert "server_id 20001" in str(found)
        else:
            assert found.object_id is None  # the invoice's id is no server's
        if path != ("invoice_id",):
            assert found.invoice_id == CREATED["invoice_id"]
        if path != ("charged",):
            assert found.charged == Decimal("5.00")
        if path != ("root_password",):
            assert found.partial["root_password"].reveal() == "Secret-1234"
            assert "Secret-1234" not in str(found) + repr(found.partial)
        return
    assert isinstance(found, m.ServerCreated)
    assert found.server.id == 20001
    assert found.charged == Decimal("5.00")
    nothing_invented(shown(found), shown(intact))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("path", [*places(TARIFF)], ids=lambda path: ".".join(map(str, path)))
def test_no_fact_of_a_tariff_is_invented(path: tuple[Any, ...], how: str) -> None:
    client, _ = scripted(answer(200, TARIFF), answer(200, changed(TARIFF, path, how)))
    intact = client.catalog.tariff(1)
    try:
        nothing_invented(shown(client.catalog.tariff(1)), shown(intact))
    except InvalidResponse:
        assert path[-1] in ("id", "code", "name", "price_monthly", "total")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("path", [*places(SERVER)], ids=lambda path: ".".join(map(str, path)))
def test_one_odd_server_does_not_hide_the_others(path: tuple[Any, ...], how: str) -> None:
    other = {**SERVER, "id": 20002, "name": "db"}
    client, _ = scripted(answer(200, {"data": [changed(SERVER, path, how), other], "next_cursor": None}))
    first, second = client.servers.list()
    assert second.id == 20002
    assert path == ("id",) or first.id == 20001


def test_facts_that_are_absent_are_none() -> None:
    client, _ = scripted(answer(200, {"id": 1, "name": "a", "price_monthly": "1.00"}))
    tariff = client.catalog.tariff(1)
    assert (tariff.in_stock, tariff.non_refundable, tariff.hourly_available, tariff.periods) == (
        None,
        None,
        None,
        None,
    )
    client, _ = scripted(answer(200, {"id": 1, "name": "a", "status": "active"}))
    assert client.servers.get(1).flags is None
    client, _ = scripted(answer(200, {"id": 1, "name": "a.example", "status": "active"}))
    domain = client.domains.get(1)
    assert (domain.nameservers, domain.blocked, domain.locked, domain.auto_renew) == (None, None, None, None)


def test_a_damaged_item_stays_in_the_list_and_proves_no_absence() -> None:
    client, _ = scripted(answer(200, {"data": [{"id": 1}, SERVER, {"id": "x"}, 5], "next_cursor": None}))
    walk = client.servers.list()
    good, damaged = readable(walk)
    assert [server.id for server in good] == [20001]
    assert [item.known_id for item in damaged] == [1, None, None]
    assert damaged[0].id == 1
    with pytest.raises(InvalidResponse, match="an item of the list could not be read"):
        _ = damaged[1].id
    assert matching(walk, lambda server: server.name == "web") == good
    with pytest.raises(InvalidResponse, match="item 1 of the list could not be read: name: Field required"):
        matching(walk, lambda server: server.name == "absent")
    with pytest.raises(InvalidResponse, match="item 1 of the list"):
        whole(walk)
    with pytest.raises(InvalidResponse, match=r"Next: check the base URL .*, or report it"):
        [server.name for server in walk]
    assert "item 1" in repr(damaged[0])
    assert damaged[0] == pickle.loads(pickle.dumps(damaged[0]))  # noqa: S301  # our own bytes
    assert not hasattr(damaged[0], "__iter__")


def test_a_list_without_damage_is_whole() -> None:
    client, _ = scripted(answer(200, {"data": [SERVER], "next_cursor": None}))
    assert whole(client.servers.list()) == list(client.servers.list())
    assert matching(client.servers.list(), lambda server: False) == []


@pytest.mark.parametrize("body", [{"data": None}, {}, {"data": {}}, {"data": [], "next_cursor": 5}])
def test_a_list_that_is_none_is_no_empty_list(body: Any) -> None:
    client, _ = scripted(answer(200, body))
    with pytest.raises(InvalidResponse):
        list(client.servers.list())


def test_a_lost_password_is_none_and_a_new_one_that_is_blank_is_damage() -> None:
    client, _ = scripted(answer(201, {**CREATED, "root_password": ""}))
    created = client.servers.create(tariff_id=1, os="debian-12")
    assert isinstance(created, m.ServerCreated)
    assert created.root_password is None
    client, _ = scripted(answer(200, {"server_id": 1, "password": ""}))
    with pytest.raises(InvalidResponse):
        client.servers.reset_password(1)


def test_the_older_shape_of_a_bought_address_is_read() -> None:
    body = {
        "ip": {"id": 1},
        "invoice_id": 7,
        "charged": "2.00",
        "currency": "EUR",
        "balance_after": "9.00",
        "recurring_amount": "7.00",
    }
    client, _ = scripted(answer(200, body))
    added = client.servers.ips.add(1)
    assert (added.charged, added.invoice_id, added.server_id) == (Decimal("2.00"), 7, None)


@pytest.mark.parametrize("planted", [KEY, "".join(f"\\u{ord(c):04x}" for c in KEY)])
def test_the_own_key_in_an_answer_is_not_in_a_result(planted: str, caplog: pytest.LogCaptureFixture) -> None:
    import httpx

    texts = [
        path
        for path in places(SERVER)
        if isinstance(_at(SERVER, path), str) and path[-1] != "recurring_amount"
    ]
    for path in texts:
        body = json.dumps(changed(SERVER, path, "null")).replace("null", f'"before {planted} after"')
        client, _ = scripted(httpx.Response(200, content=body))
        found = client.servers.get(1)
        assert KEY not in repr(found) + str(found) + found.model_dump_json() + caplog.text
    client, _ = scripted(httpx.Response(200, content=f'{{"{planted}": "{planted}"}}'))
    assert KEY not in str(client.openapi())


def _at(node: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        node = node[part]
    return node


# --- lists that are read as they are walked


@CLIENT_ONLY
def test_a_walk_refuses_bool_and_len_with_advice() -> None:
    client, script = scripted(answer(200, {"data": [SERVER, {**SERVER, "id": 2}], "next_cursor": None}))
    walk = client.servers.list()
    with pytest.raises(TypeError, match=r"use first\(\)"):
        bool(walk)
    with pytest.raises(TypeError, match=r"use len\(list"):
        len(walk)
    assert script.requests == []
    assert walk[0].id == 20001
    assert walk[1].id == 2
    for index in (2, -1):
        with pytest.raises(IndexError):
            walk[index]
    assert len(list(walk)) == 2


# --- errors that travel


def every_error() -> list[exceptions.HostingError]:
    from pulumi_hosting.session import errors
    from pulumi_hosting.session.errors import Failed

    refused = exceptions.InsufficientFunds(
        status=402, code="insufficient_funds", message="no", details={"required": "5.00"}, request_id="r"
    )
    made: list[exceptions.HostingError] = [
        exceptions.HostingError("a"),
        exceptions.ConfigurationError("a"),
        exceptions.InvalidInput({"name": "bad"}),
        exceptions.WriteRefused("a"),
        exceptions.TransportError("a", outcome_unknown=True),
        exceptions.TimedOut("a", outcome_unknown=False),
        exceptions.RedirectRefused("a", outcome_unknown=True),
        exceptions.InvalidResponse(
            "a",
            status=201,
            partial={"server_id": 7, "charged": Decimal("5.00"), "root_password": Secret("canary-1")},
        ),
        exceptions.WebhookRejected("a"),
        refused,
        errors.ResourceError("a"),
        errors.AmbiguousMatch("servers named a", ["1", "2"]),
        errors.ResourceConflict("a", id="1"),
        errors.WaitTimeout("a", id="order:1"),
        Failed("a", refused),
    ]
    return made + [
        exceptions.error_class(row.status, row.code)(status=row.status, code=row.code, message="m")
        for row in exceptions.CODES.values()
    ]


def subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(subclasses, kind.__subclasses__()))


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
def test_an_error_can_be_pickled_and_copied(error: exceptions.HostingError) -> None:
    if isinstance(error, exceptions.CallError):
        error.sent_as(
            request_id="r-1",
            idempotency_key="k" * 16,
            attempts=3,
            outcome_unknown=True,
            because_of_earlier=True,
        )
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301  # our own bytes
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert set(vars(again)) == set(vars(error))
        assert getattr(again, "idempotency_key", None) == getattr(error, "idempotency_key", None)
    assert b"canary-1" not in pickle.dumps(error)


def test_no_exported_class_is_left_out() -> None:
    made = {type(error) for error in every_error()}
    ours = {
        kind
        for kind in subclasses(exceptions.HostingError)
        if kind.__module__.startswith("pulumi_hosting.client.exceptions")
    }
    assert ours - made <= {
        exceptions.CallError,
        exceptions.ApiError,
        *(kind for kind in ours if kind in (exceptions.BadRequest,)),
    }


def fail(number: int) -> None:
    raise every_error()[number]


def test_a_process_pool_brings_an_error_back() -> None:
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(exceptions.InsufficientFunds, match="balance"),
    ):
        pool.submit(fail, 9).result(timeout=HANG_SECONDS)
