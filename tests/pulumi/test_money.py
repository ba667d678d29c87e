"""What a run says of its money, and what it does not do for lack of it: by the ledger, on an engine."""

import re
from typing import Any

import pytest

from tests.support.programs import OTHER_KEY, PUBLIC_KEY, Program, Ref, messages

SERVER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
LAST = re.compile(
    r"charged ([0-9.]+) EUR, credited ([0-9.]+), balance ([0-9.]+)(?:; due next: [^;]+)?$", re.MULTILINE
)


def balance(program: Program) -> str:
    return str(program.objects("accounts")[0]["balance"])


@pytest.mark.both_providers
def test_the_last_line_says_what_was_charged_and_credited(program: Program) -> None:
    servers = {f"web{number}": ("Server", SERVER) for number in range(3)}
    program.declare(servers)
    assert not LAST.search(program.run(program.stack.preview()).output)
    made = program.run(program.stack.up())
    assert LAST.findall(made.output)[-1] == ("15.00", "0.00", balance(program))
    charged = re.findall(r"charged 5\.00 EUR \(VDS-1, 1 month\), invoice [0-9]+$", messages(made), re.M)
    assert len(charged) == 3
    assert program.moved("payment") == 15
    assert not LAST.search(program.run(program.stack.up(), {}).output)
    program.declare({"web0": servers["web0"]})
    changed = program.run(program.stack.up())
    assert LAST.findall(changed.output)[-1] == ("0.00", str(-program.moved("refund")), balance(program))


LEFT = "what was deleted to be replaced stays in the state until the next one is there"
DELETE_FIRST = {"opts": Ref("pulumi.ResourceOptions(delete_before_replace=True)")}


def unaffordable(program: Program, amount: str, address: dict[str, Any], **options: Any) -> str:
    """A server with a bought address, declared as a larger one since, on an account with this balance. Its id."""
    given = {**SERVER, **options}
    program.declare({"web": ("Server", given), "mail": ("ServerIp", address)})
    program.run(program.stack.up())
    program.control("PATCH", "/account", {"balance": amount})
    program.declare({"web": ("Server", {**given, "tariff_id": 2}), "mail": ("ServerIp", address)})
    return str(program.living[0]["id"])


def bought(program: Program) -> list[str]:
    return [str(row["address"]) for row in program.objects("addresses") if row["bought"]]


@pytest.mark.both_providers
@pytest.mark.parametrize("options", [DELETE_FIRST, {}], ids=["delete", "create"])
def test_a_replacement_that_cannot_be_paid_changes_nothing(program: Program, options: dict[str, Any]) -> None:
    """In a preview, in an update, and in an update without a preview; whichever comes first."""
    id = unaffordable(program, "0.99", {"server": Ref("web")}, **options)
    paid, addresses = program.moved(), bought(program)
    for run in (("preview",), ("up", "--yes"), ("up", "--yes", "--skip-preview")):
        refused = program.stack.run(*run)
        assert refused.exit_code != 0, refused.output
        assert (
            f"would charge 10.00 EUR, and it replaces server {id}: the balance of 0.99 EUR and the 7.00 EUR "
            "credited for that do not cover it; it is not ordered, and nothing is deleted for it. Next: top up "
            "2.01 EUR"
        ) in refused.output
        assert (program.living_ids, bought(program), program.moved()) == ([id], addresses, paid)
    assert {*program.resources()} == {"web", "mail"}
    program.control("PATCH", "/account", {"balance": "3.00"})
    with program.stack.unchecked(LEFT):
        last = program.stack.run("up", "--yes", "--skip-preview")
    assert f"(insufficient before about 7.00 EUR are credited for server {id}, which must be" in last.output
    if options:  # the address of the new server is to be paid, too
        assert "insufficient" in last.output
        assert [server["tariff_id"] for server in program.living] == [2]
        assert balance(program) == "0.00"
    else:
        assert "the balance does not cover the price" in last.output
        assert (program.living_ids, bought(program), program.moved()) == ([id], addresses, paid)


@pytest.mark.both_providers
def test_the_refused_deletion_of_a_server_names_what_was_deleted_before_it(program: Program) -> None:
    """An address that does not go with its server is deleted first, and its credit is lost: then the rest does
    not pay the next server."""
    id = unaffordable(program, "3.00", {"server_id": Ref("web.id")}, **DELETE_FIRST)
    (address,) = bought(program)
    with program.stack.unchecked(LEFT):
        refused = program.stack.run("up", "--yes", "--skip-preview")
    assert refused.exit_code != 0
    line = (
        f"server {id} is not deleted, since what replaces it cannot be ordered: it costs 10.00 EUR (VDS-2, 1 "
        "month), the orders of this run cost 10.00 EUR in all, the balance is 3.00 EUR, and the deletion "
        f"credits 5.00 EUR. Deleted before it in this run: server address {address}. Next: top up 2.00 EUR"
    )
    assert line in refused.output, refused.output
    assert (program.living_ids, bought(program)) == ([id], [])
    program.control("PATCH", "/account", {"balance": "7.00"})  # 2.00 for the server, 2.00 for its address
    program.run(program.stack.run("up", "--yes", "--skip-preview"))
    assert [server["tariff_id"] for server in program.living] == [2]
    assert balance(program) == "0.00"


@pytest.mark.both_providers
def test_a_server_that_goes_with_its_key_is_not_deleted_if_the_next_one_cannot_be_paid(
    program: Program,
) -> None:
    """A key is deleted before it is replaced, and what has it before that: of such a server the engine asks no
    check before it deletes it."""
    given = {**SERVER, "ssh_key_ids": Ref("[key.id]"), "rebuild": "replace"}
    declared = {"key": ("SshKey", {"public_key": PUBLIC_KEY}), "web": ("Server", given)}
    program.declare(declared)
    program.run(program.stack.up())
    (id,) = program.living_ids
    program.control("PATCH", "/tariffs/1", {"price_monthly": "50.00"})
    program.control("PATCH", "/account", {"balance": "10.00"})
    declared["key"][1]["public_key"] = OTHER_KEY
    program.declare(declared)
    refused = program.stack.run("up", "--yes", "--skip-preview")
    assert refused.exit_code != 0
    line = f"server {id} is not deleted, since what replaces it cannot be ordered: it costs 50.00 EUR (VDS-1"
    assert line in refused.output, refused.output
    assert "Next: top up 35.00 EUR" in refused.output
    assert (program.living_ids, program.charges) == ([id], 1)
    assert len(program.objects("ssh_keys")) == 1
    program.control("PATCH", "/account", {"balance": "45.00"})
    program.run(program.stack.run("up", "--yes", "--skip-preview"))
    assert len(program.living_ids) == 1
    assert program.living_ids != [id]
    assert balance(program) == "0.00"
