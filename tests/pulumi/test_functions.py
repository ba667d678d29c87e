"""Lookups in programs of both forms, on every engine."""

import os
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.provider.plugin_install import install
from pulumi_hosting.rehearsal.engines import PULUMI, Engine
from tests.pulumi.conftest import Program, make_program

FORMS = {"one": "pulumi_hosting", "two": "pulumi_hosting.native"}


@dataclass
class Asking(Program):
    """A program that knows one form as ``hosting``."""

    form: str = "one"

    def write(self, body: str) -> None:
        text = f"import pulumi\nimport {FORMS[self.form]} as hosting\n\n{textwrap.dedent(body)}"
        (self.directory / "__main__.py").write_text(text, encoding="utf-8")


@pytest.fixture(params=FORMS)
def asking(request: pytest.FixtureRequest, engine: Engine, emulator: Any, tmp_path: Path) -> Asking:
    """Where the engine looks, there is the plugin."""
    home = tmp_path / "home"
    place = install(environ={"PULUMI_HOME": str(home / "pulumi"), "PATH": ""})
    search = {} if engine.name == PULUMI else {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
    made = make_program(engine, emulator, tmp_path / "program", home, **search)
    return Asking(made.directory, made.stack, made.emulator, made.control, request.param)


def test_answers_are_typed_lifted_and_exported(asking: Asking) -> None:
    asking.write("""
        web = hosting.Server("web", tariff_id=1, os="debian-12")
        shown = hosting.get_server_output(web.id)
        tariff = hosting.get_tariff(1)
        pulumi.export("same", pulumi.Output.all(web.ip, shown.primary_ip).apply(lambda both: both[0] == both[1]))
        pulumi.export("id", pulumi.Output.all(web.id, shown.id).apply(lambda both: both[0] == both[1]))
        pulumi.export("price", tariff.price_monthly)
        pulumi.export("tariff", shown.tariff)
        pulumi.export("number", shown.tariff.id)
        pulumi.export("endings", [zone.tld for zone in hosting.get_zones()])
    """)
    ran = asking.stack.up()
    assert ran.exit_code == 0, ran.output
    outputs = asking.stack.outputs()
    assert outputs["same"] is True
    assert outputs["id"] is True
    assert outputs["tariff"] == {"id": 1, "name": "VDS-1"}
    assert (outputs["number"], outputs["price"]) == (1, "5.00")
    assert "com" in [ending.lstrip(".") for ending in outputs["endings"]]
    again = asking.stack.up("--expect-no-changes")
    assert again.exit_code == 0, again.output


def test_what_is_asked_after_what_is_not_made_yet_is_unknown_in_the_preview(asking: Asking) -> None:
    asking.write("""
        web = hosting.Server("web", tariff_id=1, os="debian-12")
        pulumi.export("power", hosting.get_server_status_output(web.id).power)
    """)
    before = len(asking.control("GET", "/requests"))
    seen = asking.stack.preview()
    assert seen.exit_code == 0, seen.output
    assert not [row for row in asking.control("GET", "/requests")[before:] if row["path"].endswith("/status")]


@pytest.mark.parametrize("asked", ['hosting.get_server("4242")', 'pulumi.export("x", hosting.get_server_output("4242"))'])
def test_what_is_not_there_ends_the_run_with_one_line(asking: Asking, asked: str) -> None:
    asking.write(asked)
    failed = asking.stack.up()
    assert failed.exit_code != 0
    assert "not_found" in failed.output
    assert "Next:" in failed.output
    if asking.form == "one" or "_output" not in asked:  # what a plugin refuses later, Pulumi's SDK raises with a traceback of its own
        assert "Traceback" not in failed.output


def test_an_argument_is_refused_by_its_name(asking: Asking) -> None:
    asking.write('hosting.get_servers(status="asleep")')
    failed = asking.stack.preview()
    assert failed.exit_code != 0
    assert "status: " in failed.output
    assert "asleep" not in failed.output


@pytest.mark.parametrize("asking", ["two"], indirect=True)
def test_another_account_is_asked_by_its_provider(asking: Asking) -> None:
    other = asking.control("POST", "/accounts", {})
    asking.write(f"""
        second = hosting.Provider("second", api_key="{other["live_key"]}", base_url="{asking.emulator.base_url}")
        opts = pulumi.InvokeOptions(provider=second)
        pulumi.export("first", hosting.get_me().account_id)
        pulumi.export("second", hosting.get_me_output(opts=opts).account_id)
    """)
    ran = asking.stack.up()
    assert ran.exit_code == 0, ran.output
    outputs = asking.stack.outputs()
    assert outputs["second"] == str(other["account_id"]) != outputs["first"]
