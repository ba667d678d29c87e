"""The modules' own examples are tasks to copy: all are run, as printed, against an emulator whose account
holds what they speak of.
"""

import json
import os
import subprocess
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.ansible.conftest import BIN, ROOT, Ansible, Played
from tests.ansible.test_playbooks import KEY_LINE
from tests.ansible.test_specs import MODULES, module

pytestmark = pytest.mark.slow

# Before an invoice is paid there is one to ask a link for.
LIMITED = ("invoice_payment_link", "server_renew", "domain_transfer", "invoice_pay")


def play_of(name: str) -> str:
    """A play with the tasks that a module's documentation shows."""
    tasks = textwrap.indent(module(name).EXAMPLES.strip(), " " * 4)
    return f"- name: Examples of {name}\n  hosts: localhost\n  gather_facts: false\n  tasks:\n{tasks}\n"


def test_examples_run(ansible: Ansible, tmp_path: Path) -> None:
    (ansible.home / ".ssh").mkdir()
    (ansible.home / ".ssh" / "id_ed25519.pub").write_text(KEY_LINE + "\n")
    patient = ansible.control(
        "POST", "/keys", {"mode": "live", "rate_per_minute": 10_000, "rate_expensive_per_minute": 10_000}
    )["key"]
    ansible.control("POST", "/invoices", {"type": "other", "amount": "3.00"})
    ansible.client.domains.register(name="example-blog.com", years=1, privacy=True)
    ansible.client.servers.create(tariff_id=1, os="debian-12", name="web-1")
    variables = tmp_path / "vault.json"
    campaign_end = (datetime.now(UTC) + timedelta(days=40)).date().isoformat()
    variables.write_text(json.dumps({"campaign_end": campaign_end}))
    playbooks = {}
    for name in MODULES:
        playbooks[name] = tmp_path / f"{name}.yml"
        playbooks[name].write_text(f"---\n{play_of(name)}")

    def play(*names: str) -> Played:
        arguments = (*(str(playbooks[name]) for name in names[1:]), "--extra-vars", f"@{variables}")
        return ansible.finish(
            ansible.start_file(playbooks[names[0]], arguments, {"HOSTING_API_KEY": patient})
        )

    # What limits the charges of its run comes first, and last, alone, what ends without the server that the
    # others speak of.
    others = [name for name in MODULES if name not in (*LIMITED, "server")]
    runs = [play(*LIMITED, *others), play("server")]
    lines = [line for played in runs for line in played.lines]
    # Revoking the key is the one example that waits to be told; its target shows that it works.
    assert {f"hosting.cloud.{name}" for name in MODULES} - {line["action"] for line in lines} == {
        "hosting.cloud.api_key_revoke"
    }
    assert {line["outcome"] for line in lines} == {"ok"}
    password = (tmp_path / "credentials" / "db-1").read_text().strip()
    assert len(password) == 24
    once = [ansible.home / name for name in ("webhook-secret", "web-1.password")]
    assert [oct(file.stat().st_mode & 0o777) for file in once] == ["0o600"] * 2
    secrets = [password, patient, *(file.read_text().strip() for file in once)]
    assert [secret for secret in secrets for played in runs if secret in played.output] == []
    assert [row["name"] for row in ansible.living] == ["worker-1", "db-1", "app-1", "shop-1"]


def test_ansible_lint_accepts_the_examples(tmp_path: Path) -> None:
    """With its strictest profile, where warnings count too. All in one playbook: each is loaded by an
    ansible-playbook of its own.
    """
    playbook = tmp_path / "playbook.yml"
    playbook.write_text("---\n" + "\n".join(map(play_of, MODULES)))
    environ = {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT),
    }
    command = [
        str(BIN / "ansible-lint"),
        "--offline",
        "--strict",
        "--nocolor",
        "--profile",
        "production",
        str(playbook),
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**environ, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
