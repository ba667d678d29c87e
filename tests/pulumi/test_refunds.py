"""What is bought for a server goes with it, so that its price is refunded: by the ledger, on an engine."""

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting import Client
from tests.support.programs import Program, Ref, messages

SERVER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
WITH_SERVER: dict[str, tuple[str, dict[str, Any]]] = {
    "web": ("Server", SERVER),
    "mail": ("ServerIp", {"server": Ref("web")}),
    "name": ("Ptr", {"server": Ref("web"), "address": Ref("mail.address"), "domain": "mail.example.com"}),
}


def credited(program: Program) -> Decimal:
    return total(program, "refund", "credit")


def total(program: Program, type: str, direction: str) -> Decimal:
    rows = [row for row in program.ledger() if (row["type"], row["direction"]) == (type, direction)]
    return sum((Decimal(str(row["amount"])) for row in rows), Decimal(0))


def bought(program: Program) -> list[str]:
    return [f"{row['server_id']}/{row['id']}" for row in program.objects("addresses") if row.get("bought")]


def test_an_address_is_refunded_with_its_server(program: Program) -> None:
    program.declare(WITH_SERVER)
    made = program.run(program.stack.up())
    assert "forfeit" not in made.output
    assert "only an address that goes with its server is refunded" not in made.output
    # A replacement: the address of the old server goes with it.
    program.declare({**WITH_SERVER, "web": ("Server", {**SERVER, "tariff_id": 2})})
    program.run(program.stack.up())
    assert credited(program) == Decimal("7.00")
    assert bought(program) == [program.resources()["mail"]["id"]]
    program.run(program.stack.destroy())
    assert credited(program) == total(program, "payment", "debit") == Decimal("19.00")
    assert program.living == []
    assert bought(program) == []


@pytest.mark.parametrize("reason", ["502", "test key", "revoked key"])
def test_if_the_server_cannot_be_deleted_its_address_is_found_again(program: Program, reason: str) -> None:
    program.declare(WITH_SERVER)
    program.run(program.stack.up())
    ids = bought(program)
    if reason == "502":
        fault = {"status": 502, "code": "upstream_error"}
        program.control(
            "POST", "/faults", {"method": "DELETE", "path": "^/servers/[0-9]+$", "action": fault, "times": 99}
        )
    elif reason == "test key":
        program.stack.environ["HOSTING_API_KEY"] = program.emulator.test_key
    else:
        made = program.control("POST", "/keys", {"mode": "live"})
        program.control("DELETE", f"/keys/{made['id']}")
        program.stack.environ["HOSTING_API_KEY"] = made["key"]
    with program.stack.unchecked("Pulumi forgets what goes with a server before the server is deleted"):
        failed = program.stack.destroy()
    assert failed.exit_code != 0, failed.output
    named = "its addresses and PTR records" if reason == "revoked key" else f"(id {ids[0]}), PTR record"
    (line,) = [line for line in messages(failed).splitlines() if "was not deleted, and neither was" in line]
    assert named in line
    assert "has left the state, though it was reported as deleted. Next: pulumi up finds it again" in line
    assert [*program.resources()] == ["web"]
    assert bought(program) == ids
    program.control("DELETE", "/faults")
    program.stack.environ["HOSTING_API_KEY"] = program.emulator.live_key
    # The next up takes the address over, and pays nothing.
    program.run(program.stack.up())
    assert bought(program) == ids == [program.resources()["mail"]["id"]]
    assert credited(program) == 0
    program.run(program.stack.destroy())
    assert credited(program) == Decimal("7.00")
    assert program.living == []
    assert bought(program) == []


def test_if_the_server_cannot_be_deleted_a_second_destroy_refunds_its_address_too(program: Program) -> None:
    program.declare(WITH_SERVER)
    program.run(program.stack.up())
    (id,) = bought(program)
    fault = {
        "method": "DELETE",
        "path": "^/servers/[0-9]+$",
        "action": {"status": 502, "code": "upstream_error"},
        "times": 99,
    }
    program.control("POST", "/faults", fault)
    with program.stack.unchecked("Pulumi forgets what goes with a server before the server is deleted"):
        assert program.stack.destroy().exit_code != 0
    program.control("DELETE", "/faults")
    # The state has the server alone; what goes with it is named all the same, and nothing is bought in
    # between.
    done = program.run(program.stack.destroy())
    assert re.search(
        rf"server \d+ deleted with address [0-9.]+ \(id {id.rpartition('/')[2]}\), 2\.00 EUR a month; 7\.00 "
        rf"EUR credited",
        done.output,
    ), done.output
    assert credited(program) == total(program, "payment", "debit") == Decimal("7.00")
    assert program.living == []
    assert bought(program) == []
    assert program.resources() == {}


def test_an_address_of_a_server_that_stays_is_released(program: Program) -> None:
    """The server is forgotten, and not deleted: nothing goes with it."""
    stays = {"web": ("Server", {**SERVER, "opts": Ref("pulumi.ResourceOptions(retain_on_delete=True)")})}
    program.declare({**stays, "mail": WITH_SERVER["mail"]})
    program.run(program.stack.up())
    assert len(bought(program)) == 1
    program.stack.allow("retain_on_delete", program.resources()["web"]["id"])
    program.run(program.stack.destroy())
    assert bought(program) == []
    assert len(program.living) == 1


def test_a_server_by_its_id_alone_warns_once(program: Program) -> None:
    by_id = {"web": ("Server", SERVER), "mail": ("ServerIp", {"server_id": Ref("web.id")})}
    program.declare(by_id)
    made = program.run(program.stack.up())
    assert messages(made).count("only an address that goes with its server is refunded") == 1, made.output
    assert "declare it with server=" in made.output
    # Doing what the warning says changes nothing on the account.
    program.declare({"web": ("Server", SERVER), "mail": ("ServerIp", {"server": Ref("web")})})
    program.run(program.stack.up())
    program.run(program.stack.destroy())
    assert credited(program) == Decimal("7.00")


def test_the_id_of_another_stacks_server_warns_until_the_server_is_looked_up(program: Program) -> None:
    with Client(program.stack.environ["HOSTING_API_KEY"], program.emulator.base_url) as client:
        client.servers.create(
            tariff_id=1, os="debian-12", name="theirs", idempotency_key="by-hand-0123456789"
        )
    (server,) = program.living_ids
    program.stack.allow("of another stack", server)
    referred = f'id = pulumi.Output.from_input("{server}")\n'  # as a StackReference gives it
    program.write(f'{referred}hosting.ServerIp("mail", server_id=id)')
    made = program.run(program.stack.up())
    assert 'Server.get("NAME", id) is a server of another stack' in made.output
    (address,) = bought(program)
    program.write(f'{referred}hosting.ServerIp("mail", server=Server.get("theirs", id))')
    done = program.run(program.stack.up())
    assert "warning" not in done.output
    assert bought(program) == [address]
    program.run(program.stack.destroy())
    assert bought(program) == []
    assert program.living_ids == [server]


def test_two_providers_and_two_stacks_buy_an_address_each(program: Program) -> None:
    """Each provider is a process of its own and knows nothing of the other's resources."""
    if program.form == "native":
        provider = (
            f"other = hosting.Provider('other', api_key={program.emulator.live_key!r}, "
            f"base_url={program.emulator.base_url!r})"
        )
        second = "hosting.ServerIp('b', server=web, opts=pulumi.ResourceOptions(provider=other))"
    else:
        provider, second = "", "hosting.ServerIp('b', server=web)"
    program.declare(
        {"web": ("Server", SERVER), "a": ("ServerIp", {"server": Ref("web")})}, f"{provider}\n{second}"
    )
    program.run(program.stack.up())
    assert sorted(bought(program)) == sorted(program.resources()[name]["id"] for name in ("a", "b"))
    assert len(bought(program)) == 2
    program.run(program.stack.up(), {})
    # Another stack, and the same server.
    server = program.resources()["web"]["id"]
    text = (program.directory / "__main__.py").read_text(encoding="utf-8")
    prod = replace(program.stack, name="prod")
    prod.init()
    program.declare({"c": ("ServerIp", {"server_id": server})})
    program.run(prod.up())
    assert len(bought(program)) == 3
    (program.directory / "__main__.py").write_text(text, encoding="utf-8")
    program.run(program.stack.up("--refresh"), {})
    program.declare({"c": ("ServerIp", {"server_id": server})})
    program.run(prod.destroy())
    (program.directory / "__main__.py").write_text(text, encoding="utf-8")
    assert sorted(bought(program)) == sorted(program.resources()[name]["id"] for name in ("a", "b"))
    program.run(program.stack.destroy())
    assert program.living == []
