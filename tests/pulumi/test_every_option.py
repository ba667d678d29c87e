"""Every option of Pulumi's resources, of a server and of what belongs to one: destroyed, removed from the
program, replaced. What the output says is compared with the account.
"""

import inspect
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pulumi
import pytest

from pulumi_hosting import Client
from pulumi_hosting.provider.version import version
from pulumi_hosting.rehearsal.engines import Engine
from tests.support.deletions import Before
from tests.support.programs import Program


@dataclass(frozen=True)
class Option:
    """``code``: its value in a program, ``of_it`` that of an address, if it is another. ``forms``,
    ``engines``: where it can be given.
    """

    code: str
    of_it: str = ""
    forms: tuple[str, ...] = ("dynamic", "native")
    engines: tuple[str, ...] = ("offline", "pulumi")


NATIVE = ("native",)  # all dynamic resources have one provider, which is the SDK's own
OPTIONS = {
    "parent": Option("Box(NAME)"),
    "depends_on": Option("[base]"),
    "protect": Option("True"),
    "provider": Option("second", forms=NATIVE),
    "providers": Option("[second]", forms=NATIVE),
    "delete_before_replace": Option("True"),
    "ignore_changes": Option('["tariff_id"]', of_it='["order_attempt"]'),
    "version": Option(repr(version()), forms=NATIVE),
    "aliases": Option('[pulumi.Alias(name=f"{NAME}-before")]'),
    "additional_secret_outputs": Option('["mode"]'),
    "id": Option("EXISTING"),
    "import_": Option("IMPORTED", forms=NATIVE),
    "custom_timeouts": Option('pulumi.CustomTimeouts(create="7m", delete="7m")'),
    "transformations": Option("[changed_before]"),
    "transforms": Option("[changed]"),
    "hooks": Option("pulumi.ResourceHookBinding(before_create=[hook])", engines=("pulumi",)),
    "replace_on_changes": Option('["mode"]'),
    "replacement_trigger": Option("TRIGGER"),
    "plugin_download_url": Option('"https://plugins.example.com"', forms=NATIVE),
    "retain_on_delete": Option("True"),
    "deleted_with": Option("base"),
    "replace_with": Option("[base]"),
    "hide_diffs": Option('["tariff_id"]'),
}
LEFT_OUT = {
    "urn": "names a resource that the stack has already: nothing is declared",
    "env_var_mappings": "of providers alone",
    "state_migrations": "of a CLI that is told to try them",
}
SERVER_ONLY = {"id", "import_"}
"""Options that name an object of the account: one is enough."""
HEAD = """
import os

class Box(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("test:index:Box", name, {}, None)

more = pulumi.ResourceOptions(additional_secret_outputs=["mode"])

def changed_before(args):
    return pulumi.ResourceTransformationResult(args.props, pulumi.ResourceOptions.merge(args.opts, more))

def changed(args):
    return pulumi.ResourceTransformResult(args.props, pulumi.ResourceOptions.merge(args.opts, more))

def server(NAME, **options):
    return hosting.Server(NAME, tariff_id=TARIFF, os="debian-12", opts=pulumi.ResourceOptions(**options))

def address(NAME, web, **options):
    hosting.ServerIp(f"{NAME}-ip", server=web, opts=pulumi.ResourceOptions(**options))

EXISTING, IMPORTED = os.environ["EXISTING"], os.environ["IMPORTED"]
base = server("base", replacement_trigger=TRIGGER)
"""
OF_FORM = {
    "native": """
second = hosting.Provider(
    "second", api_key=os.environ["HOSTING_API_KEY"], base_url=os.environ["HOSTING_BASE_URL"]
)
""",
    "dynamic": "",
}
OF_ENGINE = {
    "pulumi": """
def seen(args):
    pass

hook = pulumi.ResourceHook("seen", seen)
""",
    "offline": "",
}


@dataclass
class Declared:
    """A program with a server for each option that has it and a plain address, ``<option>``, and a plain
    server whose address has it, ``of-<option>``.
    """

    program: Program
    engine: Engine
    options: dict[str, Option]
    existing: str
    by_hand: set[str]

    def write(self, tariff: int = 1, trigger: str = "first") -> None:
        lines = [
            f"TARIFF, TRIGGER = {tariff}, {trigger!r}",
            HEAD,
            OF_FORM[self.program.form],
            OF_ENGINE[self.engine.name],
        ]
        for name, option in self.options.items():
            given = f"{name}={option.code.replace('NAME', repr(name))}"
            lines.append(f"address({name!r}, server({name!r}, {given}))")
            if name not in SERVER_ONLY:
                code = (option.of_it or option.code).replace("NAME", repr(f"of-{name}"))
                lines.append(f"address('of-{name}', server('of-{name}'), {name}={code})")
        self.program.write("\n".join(lines))

    def servers(self) -> dict[str, str]:
        """Name in the program → id of the server in the state."""
        return {
            name: item["id"]
            for name, item in self.program.resources().items()
            if item["type"].endswith(":Server") and not item.get("external")
        }

    def not_refunded(self, ids: set[str]) -> dict[str, Decimal]:
        """Of servers that are gone: what was paid for them and their addresses, and not credited."""
        rows = [row for row in self.program.ledger() if row["type"] in ("payment", "refund")]
        paid = dict.fromkeys(ids, Decimal(0))
        for row in rows:
            if str(row["object_id"]) in paid:
                sign = 1 if row["direction"] == "debit" else -1
                paid[str(row["object_id"])] += sign * Decimal(row["amount"])
        return {id: amount for id, amount in paid.items() if amount}


@pytest.fixture
def declared(program: Program, engine: Engine) -> Declared:
    options = {
        name: option
        for name, option in OPTIONS.items()
        if program.form in option.forms and engine.name in option.engines
    }
    by_hand = {}
    with Client(program.stack.environ["HOSTING_API_KEY"], program.emulator.base_url) as client:
        for name in SERVER_ONLY & options.keys():
            client.servers.create(
                tariff_id=1, os="debian-12", name=name, idempotency_key=f"by-hand-{name}-0123456789"
            )
            (by_hand[name],) = [str(server["id"]) for server in program.living if server["name"] == name]
    program.stack.environ |= {"EXISTING": by_hand["id"], "IMPORTED": by_hand.get("import_", "")}
    program.stack.allow("ordered by hand", *by_hand.values())
    return Declared(program, engine, options, by_hand["id"], {*by_hand.values()})


def test_every_option_of_this_sdk_is_here() -> None:
    known = {*inspect.signature(pulumi.ResourceOptions.__init__).parameters} - {"self"}
    assert known == OPTIONS.keys() | LEFT_OUT.keys()


@pytest.mark.parametrize("leaving", ["destroy", pytest.param("removal", marks=[pytest.mark.slow])])
def test_what_leaves_is_deleted_or_kept_as_its_option_says(declared: Declared, leaving: str) -> None:
    program = declared.program
    declared.write()
    made = program.run(program.stack.up())
    ids = declared.servers()
    before = Before(program)
    kept = {"protect", "retain_on_delete", "of-protect"}  # a server stays for what is protected of it
    program.stack.allow("retain_on_delete", ids["retain_on_delete"])
    if leaving == "removal":
        program.write("")
    run = program.stack.destroy() if leaving == "destroy" else program.stack.up()
    assert run.exit_code != 0  # two are protected
    assert {*program.living_ids} == {ids[name] for name in kept} | {declared.existing}
    assert {*program.resources()} == {"protect", "of-protect", "of-protect-ip"}
    assert [row["server_id"] for row in bought(program)] == [int(ids["of-protect"])]
    # The address that is to be retained went with its server, as a warning said when it was made.
    assert "of-retain_on_delete-ip: retain_on_delete does not keep it" in made.output
    (false,) = before.false_claims(run)
    assert false.startswith("ServerIp of-retain_on_delete-ip")
    # Everything is refunded but what was released alone.
    assert "of-deleted_with-ip: deleted_with base is ignored" in made.output
    gone = {id for name, id in ids.items() if name not in kept}
    assert declared.not_refunded(gone) == {ids["of-deleted_with"]: Decimal("2.00")}


@pytest.mark.slow
def test_what_is_replaced_is_deleted_or_kept_as_its_option_says(declared: Declared) -> None:
    program = declared.program
    # Engines refuse the first two: of protect see below. With the last one Pulumi's CLI changes the provider
    # of all others in the second run.
    for name in ("protect", "import_", "plugin_download_url"):
        declared.options.pop(name, None)
    first_deleted = OPTIONS["delete_before_replace"]
    declared.options["delete_before_replace"] = replace(first_deleted, of_it="None")  # see below
    declared.write()
    program.run(program.stack.up())
    first = declared.servers()
    before = Before(program)
    program.stack.allow("retain_on_delete", first["retain_on_delete"])
    declared.write(tariff=2, trigger="second")
    run = program.run(program.stack.up("--refresh"))  # needed for what is replaced on demand: see below
    second = declared.servers()
    assert second.keys() == first.keys()
    assert {name for name in first if first[name] == second[name]} == {"ignore_changes"}
    living = {*second.values()} | {first["retain_on_delete"]}
    assert {*program.living_ids} - declared.by_hand == living
    # An address for each server of the state.
    with_address = {*second.values()} - {second["base"]} | {declared.existing}
    assert {str(row["server_id"]) for row in bought(program)} == with_address
    (false,) = before.false_claims(run)
    assert false.startswith("ServerIp of-retain_on_delete-ip")
    gone = {id for name, id in first.items() if id not in living}
    assert declared.not_refunded(gone) == {first["of-deleted_with"]: Decimal("2.00")}
    program.run(program.stack.up("--expect-no-changes"), {})


@pytest.mark.slow
@pytest.mark.parametrize("option", ["replacement_trigger", "replace_with"])
def test_a_replacement_on_demand_is_made_or_refused(declared: Declared, option: str) -> None:
    """The engine asks for no difference, so the creation does not know that it replaces."""
    program = declared.program
    declared.options = {option: OPTIONS[option]}
    declared.write()
    program.run(program.stack.up())
    first, before = declared.servers(), Before(program)
    declared.write(trigger="second")
    refused = program.stack.up()
    assert refused.exit_code != 0
    assert "was not replaced: without a refresh the creation found it and took it over" in refused.output
    assert before.false_claims(refused) == []
    assert declared.servers() == first


@pytest.mark.slow
def test_an_address_that_is_to_be_deleted_first_is_released_before_its_server(declared: Declared) -> None:
    program, name = declared.program, "delete_before_replace"
    # With the servers of a second option a deletion leaves at least five: between a quote and its order it must
    # not lower the volume discount.
    declared.options = {each: OPTIONS[each] for each in (name, "parent")}
    declared.write()
    program.run(program.stack.up())
    first, before = declared.servers(), Before(program)
    declared.write(tariff=2)
    with program.stack.unchecked("of what goes with a server the check expects a refund"):
        run = program.run(program.stack.up("--parallel", "1"))
    assert before.false_claims(run) == []
    assert f"of server {first[f'of-{name}']} released; nothing is refunded for it" in run.output
    assert declared.not_refunded({*first.values()}) == {first[f"of-{name}"]: Decimal("2.00")}
    assert {str(row["server_id"]) for row in bought(program)} == {
        id for each, id in declared.servers().items() if each != "base"
    }


@pytest.mark.slow
@pytest.mark.parametrize("protected", ["server", "address"])
def test_what_is_protected_is_not_replaced(program: Program, protected: str) -> None:
    given = {"server": "server('web', protect=True)", "address": "server('web')"}
    own = ", protect=True" if protected == "address" else ""
    text = f"{HEAD}\naddress('web', {given[protected]}{own})"
    program.stack.environ |= {"EXISTING": "", "IMPORTED": ""}
    program.write(f"TARIFF, TRIGGER = 1, 'first'\n{text}")
    program.run(program.stack.up())
    before = Before(program)
    program.write(f"TARIFF, TRIGGER = 2, 'first'\n{text}")
    refused = program.stack.up()
    assert refused.exit_code != 0
    assert "protection" in refused.output
    assert before.false_claims(refused) == []
    kept = [id for kind, id in before.recorded.values() if kind == "Server" and id in program.living_ids]
    assert len(kept) >= 1
    assert [row["id"] for row in bought(program)] == [
        int(id.rpartition("/")[2]) for kind, id in before.recorded.values() if kind == "ServerIp"
    ]


def bought(program: Program) -> list[dict[str, Any]]:
    return [row for row in program.objects("addresses") if row.get("bought")]
