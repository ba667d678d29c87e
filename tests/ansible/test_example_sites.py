"""The examples of several servers do what they say, in Pulumi, in Ansible and in both, and print what the
``expected.txt`` beside each has.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import OFFLINE, Run, choose
from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.ansible.conftest import BIN, ROOT, Ansible
from tests.checked import CheckedStack, checked
from tests.support.programs import PUBLIC_KEY
from tests.support.transcripts import Transcript

pytestmark = [pytest.mark.slow, pytest.mark.emulator(seed=3)]

EXAMPLES = ROOT / "examples"
THREE_TIER, BOTH = EXAMPLES / "three-tier", EXAMPLES / "provision-and-configure"
DOMAIN = "shop-example.com"
CONFIG = {"domain": DOMAIN, "publicKey": PUBLIC_KEY}
TIERS = {"balancer": "1", "app-1": "2", "app-2": "2", "database": "2"}
"""Each server with its tariff."""

Begin = Callable[[Path], CheckedStack]


@pytest.fixture
def begin(emulator: Running, warm: WarmPython, tmp_path: Path) -> Begin:
    """Starts the stack of an example's program on the offline engine."""

    def started(example: Path) -> CheckedStack:
        kept = shutil.ignore_patterns("__pycache__", "Pulumi.*.yaml")
        program = Path(shutil.copytree(example, tmp_path / "program", ignore=kept))
        account = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url}
        engine_home = tmp_path / "engine"
        stack = checked(choose(OFFLINE).stack(program, engine_home, account), Control(emulator.control_url))
        for name, value in CONFIG.items():
            done(stack.run("config", "set", name, value))
        return stack

    return started


def done(run: Run) -> Run:
    assert run.exit_code == 0, run.output
    return run


def copied(ansible: Ansible, example: Path) -> Path:
    """The example's playbooks in the home of the test, so that what they write is there too."""
    return Path(shutil.copytree(example, ansible.home / example.name))


def played(ansible: Ansible, playbook: Path, *arguments: str) -> str:
    return ansible.finish(ansible.start_file(playbook, arguments)).output


def site(control: Callable[..., Any]) -> dict[str, Any]:
    """What the account holds of the site in three tiers."""
    held = control("GET", "/objects")
    return {
        "servers": {row["name"]: str(row["tariff_id"]) for row in held["servers"]},
        "ssh_keys": [row["name"] for row in held["ssh_keys"]],
        "names": sorted(row["ptr"] for row in held["addresses"] if row["ptr"]),
        "bought": [row["price_monthly"] for row in held["addresses"] if row["bought"]],
        "domains": [(row["name"], row["privacy"], row["auto_renew"]) for row in held["domains"]],
        "subscriptions": [(row["url"], sorted(row["events"])) for row in held["subscriptions"]],
    }


SITE = {
    "servers": TIERS,
    "ssh_keys": ["deploy"],
    "names": [f"mail.{DOMAIN}", f"www.{DOMAIN}"],
    "bought": ["2.00"],
    "domains": [(DOMAIN, True, True)],
    "subscriptions": [(f"https://hooks.{DOMAIN}/hosting", ["balance.low", "server.suspended"])],
}
REMOVED = {kind: type(held)() for kind, held in SITE.items()} | {"domains": [(DOMAIN, True, False)]}


def paid(control: Callable[..., Any]) -> list[str]:
    """What each payment was, in the order of the amounts."""
    return sorted(row["amount"] for row in control("GET", "/ledger") if row["type"] == "payment")


PAID = sorted(["5.00", "10.00", "10.00", "10.00", "2.00", "12.00"])


def test_three_tiers_in_pulumi(begin: Begin, emulator: Running) -> None:
    stack, control, transcript = begin(THREE_TIER / "pulumi"), Control(emulator.control_url), Transcript()
    transcript.add("pulumi preview", done(stack.preview()).output)
    assert paid(control) == []
    made = done(stack.up())
    assert made.changed == {"create": 11}  # ten objects and the stack
    transcript.add("pulumi up --yes", made.output)
    assert (site(control), paid(control)) == (SITE, PAID)
    transcript.know_addresses(control("GET", "/objects"))
    transcript.add("pulumi up --yes --expect-no-changes", done(stack.up("--expect-no-changes")).output)
    transcript.add("pulumi destroy --yes", done(stack.destroy()).output)
    assert (site(control), paid(control)) == (REMOVED, PAID)
    transcript.assert_expected(THREE_TIER / "pulumi" / "expected.txt")


def test_three_tiers_in_ansible(ansible: Ansible) -> None:
    folder, transcript = copied(ansible, THREE_TIER / "ansible"), Transcript()
    options = ("-e", f"domain={DOMAIN}", "-e", f"public_key='{PUBLIC_KEY}'")
    site_yml = folder / "site.yml"
    transcript.add("ansible-playbook site.yml --check", played(ansible, site_yml, *options, "--check"))
    assert paid(ansible.control) == []
    transcript.add("ansible-playbook site.yml", played(ansible, site_yml, *options))
    assert (site(ansible.control), paid(ansible.control)) == (SITE, PAID)
    transcript.know_addresses(ansible.control("GET", "/objects"))
    again = played(ansible, site_yml, *options)
    assert "changed=0" in again
    transcript.add("ansible-playbook site.yml", again.partition("PLAY RECAP")[2].partition("\n")[2])
    transcript.add("ansible-playbook remove.yml", played(ansible, folder / "remove.yml", *options))
    assert (site(ansible.control), paid(ansible.control)) == (REMOVED, PAID)
    transcript.assert_expected(THREE_TIER / "ansible" / "expected.txt")


def test_pulumi_provisions_and_ansible_configures(begin: Begin, ansible: Ansible) -> None:
    stack, transcript = begin(BOTH / "program"), Transcript()
    transcript.add("pulumi up --yes", done(stack.up()).output)
    transcript.know_addresses(ansible.control("GET", "/objects"))
    folder = copied(ansible, BOTH)
    inventory = ("-i", str(folder / "machines.hosting.yml"))
    graph = subprocess.run(
        [*ansible.python, str(BIN / "ansible-inventory"), *inventory, "--graph"],
        env=ansible.environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    transcript.add("ansible-inventory -i machines.hosting.yml --graph", graph.stdout)
    play = (*inventory, "--forks", "1")
    transcript.add(
        "ansible-playbook -i machines.hosting.yml configure.yml",
        played(ansible, folder / "configure.yml", *play),
    )
    for file in sorted((folder / "build").glob("*/*")):
        transcript.add(f"cat {file.relative_to(folder)}", file.read_text(encoding="utf-8"))
    assert "changed=0" in played(ansible, folder / "configure.yml", *play)
    assert site(ansible.control)["servers"] == TIERS
    assert paid(ansible.control) == sorted(["5.00", "10.00", "10.00", "10.00"])
    transcript.add("pulumi destroy --yes", done(stack.destroy()).output)
    assert site(ansible.control)["servers"] == {}
    assert ansible.objects("ssh_keys") == []
    transcript.assert_expected(BOTH / "expected.txt")
