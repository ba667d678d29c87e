"""What a comparison says of a recorded object."""

import pytest

from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.provider.names import IDENTITY
from tests.provider.processes import WEB, Start
from tests.support.account import Account


def test_a_server_that_is_gone_and_changed_is_only_said_to_be_gone(
    processes: Start, account: Account
) -> None:
    id, outputs, inputs = processes().made("server", "web", WEB)
    account.control("PATCH", f"/servers/{id}", {"status": "terminated"})
    later = processes()
    assert later.of("server").diff(id, outputs, {**inputs, "tariffId": 2}).replaces
    (said,) = later.lines
    assert f"server {id} (web) is gone from the account" in said
    assert "Next: pulumi up --refresh, to order a new one" in said


def test_an_adopted_server_that_is_gone_is_not_said_to_be_ordered_again(
    processes: Start, account: Account
) -> None:
    adopted = {**WEB, "adoptId": str(account.control("POST", "/servers", {"name": "web"})["id"])}
    id, outputs, inputs = processes().made("server", "web", adopted)
    account.control("PATCH", f"/servers/{id}", {"status": "terminated"})
    compared, refreshed = processes(), processes()
    compared.of("server").diff(id, outputs, inputs)
    assert refreshed.of("server").read(id, outputs, inputs) is None
    step = "Next: correct adopt_id, or leave it out to order one"
    assert [(step in line, "a new one is ordered" in line) for line in compared.lines + refreshed.lines] == [
        (True, False),
        (True, False),
    ]
    _, failures = processes().of("server").check({}, {**adopted, IDENTITY: "pulumi:t/dev/server/web"})
    assert "adopt_id" in str(failures)


@pytest.mark.parametrize("olds", [{}, {IDENTITY: "pulumi:t/dev/server/web"}], ids=["dynamic", "native"])
def test_a_replacement_that_an_option_asks_for_says_what_it_erases(
    processes: Start, account: Account, olds: dict[str, str]
) -> None:
    """``replace_on_changes``: the engine replaces after a difference that is an update for the provider."""
    id, outputs, inputs = processes().made("server", "web", WEB)
    later = processes()
    changed = later.check("server", "web", {**WEB, "notes": "new"}, inputs)
    assert not later.of("server").diff(id, outputs, changed).replaces
    assert "ERASED" not in "\n".join(later.lines)
    later.check("server", "web", {**WEB, "notes": "new"}, olds)  # as for a new one
    said = [line for line in later.lines if "ERASED" in line]
    assert said == [
        f"web: notes by replacing server {id}: unless it is retained, it is deleted and ITS DISK IS ERASED, "
        "and about 5.00 EUR is credited"
    ]


@pytest.mark.parametrize("change", [{"notes": "new"}, {"tariffId": 2}, {}])
def test_what_is_erased_is_said_once_and_not_of_an_update(
    processes: Start, change: dict[str, object]
) -> None:
    id, outputs, inputs = processes().made("server", "web", {**WEB, "notes": "old"})
    later = processes()
    changed = later.check("server", "web", {**WEB, "notes": "old", **change}, inputs)
    later.of("server").diff(id, outputs, {**inputs, "notes": "drifted"})  # as a refresh compares
    later.of("server").diff(id, outputs, changed)
    if change != {"notes": "new"}:
        later.check("server", "web", {**WEB, "notes": "old", **change})
    assert "\n".join(later.lines).count("ERASED") == (change == {"tariffId": 2})


def test_a_replacement_that_took_the_object_over_names_nothing_as_lost(
    processes: Start, account: Account
) -> None:
    """What goes with the server is in the state with the newer entry."""
    web = processes().create("server", "web", WEB)
    mail = processes().create("server_ip", "mail", {"serverId": web.id})
    later = processes()
    assert later.create("server", "web", WEB).id == web.id
    with pytest.raises(HostingError, match="was not replaced"):
        later.delete("server", web)
    assert "left the state" not in "\n".join(later.lines)
    assert account.living_ids == [web.id]
    assert f"{web.id}/{account.objects('addresses')[-1]['id']}" == mail.id
