"""Resources that are deleted with another, replaced on demand, and looked at before every operation: what the provider is asked."""

import subprocess
import sys

import pytest

from tests.offline.conftest import Playground, write
from tests.offline.replay import Toys

WITH = """
a = Thing("a", {{"name": "a", "size": "{}"}})
b = Thing("b", {{"name": "b"}}, pulumi.ResourceOptions(deleted_with=a))
c = Thing("c", {{"name": "c", "note": a.id}}, pulumi.ResourceOptions(deleted_with=a))
"""


def forget(toys: Toys) -> None:
    (toys.service / "calls.jsonl").unlink(missing_ok=True)


def asked(toys: Toys, method: str) -> list[str]:
    return sorted(str(call.get("id")) for call in toys.calls() if call["method"] == method)


@pytest.fixture
def together(playground: Playground) -> Toys:
    toys = playground(WITH.format("s"), form="native")
    assert toys.stack().up().exit_code == 0
    forget(toys)
    return toys


def test_who_is_deleted_with_another_is_not_asked_for(together: Toys) -> None:
    result = together.stack().destroy()
    assert (result.exit_code, result.changes) == (0, {"delete": 4})
    assert asked(together, "Delete") == ["a#1"]


def test_removed_from_the_program_together_or_alone(together: Toys) -> None:
    write(together, WITH.format("s").replace("c = Thing", "#"))
    assert together.stack().up().changes == {"delete": 1, "same": 3}
    assert asked(together, "Delete") == ["c#1"]  # alone: nobody else takes it along
    forget(together)
    write(together, "")
    assert together.stack().up().changes["delete"] >= 2
    assert asked(together, "Delete") == ["a#1"]


def test_replaced_after_the_new_one_is_made(together: Toys) -> None:
    write(together, WITH.format("L"))
    result = together.stack().up()
    assert (result.exit_code, result.changes.get("replace")) == (0, 3)
    assert asked(together, "Delete") == ["a#1"]
    assert {"a#2", "b#2", "c#2"} <= set(together.world())


def test_what_a_failed_deletion_leaves(together: Toys) -> None:
    """Who is deleted with it has left the state already, as in Pulumi; the next run is asked for it anew."""
    (together.service / "faults.json").write_text('{"delete:a#1": "raise"}')
    assert together.stack().destroy().exit_code == 1
    assert [item["name"] for item in together.state()["resources"] if item["name"] in "abc"] == ["a"]
    (together.service / "faults.json").write_text("{}")
    forget(together)
    assert together.stack().up().changes["create"] == 2
    assert together.stack().destroy().exit_code == 0
    assert asked(together, "Delete") == ["a#1"]


@pytest.mark.parametrize("flag", ["--replace", "--target-replace"])
def test_what_is_replaced_on_demand_is_checked_as_new_and_not_compared(playground: Playground, flag: str) -> None:
    toys = playground('Thing("a", {"name": "a"})\nThing("b", {"name": "b"})', form="native")
    assert toys.stack().up().exit_code == 0
    (urn,) = [item["urn"] for item in toys.stack().export()["deployment"]["resources"] if item.get("id") == "a#1"]
    forget(toys)
    command = [sys.executable, "-m", "pulumi_hosting.cli", "offline", "up", "--yes", "--skip-preview", "--stack", "dev", flag, urn]
    done = subprocess.run(command, cwd=toys.project, env=toys.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    calls = [call for call in toys.calls() if call.get("name") == "a"]
    assert [call["method"] for call in calls] == ["Check", "Create", "Delete"]
    assert not calls[0].get("olds")
    assert set(toys.world()) == {"a#2", "b#1"}
    others = [call["method"] for call in toys.calls() if call.get("name") == "b"]
    assert others == (["Check", "Diff"] if flag == "--replace" else [])


@pytest.mark.parametrize("command", ["up", "preview", "destroy"])
def test_a_project_may_ask_for_a_refresh_each_time(playground: Playground, command: str) -> None:
    toys = playground('Thing("a", {"name": "a"})', form="native")
    assert toys.stack().up().exit_code == 0
    forget(toys)
    file = toys.project / "Pulumi.yaml"
    file.write_text(file.read_text() + "options: {refresh: always}\n")
    assert toys.stack().run(command).exit_code == 0  # type: ignore[arg-type]  # a command's name
    assert asked(toys, "Read") == ["a#1"]
    file.write_text(file.read_text().replace("always", "never"))
    with pytest.raises(Exception, match="refresh must be 'always'"):
        toys.stack()
