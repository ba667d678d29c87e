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
    # On a machine without notes the one that made the key deletes it; the other makes it again, and its
    # server stays as it is.
    (server,) = [row for row in program.living if row["name"] == "web-prod"]
    elsewhere = replace(
        staging, environ={**staging.environ, "HOSTING_RUNTIME_DIR": str(program.directory / "run")}
    )
    with elsewhere.unchecked("the state of prod has the key that goes here"):
        gone = program.run(elsewhere.destroy())
    assert f"SSH key alice ({key['id']}) deleted; other stacks may declare it" in gone.output
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
    # On a machine that noted the other stack's use it stays too.
    program.run(staging.up())
    gone = program.run(prod.destroy())
    users = " and ".join(f"pulumi:toys/{staging.name}/{what}" for what in ("server/web", "ssh_key/alice"))
    noted = f"SSH key alice ({again['id']}) stays: a run on this machine noted that {users} use it"
    assert noted in gone.output
    program.run(staging.destroy())
    assert [row["id"] for row in program.objects("ssh_keys")] == [again["id"]]
    assert program.living == []
    assert program.moved() == 0
