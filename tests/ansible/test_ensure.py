"""``ensure`` and ``ensure_absent``, which the modules use: find, plan, apply. Without the cost of a
playbook."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import InvalidInput, WriteRefused
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.apply import ApplyOptions, Outcome
from pulumi_hosting.planning.check import declared
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.session.errors import AmbiguousMatch, ResourceConflict, ResourceError
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session
from tests.ansible.test_playbooks import KEY_LINE, OTHER_LINE

Ensure = Callable[..., Outcome]


@pytest.fixture
def ensure(emulator: Any) -> Iterator[Ensure]:
    """``ensure(kind, id=None, absent=False, dry_run=False, **inputs)``; a dry run's client only reads."""
    with (
        Client(emulator.live_key, emulator.base_url) as live,
        Client(emulator.live_key, emulator.base_url, read_only=True) as reading,
    ):

        def bring(
            kind: str, *, id: str | None = None, absent: bool = False, dry_run: bool = False, **raw: Any
        ) -> Outcome:
            resource = RESOURCES[kind]
            checked = declared(resource, raw)
            assert checked.failures == {}
            session = Session(reading if dry_run else live)
            identity = f"ansible:/{kind}/{id or raw.get('name')}"
            context = Request(session, identity, name_is_identity=True, warn=lambda text: None)
            ensure = apply.ensure_absent if absent else apply.ensure
            return ensure(context, resource, checked.inputs, id=id, options=ApplyOptions(dry_run=dry_run))

        yield bring


def order(ensure: Ensure, name: str) -> str:
    made = ensure("server", name=name, tariff_id=1, os="debian-12")
    assert made.after is not None
    return str(made.after["id"])


def test_an_incomplete_declaration_is_validated() -> None:
    assert declared(RESOURCES["server"], {"name": "web\n1"}).failures.keys() == {"name"}
    assert declared(RESOURCES["server"], {"name": "web-1", "months": 1, "hours": 5}).failures.keys() == {
        "hours"
    }
    assert declared(RESOURCES["server"], {"nmae": "web-1"}).failures == {
        "nmae": "is not an input of this resource; did you mean name?"
    }
    assert declared(RESOURCES["server"], {"name": "web-1"}).inputs.given() == {"name": "web-1"}


@pytest.mark.parametrize("dry_run", [False, True])
def test_missing_inputs_of_a_new_object_are_named(ensure: Ensure, dry_run: bool) -> None:
    with pytest.raises(InvalidInput) as refused:
        ensure("server", name="web-1", dry_run=dry_run)
    assert refused.value.fields == {"tariff_id": "is required, unless tariff names it", "os": "is required"}


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_rename_to_a_name_in_use_is_refused(ensure: Ensure, dry_run: bool) -> None:
    first, second = order(ensure, "a"), order(ensure, "b")
    with pytest.raises(ResourceConflict) as refused:
        ensure("server", id=first, name="b", dry_run=dry_run)
    assert refused.value.id == second
    assert ensure("server", id=first, name="c", dry_run=dry_run).action == "updated"


def test_servers_of_one_name_are_selected_by_id(ensure: Ensure, emulator: Any) -> None:
    with Client(emulator.live_key, emulator.base_url) as client:
        ids = [client.servers.create(tariff_id=1, os="debian-12", name="twin").server.id for _ in "ab"]  # type: ignore[union-attr]  # no order is slow here
    with pytest.raises(AmbiguousMatch) as refused:
        ensure("server", name="twin", notes="which?")
    assert sorted(refused.value.ids) == sorted(map(str, ids))
    assert ensure("server", id=str(ids[0]), name="twin", notes="this one").action == "updated"


def test_the_client_of_a_dry_run_cannot_write(ensure: Ensure, emulator: Any) -> None:
    order(ensure, "a")
    assert ensure("server", name="a", absent=True, dry_run=True).action == "deleted"
    assert ensure("server", name="a").action == "unchanged"
    with Client(emulator.live_key, emulator.base_url, read_only=True) as reading, pytest.raises(WriteRefused):
        reading.ssh_keys.create(name="k", public_key=KEY_LINE)


def test_a_key_named_by_id_keeps_its_comment_and_its_declaration(ensure: Ensure) -> None:
    made = ensure("ssh_key", name="laptop", public_key=KEY_LINE)
    assert made.after is not None
    id = str(made.after["id"])
    assert ensure("ssh_key", id=id, public_key=KEY_LINE + " more words").action == "unchanged"
    renamed = ensure("ssh_key", id=id, name="desk")
    assert renamed.action == "replaced"
    assert renamed.after is not None
    assert renamed.after["public_key"] == KEY_LINE
    # The new entry has another id; the same declaration still holds.
    assert ensure("ssh_key", id=id, name="desk").action == "unchanged"
    with pytest.raises(ResourceError, match="there is no SSH key with id"):
        ensure("ssh_key", id=id, name="laptop")


def test_a_key_is_found_by_its_material_before_its_name(ensure: Ensure) -> None:
    ensure("ssh_key", name="laptop", public_key=KEY_LINE)
    assert ensure("ssh_key", name="laptop", public_key=OTHER_LINE).action == "replaced"
    assert ensure("ssh_key", name="desk", public_key=OTHER_LINE).action == "replaced"
    assert ensure("ssh_key", name="laptop", absent=True).action == "unchanged"
    assert ensure("ssh_key", name="desk", absent=True).action == "deleted"


def test_an_ambiguous_name_is_refused_and_an_id_is_not(ensure: Ensure, emulator: Any) -> None:
    with Client(emulator.live_key, emulator.base_url) as client:
        ids = [client.ssh_keys.create(name="twin", public_key=line).id for line in (KEY_LINE, OTHER_LINE)]
    with pytest.raises(AmbiguousMatch) as refused:
        ensure("ssh_key", name="twin", absent=True)
    assert sorted(refused.value.ids) == sorted(map(str, ids))
    assert ensure("ssh_key", id=str(ids[0]), absent=True).action == "deleted"
    assert ensure("ssh_key", name="twin").action == "unchanged"


@pytest.mark.parametrize("dry_run", [False, True])
def test_inputs_that_cannot_be_set_yet_are_no_change(ensure: Ensure, dialect: str, dry_run: bool) -> None:
    """A transfer takes days. Until it is finished the domain cannot be changed."""
    desired = {"name": "example-moved.com", "auth_code": "Ab12-Cd34", "privacy": True, "auto_renew": True}
    assert ensure("domain", **desired).action == "created"
    again = ensure("domain", dry_run=dry_run, **desired)
    assert (again.action, again.after and again.after["status"]) == ("unchanged", "transfer_pending")
    assert ensure("domain", absent=True, dry_run=dry_run, name="example-moved.com").action == "unchanged"


def test_an_unpaid_order_is_not_waited_for(ensure: Ensure, emulator: Any) -> None:
    """Ordered in the control panel and never paid: it is not processed automatically."""
    control = Control(emulator.control_url)
    control("POST", "/invoices", {"type": "vds_purchase", "tariff_id": 1, "name": "web-1"})
    assert ensure("server", name="web-1", absent=True).action == "unchanged"
    assert ensure("server", name="web-1", tariff_id=1, os="debian-12").action == "created"


def test_a_tariff_is_given_by_name(ensure: Ensure, emulator: Any) -> None:
    control = Control(emulator.control_url)
    declared_server = {"name": "web", "tariff": "VDS-1", "os": "debian-12"}
    assert ensure("server", dry_run=True, **declared_server).action == "created"
    made = ensure("server", **declared_server)
    assert made.after is not None
    assert made.after["tariff_id"] == 1
    control("PATCH", "/tariffs/1", {"disabled": True})
    assert ensure("server", **declared_server).action == "unchanged"
    with pytest.raises(ResourceError, match="tariff is"):
        ensure("server", **{**declared_server, "tariff": "VDS-2"})
    assert (
        ensure("server", **{**declared_server, "tariff": "Sold-Out"}).action == "unchanged"
    )  # with a warning
    with pytest.raises(InvalidInput, match="there is no tariff named 'VDS-1'"):
        ensure("server", **{**declared_server, "name": "other"})
    assert [server["name"] for server in control("GET", "/objects")["servers"]] == ["web"]
    assert [row["type"] for row in control("GET", "/ledger")] == ["payment"]
