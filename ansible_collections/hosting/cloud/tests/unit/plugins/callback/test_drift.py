# Copyright: (c) 2026, the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# ruff: noqa: S101 — assert is how pytest asks
"""The drift callback: exit codes, results of ansible-core before 2.19, and values that JSON has no type
for."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import context
from ansible.executor.stats import AggregateStats
from ansible.module_utils.common.collections import ImmutableDict

from ansible_collections.hosting.cloud.plugins.callback.drift import CallbackModule


class Display:
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, text: str) -> None:
        self.warnings.append(text)


class OldResult:
    """A result as ansible-core 2.18 hands it in."""

    def __init__(self, outcome: dict[str, Any], **fields: Any) -> None:
        self._host = SimpleNamespace(get_name=lambda: "web")
        self._task = SimpleNamespace(
            get_name=lambda: "t", _uuid="1", resolved_action=None, action="m", get_path=lambda: "site.yml:1"
        )
        self._result, self._task_fields = outcome, fields


def callback(
    monkeypatch: pytest.MonkeyPatch, report: Path, arguments: tuple[str, ...] = ("a.yml",), **options: Any
) -> CallbackModule:
    monkeypatch.setattr(context, "CLIARGS", ImmutableDict({"check": True, "args": arguments}))
    made = CallbackModule()
    given = {"report": str(report), "exit_code": 3, **options}
    monkeypatch.setattr(made, "get_option", given.get)
    monkeypatch.setattr(made, "_display", Display())
    return made


def stats(**counts: int) -> AggregateStats:
    found = AggregateStats()
    found.processed["web"] = 1
    for name, count in counts.items():
        getattr(found, name)["web"] = count
    return found


def test_results_of_other_collections_are_no_objects_and_no_prices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = tmp_path / "drift.json"
    drift = callback(monkeypatch, report)
    drift.v2_playbook_on_start(SimpleNamespace(_file_name="a.yml"))
    results = [
        ("openstack.cloud.server", {"changed": True, "server": {"id": "a", "name": "db"}}),
        ("community.general.dns", {"changed": True, "domain": "example.com", "charge": "5.00"}),
        ("shop", {"changed": True, "charge": "5.00", "invocation": "shop"}),  # of the playbook's own library
    ]
    for module, outcome in results:
        result = OldResult(outcome)
        result._task.resolved_action = module
        drift.v2_runner_on_ok(result)
    with pytest.raises(SystemExit) as left:
        drift.v2_playbook_on_stats(stats(changed=3))
    assert left.value.code == 3
    written = json.loads(report.read_text())
    assert (len(written["changes"]), written["objects"], written["priced"]) == (3, [], [])


def test_results_before_2_19(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = tmp_path / "drift.json"
    drift = callback(monkeypatch, report)
    drift.v2_playbook_on_start(SimpleNamespace(_file_name="a.yml"))
    drift.v2_runner_item_on_ok(
        OldResult({"changed": True, "item": "x", "diff": {"before": object(), "after": 1}})
    )
    drift.v2_runner_item_on_failed(OldResult({"msg": "no", "item": "y"}, ignore_errors=True))
    drift.v2_runner_on_failed(OldResult({"msg": "all items"}), ignore_errors=True)
    drift.v2_runner_on_unreachable(OldResult({"msg": "away"}, ignore_unreachable=True))
    with pytest.raises(SystemExit) as left:
        drift.v2_playbook_on_stats(stats(changed=1, ignored=1))
    assert left.value.code == 3
    written = json.loads(report.read_text())
    (change,) = written["changes"]
    assert (change["item"], change["module"], change["diff"]) == (
        "x",
        "m",
        [{"before": "<object>", "after": 1}],
    )
    failures = [
        (failure["message"], failure["ignored"], failure["unreachable"]) for failure in written["failures"]
    ]
    assert failures == [("no", True, False), ("away", True, True)]


@pytest.mark.parametrize("count", ["failures", "dark"])
def test_failed_and_unreachable_hosts_keep_their_code(
    count: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drift = callback(monkeypatch, tmp_path / "drift.json")
    drift.v2_playbook_on_start(SimpleNamespace(_file_name="a.yml"))
    drift.v2_runner_on_ok(OldResult({"changed": True}))
    drift.v2_playbook_on_stats(stats(**{count: 1}))
    assert json.loads((tmp_path / "drift.json").read_text())["drift"] is True


def test_a_report_that_cannot_be_printed_leaves_the_old_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = tmp_path / "drift.json"
    report.write_text("old")
    drift = callback(monkeypatch, report)
    drift.v2_playbook_on_start(SimpleNamespace(_file_name="a.yml"))
    drift.v2_runner_on_ok(OldResult({"changed": True, "diff": {(1, 2): "a key that JSON cannot have"}}))
    with pytest.raises(SystemExit):
        drift.v2_playbook_on_stats(stats(changed=1))
    assert [path.name for path in tmp_path.iterdir()] == ["drift.json"]


def play(drift: CallbackModule, playbook: str = "a.yml") -> int:
    """One playbook with a change; the exit code that the callback asks for, 0 for none."""
    drift.v2_playbook_on_start(SimpleNamespace(_file_name=playbook))
    drift.v2_runner_on_ok(OldResult({"changed": True}))
    try:
        drift.v2_playbook_on_stats(stats(changed=1))
    except SystemExit as left:
        return int(left.code or 0)
    return 0


@pytest.mark.parametrize(("given", "code"), [(3, 3), (7, 7), (0, 0), (255, 255), (256, 3), (-1, 3)])
def test_exit_codes(given: int, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drift = callback(monkeypatch, tmp_path / "drift.json", exit_code=given)
    assert play(drift) == code
    warning = (
        f"hosting.cloud.drift: exit_code must be 0 to 255, not {given}. Using 3. Next: correct exit_code"
    )
    assert drift._display.warnings == ([] if 0 <= given <= 255 else [warning])


def test_a_report_that_cannot_be_written_hides_no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    drift = callback(monkeypatch, Path("/dev/null/drift.json"))
    assert play(drift) == 3
    (warning,) = drift._display.warnings
    assert warning.startswith("hosting.cloud.drift could not write its report /dev/null/drift.json: ")
    assert warning.endswith("Next: set HOSTING_DRIFT_REPORT to another path")


def test_it_exits_after_the_last_playbook_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drift = callback(monkeypatch, tmp_path / "drift.json", arguments=("a.yml", "b.yml"))
    assert [play(drift, "a.yml"), play(drift, "b.yml")] == [0, 3]
    assert json.loads((tmp_path / "drift.json").read_text())["playbooks"] == ["a.yml", "b.yml"]
