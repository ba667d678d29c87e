"""The playbook of each resource's example: run, and run again, on an emulator."""

from pathlib import Path

import pytest

from pulumi_hosting.resources import RESOURCES
from tests.ansible.conftest import ROOT, Ansible
from tests.ansible.test_playbooks import KEY_LINE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", RESOURCES)
def test_a_playbook_makes_it_once(kind: str, ansible: Ansible) -> None:
    playbook = Path(ROOT, "examples", "resources", kind, "playbook.yml")
    given = ("--extra-vars", f"domain=shop-example.com public_key='{KEY_LINE}'")
    first = ansible.finish(ansible.start_file(playbook, given))
    again = ansible.finish(ansible.start_file(playbook, given))
    assert any(first.changed)
    assert not any(again.changed)
    assert first.results[-1]["msg"] not in (None, "")
