"""What is bought for a server goes with it, so that its price is refunded: by the ledger, on an engine."""

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.support.programs import Program, Ref

SERVER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
WITH_SERVER: dict[str, tuple[str, dict[str, Any]]] = {
    "web": ("Server", SERVER),
    "mail": ("ServerIp", {"server": Ref("web")}),
    "name": ("Ptr", {"server": Ref("web"), "address": Ref("mail.address"), "domain": "mail.example.com"}),
}


def credited(formed: Program) -> Decimal:
    return total(formed, "refund", "credit")


def total(formed: Program, type: str, direction: str) -> Decimal:
    rows = [row for row in formed.control.ledger() if (row["type"], row["direction"]) == (type, direction)]
    return sum((Decimal(str(row["amount"])) for row in rows), Decimal(0))


def bought(formed: Program) -> list[str]:
    return [f"{row['server_id']}/{row['id']}" for row in formed.objects("addresses") if row.get("bought")]


def test_an_address_is_refunded_with_its_server(formed: Program) -> None:
    formed.declare(WITH_SERVER)
    made = formed.run(formed.stack.up())
    assert "forfeit" not in made.output
    assert "only an address that goes with its server is refunded" not in made.output
    # A replacement: the address of the old server goes with it.
    formed.declare({**WITH_SERVER, "web": ("Server", {**SERVER, "tariff_id": 2})})
    formed.run(formed.stack.up())
    assert credited(formed) == Decimal("7.00")
    assert bought(formed) == [formed.resources()["mail"]["id"]]
    formed.run(formed.stack.destroy())
    assert credited(formed) == total(formed, "payment", "debit") == Decimal("19.00")
    assert formed.living == []
    assert bought(formed) == []


@pytest.mark.parametrize("reason", ["502", "test key"])
def test_if_the_server_cannot_be_deleted_its_address_is_found_again(formed: Program, reason: str) -> None:
    formed.declare(WITH_SERVER)
    formed.run(formed.stack.up())
    ids = bought(formed)
    if reason == "502":
        fault = {"status": 502, "code": "upstream_error"}
        formed.control("POST", "/faults", {"method": "DELETE", "path": "^/servers/[0-9]+$", "action": fault, "times": 99})
    else:
        formed.stack.environ["HOSTING_API_KEY"] = formed.emulator.test_key
    with formed.stack.unchecked("Pulumi forgets what goes with a server before the server is deleted"):
        failed = formed.stack.destroy()
    assert failed.exit_code != 0, failed.output
    assert "addresses and PTR records that were declared with server= are found again by the next up" in failed.output
    assert [*formed.resources()] == ["web"]
    assert bought(formed) == ids
    formed.control("DELETE", "/faults")
    formed.stack.environ["HOSTING_API_KEY"] = formed.emulator.live_key
    # The next up takes the address over, and pays nothing.
    formed.run(formed.stack.up())
    assert bought(formed) == ids == [formed.resources()["mail"]["id"]]
    assert credited(formed) == 0
    formed.run(formed.stack.destroy())
    assert credited(formed) == Decimal("7.00")
    assert formed.living == []
    assert bought(formed) == []


def test_if_the_server_cannot_be_deleted_a_second_destroy_refunds_its_address_too(formed: Program) -> None:
    formed.declare(WITH_SERVER)
    formed.run(formed.stack.up())
    (id,) = bought(formed)
    fault = {"method": "DELETE", "path": "^/servers/[0-9]+$", "action": {"status": 502, "code": "upstream_error"}, "times": 99}
    formed.control("POST", "/faults", fault)
    with formed.stack.unchecked("Pulumi forgets what goes with a server before the server is deleted"):
        assert formed.stack.destroy().exit_code != 0
    formed.control("DELETE", "/faults")
    # The state has the server alone; what goes with it is named all the same, and nothing is bought in between.
    done = formed.run(formed.stack.destroy())
    assert re.search(
        rf"server \d+ deleted with address [0-9.]+ \(id {id.rpartition('/')[2]}\), 2\.00 EUR a month; 7\.00 EUR credited", done.output
    ), done.output
    assert credited(formed) == total(formed, "payment", "debit") == Decimal("7.00")
    assert formed.living == []
    assert bought(formed) == []
    assert formed.resources() == {}


def test_an_address_of_a_server_that_stays_is_released(formed: Program) -> None:
    """The server is forgotten, and not deleted: nothing goes with it."""
    stays = {"web": ("Server", {**SERVER, "opts": Ref("pulumi.ResourceOptions(retain_on_delete=True)")})}
    formed.declare({**stays, "mail": WITH_SERVER["mail"]})
    formed.run(formed.stack.up())
    assert len(bought(formed)) == 1
    formed.stack.allow("retain_on_delete", formed.resources()["web"]["id"])
    formed.run(formed.stack.destroy())
    assert bought(formed) == []
    assert len(formed.living) == 1


def test_a_server_by_its_id_alone_warns_once(formed: Program) -> None:
    by_id = {"web": ("Server", SERVER), "mail": ("ServerIp", {"server_id": Ref("web.id")})}
    formed.declare(by_id)
    made = formed.run(formed.stack.up())
    assert made.output.count("only an address that goes with its server is refunded") == 1, made.output
    assert "declare it with server=" in made.output
    # Doing what the warning says changes nothing on the account.
    formed.declare({"web": ("Server", SERVER), "mail": ("ServerIp", {"server": Ref("web")})})
    formed.run(formed.stack.up())
    formed.run(formed.stack.destroy())
    assert credited(formed) == Decimal("7.00")


def test_two_providers_and_two_stacks_buy_an_address_each(formed: Program) -> None:
    """Each provider is a process of its own and knows nothing of the other's resources."""
    if formed.form == "native":
        provider = f"other = hosting.Provider('other', api_key={formed.emulator.live_key!r}, base_url={formed.emulator.base_url!r})"
        second = "hosting.ServerIp('b', server=web, opts=pulumi.ResourceOptions(provider=other))"
    else:
        provider, second = "", "hosting.ServerIp('b', server=web)"
    formed.declare({"web": ("Server", SERVER), "a": ("ServerIp", {"server": Ref("web")})}, f"{provider}\n{second}")
    formed.run(formed.stack.up())
    assert sorted(bought(formed)) == sorted(formed.resources()[name]["id"] for name in ("a", "b"))
    assert len(bought(formed)) == 2
    formed.run(formed.stack.up(), {})
    # Another stack, and the same server.
    server = formed.resources()["web"]["id"]
    program = (formed.directory / "__main__.py").read_text(encoding="utf-8")
    prod = replace(formed.stack, name="prod")
    prod.init()
    formed.declare({"c": ("ServerIp", {"server_id": server})})
    formed.run(prod.up())
    assert len(bought(formed)) == 3
    (formed.directory / "__main__.py").write_text(program, encoding="utf-8")
    formed.run(formed.stack.up("--refresh"), {})
    formed.declare({"c": ("ServerIp", {"server_id": server})})
    formed.run(prod.destroy())
    (formed.directory / "__main__.py").write_text(program, encoding="utf-8")
    assert sorted(bought(formed)) == sorted(formed.resources()[name]["id"] for name in ("a", "b"))
    formed.run(formed.stack.destroy())
    assert formed.living == []
