"""A domain through Pulumi's questions, with the account asked after each."""

from typing import Any

import pytest

from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.provider.names import IDENTITY
from tests.provider.processes import Process, Start
from tests.support.account import Account

DAY = 86400
DESIRED: dict[str, Any] = {"name": "example.com", "autoRenew": True}


def domains(account: Account) -> list[tuple[str, bool]]:
    return [(str(row["id"]), row["auto_renew"]) for row in account.control("GET", "/objects")["domains"]]


def debits(account: Account) -> int:
    return sum(row["direction"] == "debit" for row in account.ledger())


def checked(
    process: Process, desired: dict[str, Any], stack: str = "dev"
) -> tuple[dict[str, Any], dict[str, str]]:
    return process.of("domain").check({}, {**desired, IDENTITY: f"pulumi:t/{stack}/domain/site"})


@pytest.mark.parametrize("days", [0, 30])
@pytest.mark.parametrize("refreshed", [False, True])
def test_a_replacement_on_demand_fails_and_changes_nothing(
    processes: Start, account: Account, refreshed: bool, days: int
) -> None:
    id, outputs, inputs = processes().made("domain", "site", DESIRED)
    account.control("POST", "/clock", {"advance": days * DAY})
    process = processes()
    assert process.of("domain").resource.replacement != "free"
    if refreshed:
        found = process.of("domain").read(id, outputs, inputs)
        assert found is not None
        outputs = found[1]
        assert not process.of("domain").diff(id, outputs, inputs).changes
    if days and not refreshed:
        with pytest.raises(HostingError, match=f"Next: set adopt_id={id}"):
            process.of("domain").create(inputs)
    else:
        again, newer = process.of("domain").create(inputs)
        assert (again, newer["autoRenew"]) == (id, True)
        with pytest.raises(
            HostingError,
            match=rf"domain {id} was not replaced: .*Next: pulumi up, which "
            rf"removes the older",
        ):
            process.of("domain").delete(id, outputs)
        # The advice: the newer entry is kept, and the older one goes.
        later = processes()
        assert later.of("domain").check(inputs, inputs)[1] == {}
        assert not later.of("domain").diff(id, newer, inputs).changes
        later.of("domain").delete(id, outputs)
        assert any("stays: another resource of this stack has it" in line for line in later.lines)
    assert domains(account) == [(id, True)]
    assert debits(account) == 1


def test_a_replacement_that_deletes_first_keeps_the_domain_and_buys_nothing(
    processes: Start, account: Account
) -> None:
    """By the program's own option. The creation after it finds what its own deletion could not remove,
    however old it is.
    """
    id, outputs, inputs = processes().made("domain", "site", DESIRED)
    account.control("POST", "/clock", {"advance": 30 * DAY})
    process = processes()
    process.of("domain").delete(id, outputs)
    assert domains(account) == [(id, False)]
    again, outs = process.of("domain").create(inputs)
    assert (again, outs["autoRenew"]) == (id, True)
    assert domains(account) == [(id, True)]
    assert debits(account) == 1


@pytest.mark.parametrize("days", [0, 30])
def test_after_a_renamed_stack_was_destroyed_the_command_of_the_message_takes_the_domain_back(
    processes: Start, account: Account, days: int
) -> None:
    id, outputs, _ = processes().made("domain", "site", DESIRED)
    processes().of("domain").delete(id, outputs)
    account.control("POST", "/clock", {"advance": days * DAY})
    renamed = processes()
    inputs, failures = checked(renamed, DESIRED, "prod")
    if failures:
        stopped = failures["name"]
    else:
        with pytest.raises(HostingError) as refused:
            renamed.of("domain").create(inputs)
        stopped = str(refused.value)
    assert f"Next: set adopt_id={id} to take it over" in stopped
    assert bool(failures) is (days > 7)  # in the preview where it is certain
    assert debits(account) == 1
    inputs, failures = checked(processes(), {**DESIRED, "adoptId": id}, "prod")
    assert failures == {}
    assert processes().of("domain").create(inputs)[0] == id
    assert domains(account) == [(id, True)]
    assert debits(account) == 1


def test_the_price_names_what_is_bought(processes: Start) -> None:
    process = processes()
    _, failures = checked(process, {"name": "\u0430pple.com"})
    assert failures == {}
    (warning,) = [line for line in process.lines if "may be taken for another name" in line]
    assert "xn--pple-43d.com" in warning
    assert any(
        "will charge" in line and "xn--pple-43d.com (\u0430pple.com), 1 year" in line
        for line in process.lines
    )
