"""The key of a playbook and of an inventory from a command in the environment of Ansible."""

import shlex
import sys
from pathlib import Path

import pytest
from ansible.errors import AnsibleParserError

from pulumi_hosting.client import settings
from tests.ansible.conftest import Ansible
from tests.ansible.local_inventory import LocalInventory
from tests.ansible.test_secrets import assert_unseen
from tests.support.account import Account


@pytest.mark.daily
def test_a_playbook_asks_the_command_once_for_all_tasks(ansible: Ansible, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    key = ansible.environ.pop("HOSTING_API_KEY")
    path = tmp_path / "key"
    path.write_text(key, encoding="utf-8")
    path.chmod(0o600)
    code = f"open({str(runs)!r}, 'a').write('run '); print(open({str(path)!r}).read())"
    command = f"{sys.executable} -c {shlex.quote(code)}"
    new = {"public_key": "{{ lookup('ansible.builtin.file', 'key.pub') }}"}
    (ansible.home / "key.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINbrlH1BNqaB8XZnd4zfF5vPfQO8jwxZIvLNvGYEbRmx t"
    )
    played = ansible.play(
        {"name": "add", "hosting.cloud.ssh_key": {"name": "deploy", **new}},
        {"name": "look", "hosting.cloud.ssh_key_info": {}},
        {
            "name": "from the playbook",
            "hosting.cloud.me_info": {},
            "environment": {"HOSTING_API_KEY_COMMAND": f"touch {tmp_path / 'touched'}"},
            "ignore_errors": True,
        },
        arguments=("-vvvv",),
        environ={"HOSTING_API_KEY_COMMAND": command},
    )
    assert [line["outcome"] for line in played.lines] == ["ok", "ok", "failed"]
    assert runs.read_text(encoding="utf-8") == "run "
    assert "HOSTING_API_KEY_COMMAND is in the environment of the task" in played.lines[2]["result"]["msg"]
    assert not (tmp_path / "touched").exists()
    assert [key["name"] for key in ansible.control("GET", "/objects")["ssh_keys"]] == ["deploy"]
    assert_unseen(ansible, played, {"API key": key})


def test_an_inventory_reads_the_file_and_names_what_is_wrong_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = Account()
    inventory = LocalInventory(emulator, tmp_path, monkeypatch)
    inventory.order("web-1")
    other = emulator.control("POST", "/accounts", {})
    path = tmp_path / "key"
    path.write_text(emulator.live_key, encoding="utf-8")
    path.chmod(0o600)
    monkeypatch.delenv("HOSTING_API_KEY")
    monkeypatch.setenv("HOSTING_API_KEY_FILE", str(path))
    cached = {
        "cache": True,
        "cache_plugin": "jsonfile",
        "cache_connection": str(tmp_path / "c"),
    }
    assert [*inventory.listed(cached).hosts] == ["web-1"]
    path.write_text(other["live_key"], encoding="utf-8")
    assert [*inventory.listed(cached).hosts] == []  # not the servers of the key that was in the file before
    path.chmod(0o644)
    with pytest.raises(AnsibleParserError, match=f"Next: chmod 600 {path}"):
        inventory.listed({})


def test_an_inventory_file_cannot_name_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inventory = LocalInventory(Account(), tmp_path, monkeypatch)
    monkeypatch.delenv("HOSTING_API_KEY")
    marker = tmp_path / "touched"
    for option in ("api_key_command", "api_key"):
        with pytest.raises(AnsibleParserError):
            inventory.listed({option: f"touch {marker}"})
    assert not marker.exists()
    assert settings._key_of_command.cache_info().currsize == 0
