"""Lookups in dynamic and native programs, on every engine."""

import pytest

from tests.support.programs import Program


def test_answers_are_typed_lifted_and_exported(program: Program) -> None:
    program.write("""
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
    ran = program.stack.up()
    assert ran.exit_code == 0, ran.output
    outputs = program.stack.outputs()
    assert outputs["same"] is True
    assert outputs["id"] is True
    assert outputs["tariff"] == {"id": 1, "name": "VDS-1"}
    assert (outputs["number"], outputs["price"]) == (1, "5.00")
    assert "com" in [ending.lstrip(".") for ending in outputs["endings"]]
    again = program.stack.up("--expect-no-changes")
    assert again.exit_code == 0, again.output


def test_what_is_asked_after_what_is_not_made_yet_is_unknown_in_the_preview(program: Program) -> None:
    program.write("""
        web = hosting.Server("web", tariff_id=1, os="debian-12")
        pulumi.export("power", hosting.get_server_status_output(web.id).power)
    """)
    before = len(program.control("GET", "/requests"))
    seen = program.stack.preview()
    assert seen.exit_code == 0, seen.output
    assert not [
        row for row in program.control("GET", "/requests")[before:] if row["path"].endswith("/status")
    ]


@pytest.mark.parametrize(
    "asked", ['hosting.get_server("4242")', 'pulumi.export("x", hosting.get_server_output("4242"))']
)
def test_what_is_not_there_ends_the_run_with_one_line(program: Program, asked: str) -> None:
    program.write(asked)
    failed = program.stack.up()
    assert failed.exit_code != 0
    assert "not_found" in failed.output
    assert "Next:" in failed.output
    # what a plugin refuses later, Pulumi's SDK raises with a traceback of its own
    if program.form == "dynamic" or "_output" not in asked:
        assert "Traceback" not in failed.output


def test_an_argument_is_refused_by_its_name_and_value(program: Program) -> None:
    program.write('hosting.get_servers(status="asleep")')
    failed = program.stack.preview()
    assert failed.exit_code != 0
    assert "status: " in failed.output
    assert "given asleep" in failed.output


def test_another_account_is_asked_by_its_provider(native: Program) -> None:
    other = native.control("POST", "/accounts", {})
    native.write(f"""
        second = hosting.Provider("second", api_key="{other["live_key"]}", base_url="{native.emulator.base_url}")
        opts = pulumi.InvokeOptions(provider=second)
        pulumi.export("first", hosting.get_me().account_id)
        pulumi.export("second", hosting.get_me_output(opts=opts).account_id)
    """)
    ran = native.stack.up()
    assert ran.exit_code == 0, ran.output
    outputs = native.stack.outputs()
    assert outputs["second"] == str(other["account_id"]) != outputs["first"]
