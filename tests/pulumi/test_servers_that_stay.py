"""A server that the engine does not delete, whichever way its option came: what is declared with it is really
released, or really kept, and the output says which. By the account, on an engine.
"""

from decimal import Decimal

import pytest

from tests.support.deletions import Before, present
from tests.support.programs import Program

HEAD = """
class Box(pulumi.ComponentResource):
    def __init__(self, name, **options):
        super().__init__("test:index:Box", name, {}, pulumi.ResourceOptions(**options))

def transformation(**options):
    def change(args):
        if args.type_.endswith(":Server"):
            opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(**options))
            return pulumi.ResourceTransformationResult(args.props, opts)
    return change

def transform(name="", **options):
    def change(args):
        if args.type_.endswith(":Server") and args.name.startswith(name):
            opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(**options))
            return pulumi.ResourceTransformResult(args.props, opts)
    return change

def declare(name, of_it=None, **options):
    web = hosting.Server(name, tariff_id=TARIFF, os="debian-12", opts=pulumi.ResourceOptions(**options))
    opts = pulumi.ResourceOptions(**(of_it or {}))
    ip = hosting.ServerIp(f"{name}-ip", server=web, opts=opts)
    hosting.Ptr(f"{name}-ptr", server=web, address=ip.address, domain=f"{name}.example.com", opts=opts)

protect, retain = {"protect": True}, {"retain_on_delete": True}
"""
WAYS = {
    "protected": "declare(NAME, **protect)",
    "retained": "declare(NAME, **retain)",
    "parent-protected": "declare(NAME, parent=Box(NAME, **protect))",
    "parent-retained": "declare(NAME, parent=Box(NAME, **retain))",
    "transformation": "declare(NAME, transformations=[transformation(**retain)])",
    "parent-transformation": "declare(NAME, parent=Box(NAME, transformations=[transformation(**protect)]))",
    "stack-transformation": "declare(NAME)",
    "transform": "declare(NAME, transforms=[transform(**retain)])",
    "parent-transform": "declare(NAME, parent=Box(NAME, transforms=[transform(**protect)]))",
    "stack-transform": "declare(NAME)",
    # a transform that is registered after the first server
    "late-transform": "pulumi.runtime.register_resource_transform(transform(NAME, **retain)); declare(NAME)",
    "deleted": "declare(NAME, transforms=[transform(protect=False)], protect=True)",
}
"""Way → its declarations. All but the last one keep the server."""
KEPT = {*WAYS} - {"deleted"}
PROTECTED = {"protected", "parent-protected", "parent-transformation", "parent-transform"}
BEFORE_ALL = """
def stack_transformation(args):
    if args.name == "stack-transformation" and args.type_.endswith(":Server"):
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(**retain))
        return pulumi.ResourceTransformationResult(args.props, opts)

pulumi.runtime.register_stack_transformation(stack_transformation)
pulumi.runtime.register_resource_transform(transform("stack-transform", **retain))
"""


def program_of(ways: set[str], tariff: int = 1) -> str:
    lines = [WAYS[way].replace("NAME", repr(way)) for way in WAYS if way in ways]
    return "\n".join([f"TARIFF = {tariff}", HEAD, BEFORE_ALL, *lines])


def servers(program: Program) -> dict[str, str]:
    return {row["name"]: str(row["id"]) for row in program.living}


def of_servers(program: Program) -> list[tuple[str, str]]:
    """Bought addresses and PTR records."""
    return sorted(one for one in present(program) if one[0] != "Server")


def allow_all(program: Program) -> None:
    program.stack.allow("retain_on_delete", *program.living_ids)


@pytest.mark.parametrize("leaving", ["destroy", pytest.param("removal", marks=[pytest.mark.slow])])
def test_what_is_declared_with_a_server_that_stays_is_released(program: Program, leaving: str) -> None:
    program.write(program_of({*WAYS}))
    program.run(program.stack.up())
    paid = program.moved()
    before, declared = Before(program), servers(program)
    assert declared.keys() == WAYS.keys()
    allow_all(program)
    if leaving == "removal":
        program.write("")
    run = program.stack.destroy() if leaving == "destroy" else program.stack.up()
    assert run.exit_code != 0, run.output
    assert before.false_claims(run) == []
    # Servers stay, and nothing else does.
    assert servers(program) == {name: id for name, id in declared.items() if name in KEPT}
    assert of_servers(program) == []
    assert {*program.resources()} == PROTECTED
    # A released address is not refunded; the one that went with its server is.
    assert paid - program.moved() > Decimal("6.00")
    released = [name for name in KEPT if f"{name}-ip deleted" in run.output]
    assert {*released} == KEPT
    assert run.output.count("released; nothing is refunded for it") >= len(KEPT)


@pytest.mark.slow
def test_a_replaced_server_that_is_retained_keeps_nothing(program: Program) -> None:
    ways = {*WAYS} - PROTECTED
    program.write(program_of(ways))
    program.run(program.stack.up())
    before, first = Before(program), servers(program)
    allow_all(program)
    program.write(program_of(ways, tariff=2))
    run = program.run(program.stack.up())
    assert before.false_claims(run) == []
    assert {*program.living_ids} > {id for name, id in first.items() if name != "deleted"}
    new = {name: item["id"] for name, item in program.resources().items() if name in ways}
    assert not {*new.values()} & {*first.values()}
    # Each new server has an address and a record; the old ones that stay have none.
    assert {id.partition("/")[0] for _, id in of_servers(program)} == {*new.values()}
    assert len(of_servers(program)) == 2 * len(ways)


def test_what_is_kept_itself_stays_with_its_server(program: Program) -> None:
    """Protected or retained, as its server or otherwise than it."""
    pairs = [(server, of_it) for server in ("protect", "retain", "delete") for of_it in ("protect", "retain")]
    lines = [f"declare({f'{server}-{of_it}'!r}, of_it={of_it}, **{server})" for server, of_it in pairs]
    program.write("\n".join(["TARIFF = 1", HEAD, "delete = {}", *lines]))
    made = program.run(program.stack.up())
    for of_server in ("ip", "ptr"):
        line = f"warning: delete-retain-{of_server}: retain_on_delete does not keep it if its server"
        assert line in made.output
    declared, all_of_it = servers(program), of_servers(program)
    before = Before(program)
    program.stack.allow("retain_on_delete", *program.living_ids, *(id for _, id in all_of_it))
    run = program.stack.destroy()
    assert run.exit_code != 0
    # A server stays for what is protected of it, and is in the state with it.
    kept = {name: id for name, id in declared.items() if name != "delete-retain"}
    assert servers(program) == kept
    assert of_servers(program) == [one for one in all_of_it if one[1].partition("/")[0] in kept.values()]
    protected = {f"{name}{of_it}" for name in kept if "-protect" in name for of_it in ("-ip", "-ptr")}
    assert {*program.resources()} == protected | {name for name in kept if "protect" in name}
    # The engine says that these are retained; the warnings of the first run said that they are not.
    false = {line.partition(" (")[0] for line in before.false_claims(run)}
    assert false == {"ServerIp delete-retain-ip", "Ptr delete-retain-ptr"}


def test_a_server_that_is_declared_in_a_callback(program: Program) -> None:
    """What waits for the callback is under way while the first server is declared."""
    program.write(
        "TARIFF = 1"
        + HEAD
        + """
key = hosting.SshKey("key", public_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKc4kOLbLqVvPsC6XnV2CGzW0fBsq1DQzR1H4VqT5gkE")

def made(_):
    web = hosting.Server("web", tariff_id=1, os="debian-12", opts=pulumi.ResourceOptions(retain_on_delete=True))
    hosting.ServerIp("ip", server=web)
    return web.id

id = key.fingerprint.apply(made)
hosting.Ptr("ptr", server_id=id, domain="www.example.com", opts=pulumi.ResourceOptions(retain_on_delete=True))
"""
    )
    program.run(program.stack.up())
    before = Before(program)
    program.stack.allow("retain_on_delete", *(id for _, id in before.present))
    run = program.run(program.stack.destroy())
    assert before.false_claims(run) == []
    assert [kind for kind, _ in sorted(present(program))] == ["Ptr", "Server"]
