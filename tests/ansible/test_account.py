"""The account check of the plays' fixture excuses only what a failed task names and what the test itself
put on the account.
"""

import json
from typing import Any

import pytest

from tests.ansible.conftest import Ansible
from tests.ansible.test_playbooks import order

FAILED = {
    "failure": {"code": "server_error"},
    "msg": "server 20001: the service failed",
    "invocation": {"module_args": {"name": "web-1"}},
}


def ended(ansible: Ansible, *made: str, result: dict[str, Any] | None = None) -> None:
    """A play that made these servers and reported this ``result`` of its one task."""
    process = ansible.start()
    order(ansible, *made)
    if result is not None:
        line = {
            "task": "t",
            "action": "hosting.cloud.server",
            "outcome": "failed",
            "check_mode": False,
            "result": result,
        }
        ansible.record.write_text(json.dumps(line) + "\n")
    ansible.finish(process)


@pytest.fixture
def played(ansible: Ansible) -> Ansible:
    ansible.program = ("true",)
    order(ansible, "before")
    ended(ansible)
    return ansible


def test_an_object_created_by_the_test_is_no_problem(played: Ansible) -> None:
    order(played, "between")
    ended(played)


def test_only_the_object_that_a_failed_task_names_is_no_problem(played: Ansible) -> None:
    ended(played, "web-1", result=FAILED)
    with pytest.raises(AssertionError, match=r"server \d+ \(other, .*\) is live and in no state") as raised:
        ended(played, "other", result=FAILED)
    assert "web-1" not in str(raised.value)


@pytest.mark.parametrize(
    "result",
    [None, {"ansible_job_id": "j1", "started": 1}, {**FAILED, "failure": {"code": "resource_conflict"}}],
)
def test_an_object_that_no_result_names_is_a_problem(played: Ansible, result: dict[str, Any] | None) -> None:
    with pytest.raises(AssertionError, match=r"\(web-1, .*\) is live and in no state"):
        ended(played, "web-1", result=result)


def test_an_object_of_a_killed_play_is_a_problem(played: Ansible) -> None:
    played.start().communicate()
    order(played, "web-1")
    with pytest.raises(AssertionError, match=r"\(web-1, .*\) is live and in no state"):
        ended(played)
