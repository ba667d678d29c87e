"""``import --account-file`` and ``emulator --account``: a plan is tried on a copy of the account."""

from pathlib import Path

import pytest

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import Engine
from tests.checked import checked
from tests.reports.conftest import Command, Owner
from tests.reports.test_import import HOOK, Used
from tests.support.emulators import EmulatorPool


def test_a_copy_of_an_account_gives_the_same_file(
    emulator: Running, emulator_pool: EmulatorPool, command: Command, tmp_path: Path
) -> None:
    owner, first, second = Used(emulator, 1), tmp_path / "a.yaml", tmp_path / "b.yaml"
    asked = owner.control.requests()
    answer = command("import", "--account-file", first, key=owner.key)
    assert answer.exit_code == 0, answer.output
    assert f"{HOOK.partition('?')[0]}?…: what may be secret in it is left out" in answer.output
    assert {row["method"] for row in owner.control("GET", "/requests")[asked:]} == {"GET"}
    text = first.read_text("utf-8")
    assert not any(secret in text for secret in ("vk_", "whsec_", "cAnary", "demo@"))
    copy = Owner(emulator_pool.start(account=first))
    again = command("import", "--account-file", second, HOSTING_BASE_URL=copy.emulator.base_url)
    assert again.exit_code == 0, again.output
    assert second.read_text("utf-8") == text
    assert sorted(copy.living_ids) == sorted(owner.living_ids)
    assert command("import", "--account-file", first).exit_code == 2  # no file is overwritten
    assert command("import", tmp_path, "--account-file", second).exit_code == 2


@pytest.mark.daily
def test_a_program_has_nothing_to_change_on_a_copy_of_its_account(
    engine: Engine, emulator: Running, emulator_pool: EmulatorPool, command: Command, tmp_path: Path
) -> None:
    owner, directory, file = Owner(emulator), tmp_path / "shop", tmp_path / "account.yaml"
    server = int(owner.order("web"))
    owner.client.servers.ips.add(server, idempotency_key="by-hand-address-0001")
    owner.client.servers.ips.set_ptr(server, owner.objects("addresses")[0]["id"], domain="mail.example.com")
    owner.client.domains.register(name="shop.com", years=1, idempotency_key="by-hand-domain-0001")
    owner.client.webhooks.create(url="https://hooks.example.com/in", events=["*"])
    owner.add_key()
    assert command("import", directory).exit_code == 0
    environ = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url}
    stack = checked(engine.stack(directory, tmp_path / "home", environ), Control(emulator.control_url))
    assert stack.up().exit_code == 0
    assert command("import", "--account-file", file).exit_code == 0
    copy = Owner(emulator_pool.start(account=file))
    stack.environ["HOSTING_BASE_URL"] = copy.emulator.base_url
    preview = stack.preview("--refresh", "--expect-no-changes")
    assert preview.exit_code == 0, preview.output
    quotes = [one.client.servers.refund_quote(server) for one in (owner, copy)]
    assert quotes[0].refundable
    assert quotes[0].amount == quotes[1].amount
    copy.control("PATCH", f"/servers/{server}", {"name": "renamed"})
    assert stack.preview("--refresh", "--expect-no-changes").exit_code != 0
    assert copy.ledger() == []
