"""The collection's own integration targets, played as roles: the ladder every noun climbs, in both dialects."""

from pathlib import Path

import pytest
import yaml

from tests.ansible.conftest import COLLECTION, Ansible

TARGETS = sorted(path.name for path in (COLLECTION / "tests" / "integration" / "targets").iterdir())


def test_every_module_has_a_target() -> None:
    assert sorted(path.stem for path in (COLLECTION / "plugins" / "modules").glob("*.py")) == TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_target(ansible: Ansible, dialect: str, target: str, tmp_path: Path) -> None:
    playbook = tmp_path / "play.yml"
    variables = {
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "hosting_base_url": ansible.emulator.base_url,
        "hosting_api_key": ansible.emulator.live_key,
    }
    playbook.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "vars": variables, "roles": [target]}]))
    played = ansible.finish(ansible.start_file(playbook))
    assert any(played.changed), played.output
    assert ansible.servers() == []
    assert "Traceback" not in played.output
