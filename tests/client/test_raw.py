"""The original JSON of results, files with names, and lists in one call."""

import copy
from pathlib import Path

import httpx
import pytest
from pydantic import BaseModel

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.api.reasons import holds
from pulumi_hosting.api.secrets import Secret, is_secret_name
from pulumi_hosting.client.exceptions import AmbiguousMatch, InvalidResponse
from pulumi_hosting.client.results import Damaged, File, Items, file_name
from tests.client.support import KEY, answer, scripted

pytestmark = pytest.mark.usefixtures("both")

PASSWORD, OTHER = "Canary-password-1", "Canary-password-2"  # made up


def server(number: int, name: str = "web", status: str = "active") -> dict[str, object]:
    return {
        "id": number,
        "name": name,
        "status": status,
        "billing": {"cycle": "monthly", "recurring_amount": "3.00"},
        "created_at": "2026-01-02T03:04:05Z",
    }


def test_a_result_has_the_json_that_it_was_read_from() -> None:
    client, _ = scripted(answer(200, {"invoice_id": 3, "status": "active", "of_tomorrow": {"a": [1, 2.5]}}))
    order = client.orders.get(3)
    assert order.raw == {"invoice_id": 3, "status": "active", "of_tomorrow": {"a": [1, 2.5]}}
    assert order.raw is order.raw  # parsed once


def test_items_of_a_list_have_the_json_of_their_own() -> None:
    rows = [{"invoice_id": number, "status": "provisioning", "new": number * 10} for number in (1, 2)]
    client, _ = scripted(answer(200, {"data": rows, "next_cursor": None}))
    assert [order.raw["new"] for order in client.orders.list()] == [10, 20]


def test_a_damaged_item_is_in_the_json_of_its_page() -> None:
    rows = [{"invoice_id": 1, "status": "provisioning"}, {"invoice_id": "?", "new": "x"}]
    client, _ = scripted(answer(200, {"data": rows, "next_cursor": None}))
    (page,) = client.orders.list().pages()
    assert isinstance(page.data[1], Damaged)
    assert page.raw["data"][1] == {"invoice_id": "?", "new": "x"}
    assert page.data[0].raw == rows[0]


def test_the_json_holds_secrets_as_secrets_and_prints_no_value() -> None:
    body = {
        "server": server(7),
        "root_password": PASSWORD,
        "charged": "3.00",
        "console": {"vnc_password": OTHER, "note": PASSWORD},
        "echo": KEY,
    }
    client, _ = scripted(answer(201, body))
    created = client.servers.create(tariff_id=1, os="debian-12")
    assert isinstance(created, m.ServerCreated)
    assert created.raw["root_password"] == Secret(PASSWORD)
    assert created.raw["console"]["vnc_password"] == Secret(OTHER)
    assert created.raw["server"]["id"] == 7
    for text in (repr(created.raw), str(created.raw), repr(created.raw["console"]), repr(created)):
        assert PASSWORD not in text
        assert OTHER not in text
    assert KEY not in created.raw["echo"]
    assert created.server.raw is None


def test_own_objects_and_copies_have_none() -> None:
    client, _ = scripted(answer(200, {"invoice_id": 3, "status": "active"}))
    order = client.orders.get(3)
    assert copy.copy(m.Order(invoice_id=3, status="active")).raw is None
    assert order == m.Order(invoice_id=3, status="active")


def subclasses(model: type[BaseModel]) -> set[type[BaseModel]]:
    return {model}.union(*(subclasses(sub) for sub in model.__subclasses__()))


def test_every_field_that_holds_a_secret_is_known_by_its_name() -> None:
    list(m.areas())
    bodies = subclasses(m.Response) | subclasses(m.RequestModel)
    names = {
        name
        for model in bodies
        if model.__module__.startswith("pulumi_hosting.")  # not those of other tests
        for name, field in model.model_fields.items()
        if holds(Secret, field.annotation)
    } | {name for operation in OPERATIONS for name in operation.once}
    assert len(names) > 3
    assert [name for name in names if not is_secret_name(name)] == []


# --- files


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('attachment; filename="invoice-812.pdf"', "invoice-812.pdf"),
        ("attachment; filename=invoice-812.pdf", "invoice-812.pdf"),
        ("attachment; filename=\"x\"; filename*=UTF-8''Rechnung%20%C3%BC.pdf", "Rechnung ü.pdf"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        ('attachment; filename="C:\\secret\\.bashrc"', "bashrc"),
        ("attachment; filename*=UTF-8''..%2F..%2F.ssh", "ssh"),
        ('attachment; filename="a\x1b[31m:b.pdf"', "a_b.pdf"),
        ("attachment", "document.pdf"),
        ('attachment; filename="..."', "document.pdf"),
        ("", "document.pdf"),
    ],
)
def test_the_name_of_a_file_is_made_safe(header: str, name: str) -> None:
    assert file_name(header) == name


def test_a_pdf_is_saved_under_its_name_and_replaces_nothing(tmp_path: Path) -> None:
    pdf = httpx.Response(
        200,
        content=b"%PDF-1.7\n%%EOF",
        headers={
            "Content-Type": "application/pdf",
            "Content-Disposition": 'attachment; filename="invoice-5.pdf"',
        },
    )
    client, _ = scripted(pdf)
    file = client.invoices.pdf(5)
    assert file.name == "invoice-5.pdf"
    assert file.save(tmp_path) == tmp_path / "invoice-5.pdf"
    assert (tmp_path / "invoice-5.pdf").read_bytes() == b"%PDF-1.7\n%%EOF"
    with pytest.raises(FileExistsError):
        file.save(tmp_path)
    assert file.save(tmp_path, overwrite=True) == file.save(tmp_path / "other.pdf").with_name("invoice-5.pdf")
    assert copy.copy(file).name == "invoice-5.pdf"
    assert File(b"%PDF-").name == "document.pdf"


# --- lists in one call


def test_the_first_item_and_all_items() -> None:
    two = {"data": [server(2), server(1)], "next_cursor": None}
    client, script = scripted(answer(200, two))
    first = client.servers.list().first()
    assert first is not None
    assert first.id == 2
    assert [found.id for found in client.servers.list().all()] == [2, 1]
    assert len(script.requests) == 2
    client, _ = scripted(answer(200, {"data": [], "next_cursor": None}))
    assert client.servers.list().first() is None
    assert client.catalog.locations().first() is None
    assert client.catalog.locations().all() == []


def test_all_does_not_hide_what_cannot_be_read() -> None:
    client, _ = scripted(answer(200, {"data": [server(1), {"id": "?"}], "next_cursor": None}))
    with pytest.raises(InvalidResponse):
        client.servers.list().all()
    damaged = Damaged("list_servers", 4, "no name")
    with pytest.raises(InvalidResponse):
        Items([damaged]).all()  # type: ignore[type-var]  # as a list that was damaged holds it


def test_an_object_is_found_by_its_name() -> None:
    rows = [server(3, "db"), server(2, "web", "cancelled"), server(1)]
    client, _ = scripted(answer(200, {"data": rows, "next_cursor": None}))
    found = client.servers.get_by_name("web")
    assert found is not None
    assert found.id == 1
    assert client.servers.get_by_name("mail") is None


def test_a_name_that_several_have_is_not_guessed() -> None:
    client, _ = scripted(answer(200, {"data": [server(1), server(2)], "next_cursor": None}))
    with pytest.raises(AmbiguousMatch, match=r"server name 'web' matches several objects: ids 1, 2\. Next:"):
        client.servers.get_by_name("web")


def test_a_name_is_not_absent_while_an_item_cannot_be_read() -> None:
    client, _ = scripted(answer(200, {"data": [server(1), {"id": 9}], "next_cursor": None}))
    with pytest.raises(InvalidResponse):
        client.servers.get_by_name("mail")


@pytest.mark.parametrize("action", ["start", "stop", "restart"])
def test_power_has_a_method_for_each_action(action: str) -> None:
    client, script = scripted(answer(200, {"server_id": 7, "action": action, "status": "accepted"}))
    getattr(client.servers, action)(7)
    assert (script.requests[0].url.path, script.bodies) == (
        "/v1/servers/7/actions/power",
        [{"action": action}],
    )


# --- filters of later versions


def test_a_filter_that_this_version_does_not_know_is_sent() -> None:
    client, script = scripted(answer(200, {"data": [], "next_cursor": None}))
    assert list(client.servers.list(status="migrating", limit=5)) == []
    assert dict(script.requests[0].url.params) == {"status": "migrating", "limit": "5"}
