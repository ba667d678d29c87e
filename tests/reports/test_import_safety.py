"""What `pulumi-hosting import` wrote deletes nothing and orders nothing by mistake."""

from pathlib import Path

import pytest

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import Engine
from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.ansible.conftest import Ansible, ansible_environ
from tests.checked import checked
from tests.reports.conftest import Command, Owner
from tests.support.programs import install_plugin


def small_account(owner: Owner) -> None:
    """A server with a bought address, a domain that renews, and a key."""
    web = int(owner.order("web"))
    owner.client.servers.ips.add(web, idempotency_key="by-hand-address-0001")
    owner.client.domains.register(
        name="shop.com", years=1, auto_renew=True, idempotency_key="by-hand-domain-0001"
    )
    owner.add_key()


BOUGHT = ("servers", "addresses", "domains")


@pytest.mark.parametrize("form", ["dynamic", "native"])
def test_an_imported_stack_deletes_and_orders_nothing_by_mistake(
    form: str, engine: Engine, emulator: Running, owner: Owner, command: Command, tmp_path: Path
) -> None:
    small_account(owner)
    directory = tmp_path / "shop"
    assert command("import", directory, "--form", form).exit_code == 0
    environ = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url}
    if form == "native":
        environ |= install_plugin(tmp_path / "home")
    stack = checked(engine.stack(directory, tmp_path / "home", environ), Control(emulator.control_url))
    assert stack.up().exit_code == 0
    ledger, bought = owner.ledger(), {kind: owner.objects(kind) for kind in BOUGHT}
    program, imported = directory / "__main__.py", (directory / "__main__.py").read_text()

    program.write_text(imported + 'hosting.Server("db", tariff_id=1, os="debian-12")\n')
    refused = stack.up()
    assert refused.exit_code != 0
    assert "more than maxCharge 0.00; it is not ordered" in refused.output
    assert owner.ledger() == ledger

    program.write_text("import pulumi\n")
    refused = stack.up()
    assert refused.exit_code != 0
    assert "protect" in refused.output
    assert owner.ledger() == ledger
    assert {kind: owner.objects(kind) for kind in BOUGHT} == bought

    program.write_text(imported + 'hosting.Server("db", tariff_id=1, os="debian-12")\n')
    assert stack.run("config", "set", "hosting:maxCharge", "25.00").exit_code == 0
    assert stack.up().exit_code == 0
    assert sorted(server["name"] for server in owner.living) == ["db", "web"]


def test_an_imported_playbook_orders_nothing_by_mistake(
    emulator: Running, warm_python: WarmPython, owner: Owner, command: Command, tmp_path: Path
) -> None:
    owner.add_key()  # and nothing that was bought
    assert command("import", tmp_path / "shop", "--form", "ansible").exit_code == 0
    site = tmp_path / "shop" / "site.yml"
    task = "    - hosting.cloud.server: {name: db, tariff_id: 1, os: debian-12}\n"
    site.write_text(site.read_text() + task)
    environ = ansible_environ(emulator, tmp_path)
    ansible = Ansible(emulator, owner.client, tmp_path, environ, (str(warm_python.command),))
    played = ansible.finish(ansible.start_file(site), well=False)
    assert played.code == 2
    assert "it is not on the account; with " in played.output
    assert "more than max_charge 0.00" in played.output
    assert (owner.ledger(), owner.living) == ([], [])
