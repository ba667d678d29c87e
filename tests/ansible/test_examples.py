"""The modules' own examples are programs: all are run, as printed, against an emulator."""

from pathlib import Path

from tests.ansible.conftest import Ansible
from tests.ansible.test_playbooks import KEY_LINE
from tests.ansible.test_specs import MODULES, module


def test_examples_run(ansible: Ansible, tmp_path: Path) -> None:
    (ansible.home / ".ssh").mkdir()
    (ansible.home / ".ssh" / "id_ed25519.pub").write_text(KEY_LINE + "\n")
    playbooks = []
    for name in MODULES:
        playbooks.append(tmp_path / f"{name}.yml")
        playbooks[-1].write_text(module(name).EXAMPLES.replace("https://api.example.com/v1", ansible.emulator.base_url))
    variables = tmp_path / "vault.json"
    variables.write_text(f'{{"vault_hosting_api_key": "{ansible.emulator.live_key}"}}')
    first, *others = playbooks
    played = ansible.finish(ansible.start_file(first, (*map(str, others), "--extra-vars", f"@{variables}")))
    assert {f"hosting.cloud.{name}" for name in MODULES} <= {line["action"] for line in played.lines}
    password = (tmp_path / "credentials" / "db-1").read_text().strip()
    assert len(password) == 24
    assert password not in played.output
    assert [row["name"] for row in ansible.servers()] == ["db-1"]
