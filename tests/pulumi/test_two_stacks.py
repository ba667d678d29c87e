"""Two stacks of one program declare the same SSH key: neither takes it, or a server, from the other."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from tests.support.programs import PUBLIC_KEY, Program, Ref

KEY: dict[str, Any] = {"name": "alice", "public_key": PUBLIC_KEY}
SERVER: dict[str, Any] = {"name": Ref("f'web-{pulumi.get_stack()}'"), "tariff_id": 1, "os": "debian-12", "ssh_key_ids": Ref("[alice.id]")}


def paid(formed: Program) -> Decimal:
    """What was charged, less what was credited."""
    rows = [row for row in formed.control.ledger() if row["type"] in ("payment", "refund")]
    return sum((Decimal(row["amount"]) * (1 if row["direction"] == "debit" else -1) for row in rows), Decimal(0))


def test_destroying_one_stack_leaves_the_servers_of_the_other(formed: Program) -> None:
    formed.declare({"alice": ("SshKey", KEY), "web": ("Server", SERVER)})
    staging = formed.stack
    prod = replace(staging, name="prod")
    prod.init()
    formed.run(staging.up())
    (key,) = formed.objects("ssh_keys")
    # The key is taken over with a message, in the preview too.
    message = f"takes over SSH key {key['id']}"
    assert message in formed.run(prod.preview()).output
    done = formed.run(prod.up())
    assert message in done.output
    assert paid(formed) == Decimal("10.00")
    # The one that made the key deletes it; the other makes it again, and its server stays as it is.
    (server,) = [row for row in formed.living if row["name"] == "web-prod"]
    with staging.unchecked("the state of prod has the key that goes here"):
        formed.run(staging.destroy())
    assert formed.objects("ssh_keys") == []
    formed.run(prod.up("--refresh"))
    (again,) = formed.objects("ssh_keys")
    assert again["name"] == "alice"
    assert [row["id"] for row in formed.living] == [server["id"]]
    assert paid(formed) == Decimal("5.00")
    formed.run(prod.up("--expect-no-changes"))
    # The other way round: what was taken over stays when its stack is destroyed.
    formed.run(staging.up())
    gone = formed.run(staging.destroy())
    assert f"SSH key alice ({again['id']}) stays: it was not created here" in gone.output
    assert [row["id"] for row in formed.objects("ssh_keys")] == [again["id"]]
    assert [row["id"] for row in formed.living] == [server["id"]]
    formed.run(prod.up("--refresh", "--expect-no-changes"))
    formed.run(prod.destroy())
    assert [*formed.living, *formed.objects("ssh_keys")] == []
    assert paid(formed) == 0
