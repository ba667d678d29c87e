"""The policy pack of examples/policies: each rule as a function, and all of them on Pulumi's CLI."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import rules
from rules import Account, Declared, Owned, Tariff

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal import engines
from pulumi_hosting.rehearsal.warm_python import PYTHON
from tests.support.programs import FORMS, make_program

PACK = Path(__file__).parents[2] / "examples" / "policies"
SMALL = Tariff(1, "VDS-1", Decimal("5.00"), Decimal("2.00"))
LARGE = Tariff(2, "VDS-2", Decimal("10.00"), Decimal("3.00"))
ACCOUNT = Account((SMALL, LARGE), (Owned("shop-old", "a shop"), Owned("shop-web", ""), Owned("other", "")))
LABEL = "may be deleted"


def server(name: str = "shop-web", protect: bool = False, **props: Any) -> Declared:
    return Declared("Server", name, {"name": name, "tariffId": 1, **props}, protect)


def domain(**props: Any) -> Declared:
    return Declared("Domain", "shop.com", props)


ADDRESS = Declared("ServerIp", "mail", {})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (rules.most_per_month([server(), ADDRESS], ACCOUNT, Decimal("7.00")), []),
        (
            rules.most_per_month([server(), ADDRESS], ACCOUNT, Decimal("6.99")),
            ["the servers and addresses cost 7.00 a month, more than 6.99"],
        ),
        (rules.allowed_tariff(server(tariffId=None, tariff="VDS-2"), ACCOUNT, ["VDS-2"]), []),
        (rules.allowed_tariff(server(), ACCOUNT, ["VDS-2"]), ["tariff VDS-1 is not one of VDS-2"]),
        (rules.protected_server(server(protect=True), LABEL), []),
        (rules.protected_server(server(notes="a trial, may be deleted"), LABEL), []),
        (
            rules.protected_server(server(), LABEL),
            ["set protect=True, or write 'may be deleted' into its notes"],
        ),
        (rules.protected_server(domain(), LABEL), []),
        (rules.paid_time_covered(server()), []),
        (rules.paid_time_covered(server(autoRenew=False, keepPaid="7d")), []),
        (
            rules.paid_time_covered(server(autoRenew=False)),
            ["it ends when its paid time is over: set auto_renew=True or keep_paid"],
        ),
        (
            rules.paid_time_covered(domain()),
            ["it ends when its paid time is over: set auto_renew=True or keep_paid"],
        ),
        (rules.no_deletion_without_a_label([server(), server("shop-old")], ACCOUNT, "shop-", LABEL), []),
        (
            rules.no_deletion_without_a_label([server()], ACCOUNT, "shop-", LABEL),
            [
                "server shop-old is on the account and not in the program, so a run may delete it. "
                "Next: write 'may be deleted' into its notes and run up, then remove it"
            ],
        ),
    ],
)
def test_a_rule_names_what_violates_it(found: Iterator[str], expected: list[str]) -> None:
    assert [*found] == expected


def installed(folder: Path) -> Path:
    """The pack with its environment, which has another protobuf than that of the program."""
    pack = folder / "policies"
    shutil.copytree(PACK, pack, ignore=shutil.ignore_patterns("venv", "__pycache__"))
    uv, python = str(Path(PYTHON).parent / "uv"), str(pack / "venv" / "bin" / "python")
    subprocess.run([uv, "venv", "--quiet", "--python", PYTHON, pack / "venv"], check=True)
    needed: list[str | Path] = ["-r", pack / "requirements.txt", PACK.parents[1]]
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *needed], check=True)
    return pack


@pytest.mark.slow
@pytest.mark.program("pulumi")
@pytest.mark.parametrize("form", FORMS)
def test_the_pack_stops_a_run_of_pulumis_cli(
    form: str, warm: object, emulator: Running, tmp_path: Path
) -> None:
    program = make_program(engines.choose("pulumi"), emulator, tmp_path / "program", tmp_path / "home", form)
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "price-per-month": {"amount": "9.00"},
                "tariffs": {"names": ["VDS-1"]},
                "no-deletion-without-a-label": {"prefix": "shop-"},
            }
        )
    )
    with_policies = ("--policy-pack", str(installed(tmp_path)), "--policy-pack-config", str(config))
    refused = {
        "price-per-month": "cost 10.00 a month, more than 9.00",
        "tariffs": "tariff VDS-2 is not one of VDS-1",
        "protect-servers": "set protect=True",
        "paid-time-covered": "set auto_renew=True or keep_paid",
    }
    program.write("Server('web', name='shop-web', tariff_id=2, os='debian-12', auto_renew=False)\n")
    run = program.stack.run("up", "--yes", *with_policies)
    assert run.exit_code != 0, run.output
    for policy, sentence in refused.items():
        assert policy in run.output, run.output
        assert sentence in run.output, run.output
    assert program.living == []
    web = "Server('web', name='shop-web', tariff_id=1, os='debian-12', notes={!r})\n"
    program.write(web.format("kept"))
    program.run(program.stack.up())  # without the pack, which wants it protected
    (made,) = program.living
    program.write("")
    run = program.stack.run("preview", *with_policies)
    assert run.exit_code != 0, run.output
    assert "server shop-web is on the account and not in the program" in run.output
    assert [server["id"] for server in program.living] == [made["id"]]
    program.write(web.format("may be deleted"))
    program.run(program.stack.run("up", "--yes", *with_policies))
    program.write("")
    program.run(program.stack.run("up", "--yes", *with_policies))
    assert program.living == []
    assert [row["amount"] for row in program.ledger() if row["operation"] == "create_server"] == ["5.00"]
