"""``tariff="VDS-1"`` in place of ``tariff_id=1``: resolved once, recorded, and never a difference later."""

from typing import Any

import pytest

from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.provider.conversion import UNKNOWN
from pulumi_hosting.provider.names import IDENTITY
from tests.provider.processes import WEB, provider_process
from tests.support.account import Account

NAMED: dict[str, Any] = {"tariff": "VDS-1", "os": "debian-12", "name": "web"}


def refusals(account: Account, **given: Any) -> dict[str, str]:
    _, failures = provider_process(account).of("server").check({}, {**NAMED, **given})
    assert account.living == []
    return failures


def test_a_name_is_resolved_when_the_server_is_ordered(account: Account) -> None:
    process = provider_process(account)
    inputs = process.check("server", "web", NAMED)
    assert (inputs["tariff"], inputs["tariffId"]) == ("VDS-1", 1)
    made = process.create("server", "web", NAMED)
    assert (made.outputs["tariff"], made.outputs["tariffId"]) == ("VDS-1", 1)
    (server,) = account.living
    assert server["tariff_id"] == 1
    assert account.charges == 1
    found = process.of("server").diff(made.id, made.outputs, made.inputs)
    assert not found.changes


def test_the_same_name_keeps_its_tariff_without_asking(account: Account) -> None:
    process = provider_process(account)
    made = process.create("server", "web", NAMED)
    account.control("PATCH", "/tariffs/1", {"disabled": True})
    later = provider_process(account)
    before = len(account.requested("GET"))
    inputs = later.check("server", "web", NAMED, olds=made.inputs)
    assert inputs["tariffId"] == 1
    assert "/v1/catalog/tariffs" not in account.requested("GET")[before:]
    refreshed = later.refresh("server", made)
    assert not later.of("server").diff(made.id, refreshed.outputs, inputs).changes
    assert len(account.living) == account.charges == 1


def test_another_name_replaces_and_the_id_in_place_of_the_name_does_not(account: Account) -> None:
    process = provider_process(account)
    made = process.create("server", "web", NAMED)
    other = process.check("server", "web", {**NAMED, "tariff": "vds-2"}, olds=made.inputs)
    found = process.of("server").diff(made.id, made.outputs, other)
    assert found.replaces == ("tariffId",)
    by_id = process.check("server", "web", WEB, olds=made.inputs)
    assert not process.of("server").diff(made.id, made.outputs, by_id).changes


def test_a_server_that_was_moved_to_another_tariff_differs(account: Account) -> None:
    """The recorded id is what was declared; what the account shows is an output."""
    process = provider_process(account)
    made = process.create("server", "web", NAMED)
    account.core.store.servers[int(made.id)].tariff_id = 2
    read = provider_process(account).of("server", native=True).read(made.id, made.outputs, made.inputs)
    assert read is not None
    _, outputs, inputs = read
    assert (outputs["tariffId"], inputs["tariffId"], inputs["tariff"]) == (2, 1, "VDS-1")
    later = process.check("server", "web", NAMED, olds=inputs)
    assert process.of("server").diff(made.id, outputs, later).replaces == ("tariffId",)


def test_a_name_that_is_not_known_yet_leaves_the_price_open(account: Account) -> None:
    process = provider_process(account)
    inputs, failures = process.of("server").check(
        {}, {**NAMED, "tariff": UNKNOWN, IDENTITY: "pulumi:t/d/s/w"}
    )
    assert failures == {}
    assert inputs["tariff"] == UNKNOWN
    assert any("not known before" in line for line in process.lines)


@pytest.mark.parametrize(
    ("given", "field", "reason"),
    [
        ({"tariff": "VDS-11"}, "tariff", "there is no tariff named 'VDS-11': did you mean 'VDS-1', or one"),
        ({"tariff": "vds1"}, "tariff", "there is no tariff named 'vds1': did you mean 'VDS-1', or one"),
        ({"tariff": "VDS-999"}, "tariff", "there is no tariff named 'VDS-999': choose one of 1 (VDS-1), "),
        ({"tariff": "VDS-9"}, "tariff", "there is no tariff named 'VDS-9': choose one of 1 (VDS-1), "),
        ({"tariffId": 2.0}, "tariff", "'VDS-1' is 1, and tariff_id is 2: give one of the two"),
        ({"tariff": None}, "tariff_id", "is required, unless tariff names it"),
        ({"tariff": "VDS-4"}, "tariff", "tariff 4 (VDS-4) is out of stock: choose one of 1 (VDS-1), "),
    ],
)  # fmt: skip
def test_a_name_that_cannot_be_ordered_is_refused(
    account: Account, given: dict[str, Any], field: str, reason: str
) -> None:
    found = refusals(account, **given)
    assert found.keys() == {field}
    assert found[field].startswith(reason)


def test_a_name_of_several_tariffs_is_refused_with_their_ids(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    tariffs = catalog_reads.tariffs

    def twins(request: Any) -> dict[int, Any]:
        found = dict(tariffs(request))
        found[3] = found[3].model_copy(update={"name": "VDS-1"})
        return found

    monkeypatch.setattr(catalog_reads, "tariffs", twins)
    reason = "several tariffs are named 'VDS-1': give tariff_id, one of 1 (Amsterdam) and 3 (Frankfurt)"
    assert refusals(account)["tariff"] == reason
