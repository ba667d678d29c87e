"""What a preview says before anything is sent: wrong input with its field, scopes, catalog, stock,
prices, the limit of a run.
"""

import re
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.api.casing import camel
from pulumi_hosting.client.client import Client
from tests.pulumi.test_every_resource import ALL, Declarations
from tests.support.programs import PUBLIC_KEY, Program, Ref, messages

SERVER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
CANARY = "cAnary7 not a valid password"

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("Server", {**SERVER, "tariff_id": 99}, "tariff_id: there is no tariff 99: choose one of 1 (VDS-1)"),
    ("Server", {**SERVER, "tariff_id": 4}, "tariff_id: tariff 4"),
    ("Server", {**SERVER, "os": "templeos"}, "os: there is no image 'templeos'"),
    (
        "Server",
        {**SERVER, "tariff_id": 5, "os": "windows-2022"},
        "os: image windows-2022 is not offered with tariff 5",
    ),
    (
        "Server",
        {**SERVER, "billing_cycle": "hourly"},
        "billing_cycle: tariff 1 (VDS-1) is not offered by the hour",
    ),
    ("Server", {**SERVER, "months": 2}, "months: must be one of 1, 3, 6, 12"),
    ("Server", {**SERVER, "password": CANARY}, "password: "),
    ("Domain", {"name": "example.nowhere"}, "name: no zone of this provider ends"),
    ("Domain", {"name": "example.de", "privacy": True}, "privacy: .de hides no owner's data"),
    ("Domain", {"name": "example.dev", "auth_code": CANARY}, "auth_code: transfers of .dev are not offered"),
    ("Domain", {"name": "example.com", "nameservers": ["ns1.example.net"]}, "nameservers: "),
    ("ServerIp", {"server_id": "4711"}, "server_id: there is no server 4711"),
    ("Ptr", {"server_id": "4711", "domain": "mail.example.com"}, "server_id: there is no server 4711"),
    (
        "Ptr",
        {"server_id": "1", "address": "300.1.1.1", "domain": "mail.example.com"},
        "address: must be an IPv4 or IPv6 address",
    ),
    ("WebhookSubscription", {"url": "http://example.com/", "events": ["*"]}, "url: must be an https:// URL"),
    (
        "WebhookSubscription",
        {"url": "https://example.com/", "events": ["thing.happened"]},
        "events: there is no event 'thing.happened'",
    ),
    ("SshKey", {"public_key": "-----BEGIN " + CANARY}, "public_key: must be one OpenSSH public key line"),
]


def spelled(program: Program, message: str) -> str:
    """Dynamic resources are Python's alone, and name a field as Python does; the plugin as its schema does."""
    field, rest = message.split(":", 1)
    return f"{camel(field)}:{rest}" if program.form == "native" else message


def test_wrong_input_is_refused_in_the_preview_by_its_field(program: Program) -> None:
    for kind in sorted({kind for kind, _, _ in WRONG}):
        # Which of several mistakes an engine reports is for it to say; that it reports one, and orders
        # nothing, is ours.
        mistakes = [(arguments, spelled(program, message)) for of, arguments, message in WRONG if of == kind]
        program.declare({f"it{number}": (kind, arguments) for number, (arguments, _) in enumerate(mistakes)})
        refused = program.stack.preview()
        assert refused.exit_code != 0
        assert any(message in refused.output for _, message in mistakes), refused.output
        assert CANARY not in refused.output
    assert program.ledger() == []
    assert all(entry["method"] == "GET" for entry in program.control("GET", "/requests"))


def test_what_exists_need_not_be_in_stock(program: Program) -> None:
    program.declare({"web": ("Server", SERVER)})
    program.run(program.stack.up())
    program.control("PATCH", "/tariffs/1", {"in_stock": False})
    program.run(program.stack.up("--expect-no-changes"))


def test_missing_scopes_are_named_before_anything_is_sent(program: Program) -> None:
    program.stack.environ["HOSTING_API_KEY"] = program.control(
        "POST", "/keys", {"mode": "live", "scopes": "read_only"}
    )["key"]
    program.declare(
        ALL
        | {
            "spare": ("ServerIp", {"server_id": "1"}),
            "rev": ("Ptr", {"server_id": "1", "domain": "a.example.com"}),
        }
    )
    refused = program.stack.preview()
    assert refused.exit_code != 0
    assert "the API key lacks" in refused.output
    assert re.search(r"Next: give it (that scope|these scopes), or use another key", refused.output)


def test_prices_are_shown_and_whether_the_balance_covers_them(program: Program) -> None:
    program.control("PATCH", "/account", {"balance": "12.00"})
    program.declare(
        {f"web-{n}".replace("-", "_"): ("Server", {**SERVER, "name": f"web-{n}"}) for n in range(3)}
    )
    looked = program.run(program.stack.preview())
    assert "will charge 5.00 EUR (VDS-1, 1 month)" in looked.output
    assert "run total 15.00 EUR, balance 12.00 EUR (insufficient). Next: top up 3.00 EUR" in looked.output
    program.declare(
        {
            "site": ("Domain", {"name": "example.com", "years": 2}),
            "web": ("Server", {**SERVER, "promo_code": "SAVE20"}),
        }
    )
    program.control("PATCH", "/account", {"balance": "1000.00"})
    looked = program.run(program.stack.preview())
    assert "(example.com, 2 years, no auto-renew)" in looked.output
    assert "will charge 4.00 EUR (VDS-1, 1 month)" in looked.output
    assert "balance 1000.00 EUR (sufficient)" in looked.output


def test_what_this_run_paid_already_is_not_counted_twice(program: Program) -> None:
    program.control("PATCH", "/account", {"balance": "18.00"})
    program.declare(
        {"site": ("Domain", {"name": "example.com"}), "web": ("Server", SERVER)},
        "",
    )
    done = program.run(program.stack.up())
    assert "Next: top up" not in done.output


def test_a_server_of_the_same_name_is_named_in_the_preview(program: Program) -> None:
    with Client(program.emulator.live_key, program.emulator.base_url) as client:
        client.servers.create(tariff_id=1, os="debian-12", name="web", months=1)
        client.domains.register(name="example.com", privacy=True)
    program.declare({"web": ("Server", SERVER), "site": ("Domain", {"name": "example.com"})})
    looked = program.run(program.stack.preview())
    assert (
        "web is already on the account (server 20001, ordered 0 min ago, 5.00 EUR, invoice 40001). If this "
    ) in looked.output
    assert "will charge" not in looked.output  # found again, or a stop
    assert (
        "example.com is already on the account (domain 70001, ordered 0 min ago, 12.00 EUR, invoice 40002)"
    ) in looked.output
    assert messages(looked).count("Next: set adopt_id") == 2


def test_more_than_the_run_may_charge_is_refused_before_anything_is_ordered(program: Program) -> None:
    declared: Declarations = {f"web{n}": ("Server", SERVER) for n in range(3)}
    program.declare(declared)
    program.run(program.stack.run("config", "set", "hosting:maxCharge", "12.50"))
    refused = program.stack.run("up", "--yes")
    assert refused.exit_code != 0
    assert "would charge 15.00 EUR, more than maxCharge 12.50" in refused.output
    assert program.ledger() == []
    program.declare({name: declared[name] for name in ("web0", "web1")})
    program.run(program.stack.run("up", "--yes"))
    program.run(program.stack.up("--expect-no-changes"))  # what is paid is paid: nothing more is charged
    program.declare(declared)
    program.run(program.stack.run("up", "--yes"))  # 5.00 in this run
    assert program.charges == 3
    assert sum(
        Decimal(str(row["amount"])) for row in program.ledger() if row["direction"] == "debit"
    ) == Decimal("15.00")


def test_what_is_shown_on_a_later_change_of_what_matters_when_ordering(program: Program) -> None:
    program.declare({"web": ("Server", {**SERVER, "months": 1})})
    program.run(program.stack.up())
    program.declare({"web": ("Server", {**SERVER, "months": 3, "promo_code": "SAVE20"})})
    looked = program.run(program.stack.preview(), {})
    assert "months is create-only; change ignored" in looked.output


def test_rebuild_decides_what_a_change_does(program: Program) -> None:
    program.declare({"web": ("Server", {**SERVER, "password": "Abcdefg1"})})
    program.run(program.stack.up())
    (before,) = program.living
    for change in ({"os": "ubuntu-24.04"}, {"password": "Zyxwvut9"}):
        desired = {**SERVER, "password": "Abcdefg1", **change}
        program.declare({"web": ("Server", {**desired, "rebuild": "forbid"})})
        refused = program.stack.preview()
        assert refused.exit_code != 0
        assert "rebuild is 'forbid': declare what it was" in refused.output
        assert "Zyxwvut9" not in refused.output
        program.declare({"web": ("Server", desired)})
        program.run(program.stack.preview(), {"replace": 1} if "os" in change else {})
        program.declare({"web": ("Server", {**desired, "rebuild": "replace"})})
        program.run(program.stack.preview(), {"replace": 1})
    desired = {**SERVER, "os": "ubuntu-24.04", "password": "Zyxwvut9", "rebuild": "reinstall"}
    program.declare({"web": ("Server", desired)})
    assert "ITS DISK IS ERASED" in program.run(program.stack.preview(), {"update": 1}).output
    done = program.run(program.stack.up(), {"update": 1})
    assert "its disk is erased" in done.output
    (after,) = program.living
    assert (after["id"], after["os"]) == (before["id"], "ubuntu-24.04")
    assert program.charges == 1
    program.run(program.stack.up("--expect-no-changes"), {})


def outside(program: Program) -> dict[str, dict[str, Any]]:
    """One object of each resource, made by hand: what names it for an import, and what adopts it."""
    with Client(program.emulator.live_key, program.emulator.base_url) as client:
        server = client.servers.create(tariff_id=1, os="debian-12", name="web", months=1).server  # type: ignore[union-attr]  # answered at once, with a 201
        base = str(server.id)
        key = client.ssh_keys.create(name="key", public_key=PUBLIC_KEY)
        site = client.domains.register(name="example-1.com", privacy=True)
        client.servers.ips.add(server.id)
        hook = client.webhooks.create(url="https://hooks.example.com/x", events=["*"])
        for _ in range(100):
            extra = [ip for ip in client.servers.ips.list(server.id) if not ip.primary and ip.version == 4]
            if extra:
                break
            program.control("POST", "/clock", {"advance": 10})
        primary = next(ip for ip in client.servers.ips.list(server.id) if ip.primary and ip.version == 4)
        client.servers.ips.set_ptr(server.id, primary.id, domain="mail.example.com")
    return {
        "web": {
            "id": base,
            "adopt": {"adopt_id": base},
            "declare": ("Server", {"tariff_id": 1, "os": "debian-12", "name": "web"}),
        },
        "key": {
            "id": str(key.id),
            "adopt": {"adopt_id": str(key.id)},
            "declare": ("SshKey", {"public_key": PUBLIC_KEY, "name": "key"}),
        },
        "site": {
            "id": str(site.domain_id),
            "adopt": {"adopt_id": str(site.domain_id)},
            "declare": ("Domain", {"name": "example-1.com", "privacy": True}),
        },
        "spare": {
            "id": f"{base}/{extra[0].address}",
            "adopt": {"adopt_id": str(extra[0].id)},
            "declare": ("ServerIp", {"server_id": base}),
        },
        "rev": {
            "id": f"{base}/{primary.id}",
            "adopt": {},
            "declare": ("Ptr", {"server_id": base, "domain": "mail.example.com"}),
        },
        "hook": {
            "id": str(hook.id),
            "adopt": {"adopt_id": str(hook.id)},
            "declare": ("WebhookSubscription", {"url": "https://hooks.example.com/x", "events": ["*"]}),
        },
    }


@pytest.mark.daily
@pytest.mark.emulator(clock="manual")
def test_what_exists_is_imported_or_adopted_and_then_nothing_differs(program: Program, dialect: str) -> None:
    found = outside(program)
    addresses = [address["id"] for address in program.objects("addresses")]
    program.stack.allow(
        "there before, and imported one after the other", *(made["id"] for made in found.values()), *addresses
    )
    paid = program.charges
    if program.form == "native":
        for name, made in found.items():
            kind = made["declare"][0]
            done = program.stack.run(
                "import",
                f"hosting:index:{kind}",
                name,
                made["id"],
                "--yes",
                "--protect=false",
                "--generate-code=false",
            )
            assert done.exit_code == 0, done.output
        program.declare({name: made["declare"] for name, made in found.items()})
    else:
        adopted = {
            name: (made["declare"][0], {**made["declare"][1], **made["adopt"]})
            for name, made in found.items()
        }
        program.declare(adopted)
        program.run(program.stack.up(), {"create": len(found) + 1})
    program.run(program.stack.preview("--expect-no-changes"))
    program.run(program.stack.up())
    program.run(program.stack.up("--expect-no-changes"), {})
    assert program.charges == paid
    assert len(program.resources()) == len(found)


@pytest.mark.both_providers
def test_importing_what_is_not_there_says_so(program: Program) -> None:
    if program.form != "native":
        program.declare({"web": ("Server", {**SERVER, "adopt_id": "4711"})})
        refused = program.stack.preview()
        assert refused.exit_code != 0
        assert "adopt_id: no active server 4711" in refused.output
    else:
        for kind, id in (
            ("Server", "4711"),
            ("Domain", "example-9.com"),
            ("ServerIp", "4711/198.18.0.1"),
            ("Ptr", "4711/1"),
            ("SshKey", "9"),
        ):
            refused = program.stack.run(
                "import",
                f"hosting:index:{kind}",
                "it",
                id,
                "--yes",
                "--protect=false",
                "--generate-code=false",
            )
            assert refused.exit_code != 0
            assert "there is no" in refused.output
    assert program.ledger() == []


def test_an_unknown_value_passes_the_check(program: Program) -> None:
    program.declare(
        {
            "base": ("Server", SERVER),
            "spare": ("ServerIp", {"server_id": Ref("base.id")}),
            "rev": (
                "Ptr",
                {"server_id": Ref("base.id"), "address": Ref("spare.address"), "domain": "mail.example.com"},
            ),
        },
        'pulumi.export("address", rev.address)',
    )
    program.run(program.stack.preview(), {"create": 4})
    program.run(program.stack.up(), {"create": 4})
    (address,) = [address for address in program.objects("addresses") if address["bought"]]
    assert program.stack.outputs()["address"] == address["address"]
    assert address["ptr"] == "mail.example.com"


@pytest.mark.both_providers
def test_a_tariff_is_given_by_name_and_stays_what_it_was(program: Program) -> None:
    """The catalog drops the tariff afterwards: no difference, with a refresh and without."""
    program.declare(
        {"web": ("Server", {"tariff": "VDS-1", "os": "debian-12"})}, 'pulumi.export("id", web.tariff_id)'
    )
    program.run(program.stack.preview(), {"create": 2})
    program.run(program.stack.up(), {"create": 2})
    program.control("PATCH", "/tariffs/1", {"disabled": True})
    program.run(program.stack.up(), {})
    program.run(program.stack.up("--refresh"), {})
    program.run(program.stack.preview("--refresh"), {})
    assert [server["tariff_id"] for server in program.living] == [1]
    assert program.charges == 1
