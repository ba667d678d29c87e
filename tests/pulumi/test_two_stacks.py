"""Two stacks of one program declare the same SSH key: neither takes it, or a server, from the other."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from tests.support.programs import PUBLIC_KEY, Program, Ref

KEY: dict[str, Any] = {"name": "alice", "public_key": PUBLIC_KEY}
SERVER: dict[str, Any] = {
    "name": Ref("f'web-{pulumi.get_stack()}'"),
    "tariff_id": 1,
    "os": "debian-12",
    "ssh_key_ids": Ref("[alice.id]"),
}


def test_destroying_one_stack_leaves_the_servers_of_the_other(program: Program) -> None:
    program.declare({"alice": ("SshKey", KEY), "web": ("Server", SERVER)})
    staging = program.stack
    prod = replace(staging, name="prod")
    prod.init()
    program.run(staging.up())
    (key,) = program.objects("ssh_keys")
    # The key is taken over with a message, in the preview too.
    message = f"takes over SSH key {key['id']}"
    assert message in program.run(prod.preview()).output
    done = program.run(prod.up())
    assert message in done.output
    assert program.moved() == Decimal("10.00")
    # The one that made the key deletes it; the other makes it again, and its server stays as it is.
    (server,) = [row for row in program.living if row["name"] == "web-prod"]
    with staging.unchecked("the state of prod has the key that goes here"):
        program.run(staging.destroy())
    assert program.objects("ssh_keys") == []
    program.run(prod.up("--refresh"))
    (again,) = program.objects("ssh_keys")
    assert again["name"] == "alice"
    assert [row["id"] for row in program.living] == [server["id"]]
    assert program.moved() == Decimal("5.00")
    program.run(prod.up("--expect-no-changes"))
    # The other way round: what was taken over stays when its stack is destroyed.
    program.run(staging.up())
    gone = program.run(staging.destroy())
    assert f"SSH key alice ({again['id']}) stays: it was not created here" in gone.output
    assert [row["id"] for row in program.objects("ssh_keys")] == [again["id"]]
    assert [row["id"] for row in program.living] == [server["id"]]
    program.run(prod.up("--refresh", "--expect-no-changes"))
    program.run(prod.destroy())
    assert [*program.living, *program.objects("ssh_keys")] == []
    assert program.moved() == 0
