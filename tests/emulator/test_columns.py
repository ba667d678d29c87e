"""A column of a row is shown and edited without a line of its own: the API's models and a mark say how."""

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, get_args

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from pulumi_hosting.api.models.field_types import Money, Number, Timestamp
from pulumi_hosting.emulator.control.outside_changes import KINDS, Kind
from pulumi_hosting.emulator.formats import shown_as
from pulumi_hosting.emulator.rows import Editable
from tests.emulator.support import PUBLIC_KEY
from tests.support.account import Account


class Thing(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    id: int
    name: str = Field(validation_alias=AliasChoices("name", "label"))
    price: Money | None = None
    percent: Number | None = None
    made_at: Timestamp | None = None
    note: str | None = None


@dataclass
class Row:
    id: int
    name: str
    price: Decimal | None
    made_at: float | None
    secret: str = "not in the model"


def test_a_row_is_shown_as_its_model_says() -> None:
    assert shown_as(Thing, Row(1, "a", Decimal("2.5"), 1_800_000_000.0), percent=Decimal("12.5")) == {
        "id": 1,
        "name": "a",
        "label": "a",
        "price": "2.50",
        "percent": 12.5,
        "made_at": "2027-01-15T08:00:00Z",
        "note": None,
    }


def test_what_is_given_comes_before_the_columns() -> None:
    view = shown_as(Thing, Row(1, "a", None, None), name="b", price=Decimal("0.0150"))
    assert (view["name"], view["label"], view["price"], view["made_at"]) == ("b", "b", "0.015", None)


def test_a_field_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="Thing has no field nmae"):
        shown_as(Thing, Row(1, "a", None, None), nmae="b")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)
def test_every_editable_column_is_a_field_of_the_control_interface(kind: Kind, account: Account) -> None:
    server = account.server()
    ids = {
        "server": server,
        "address": account.api("GET", f"/servers/{server}/ips").json()["data"][0]["id"],
        "SSH key": account.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"],
        "domain": account.domain(),
        "subscription": account.subscribe()["id"],
        **dict.fromkeys(("tariff", "location", "image", "zone"), 1),
    }
    id = ids[kind.word]
    path = kind.path.format(id=server if kind.word == "address" else id, ip_id=id)
    editable = [
        column.name
        for column in fields(kind.row)
        if any(isinstance(mark, Editable) for mark in get_args(column.type))
    ]
    assert editable
    for name in editable:
        before = row(account, kind, id)
        new = changed(kind, name, before[name])
        account.control("PATCH", path, {name: new})
        after = row(account, kind, id)
        assert (after[name], before[name] != new) == (new, True), name


def row(account: Account, kind: Kind, id: int) -> Any:
    return next(row for row in account.control("GET", "/objects")[kind.row.kind] if row["id"] == id)


def changed(kind: Kind, name: str, value: object) -> object:
    """Another value that the column can have."""
    special: dict[str, object] = {
        "status": "expired" if kind.word == "domain" else "pending_cancel",
        "power": "unknown",
        "nameservers": ["a.example", "b.example"],
        "events": ["ping"],
        "url": "https://other.example.org/",
        **dict.fromkeys(("price_monthly", "price_register", "price_renew", "price_transfer"), "7.25"),
        **dict.fromkeys(("min_disk_gb", "min_years", "max_years"), 3),
    }
    return special.get(name, not value if isinstance(value, bool) else f"{value or ''}x")
