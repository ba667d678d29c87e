# Copyright: (c) 2026, the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""Reports drift: makes check mode exit with code 3, and writes what would change to a file."""

from __future__ import annotations

DOCUMENTATION = r"""
name: drift
type: aggregate
short_description: Exit with code 3 on drift in check mode, and write a report
version_added: 0.1.0
author:
  - The pulumi-hosting authors (@pulumi-hosting)
description:
  - Writes a JSON report of what changed, or in check mode would change, and of what failed.
  - In check mode the run exits with O(exit_code) if something would change and nothing failed.
    C(ansible-playbook) alone would exit with 0. A run with failed or unreachable hosts keeps its exit code,
    and so does every run without C(--check).
  - With C(--diff) the report contains the differences as the modules return them.
    For a task with C(no_log) it says only that the task changed.
  - A server or domain whose paid time is over is drift too, even if no task changes it. Its C(changes) have
    C(ended), the status (V(suspended), V(expired) or V(pending_cancel)). With O(ends_within),
    one that ends within this time and is not paid for is drift as well, and C(ended) is C(ends) and the day.
  - Check mode compares what the playbook declares, not what else is on the account.
  - The report holds C(drift), C(check_mode), C(started_at) and C(finished_at) in UTC, C(versions),
    C(playbooks), C(totals), C(hosts) (the recap by host), C(changes) and C(failures). A change has C(host),
    C(play), C(task), C(module), C(path), C(item) in a loop, and C(diff); a failure has C(message),
    C(ignored), C(unreachable), and C(failure) if a module of this collection adds it.
  - C(objects) lists the objects of the account that the playbook manages, by kind, id, name and mode, and
    whether a run renews them (C(is_kept_paid)). The command C(pulumi-hosting audit --results drift.json)
    lists what else is on the account. A task with C(no_log) adds none.
  - C(priced) has what the tasks charged, or in check mode would charge, and what decides the price of each
    object. The command C(pulumi-hosting cost drift.json) reads it.
requirements:
  - Enable it, for example with C(ANSIBLE_CALLBACKS_ENABLED=hosting.cloud.drift).
  - Put it last among the enabled callbacks. Later ones are not called at the end of the run.
options:
  report:
    description:
      - The file to write, replaced in one step and readable by its owner only. Missing folders are created.
    type: path
    default: drift.json
    env:
      - name: HOSTING_DRIFT_REPORT
    ini:
      - section: callback_hosting_drift
        key: report
  exit_code:
    description:
      - The exit code if check mode would change something, V(0) to V(255). V(0) keeps Ansible's.
    type: int
    default: 3
    env:
      - name: HOSTING_DRIFT_EXIT_CODE
    ini:
      - section: callback_hosting_drift
        key: exit_code
  ends_within:
    description:
      - Days, V(1), V(7), V(14) or V(30). If a task warns of an end within this time, that counts as drift.
        Tasks begin to warn a third of the paid period before its end.
      - If not set, only what has ended is drift.
    type: str
    env:
      - name: HOSTING_DRIFT_ENDS_WITHIN
    ini:
      - section: callback_hosting_drift
        key: ends_within
seealso:
  - plugin: ansible.builtin.junit
    plugin_type: callback
"""

EXAMPLES = r"""
# ANSIBLE_CALLBACKS_ENABLED=hosting.cloud.drift ansible-playbook --check --diff site.yml
# 0: as declared, 3: something differs, 2: a task failed, 4: a host was unreachable

# ansible.cfg
# [defaults]
# callbacks_enabled = ansible.builtin.junit, hosting.cloud.drift
# [callback_hosting_drift]
# report = reports/drift.json
"""

import json
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase
from ansible.release import __version__ as ansible_version

from ..module_utils.json_types import Json, Values
from ..module_utils.secret_file import write_privately

ENDED = ("suspended", "expired", "pending_cancel")
WITHIN = {"Overdue": 0, "Last day": 1, "Urgent": 7, "Soon": 14, "Note": 30}
"""The first word of what a task says of an object that ends and is not paid for: the days that are left."""
ENDS = re.compile(rf"^({'|'.join(WITHIN)}): .* (?:is|was) paid until (\d{{4}}-\d\d-\d\d)")
RECAP = ("ok", "changed", "failures", "ignored", "rescued", "skipped", "unreachable")


class CallbackModule(CallbackBase):
    """Collects changes and failures. Writes the report after each playbook, and sets the exit code after the
    last."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "hosting.cloud.drift"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._started_at = _now()
        self._playbooks: list[str] = []
        self._play = ""
        self._changes: list[Json] = []
        self._failures: list[Json] = []
        self._results: list[Values] = []
        # Loops whose items were reported one by one: the result of the whole loop, which follows, adds
        # nothing.
        self._loops: set[tuple[str, str]] = set()

    # --- events of the run

    def v2_playbook_on_start(self, playbook: Any) -> None:
        self._playbooks.append(str(_private(playbook, "_file_name")))

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._play = play.get_name()

    def v2_runner_on_ok(self, result: object) -> None:
        if not self._is_whole_loop(result):
            self._add_change(result)

    def v2_runner_on_failed(self, result: object, ignore_errors: bool = False) -> None:
        if not self._is_whole_loop(result):
            self._add_failure(result, ignored=bool(ignore_errors))

    def v2_runner_on_skipped(self, result: object) -> None:
        self._is_whole_loop(result)

    def v2_runner_on_unreachable(self, result: object) -> None:
        self._is_whole_loop(result)
        self._add_failure(
            result, ignored=bool(_of(result, "task_fields").get("ignore_unreachable")), unreachable=True
        )

    def v2_runner_item_on_ok(self, result: object) -> None:
        self._loops.add(_key(result))
        self._add_change(result, **self._item(result))

    def v2_runner_item_on_failed(self, result: object) -> None:
        self._loops.add(_key(result))
        self._add_failure(
            result, ignored=bool(_of(result, "task_fields").get("ignore_errors")), **self._item(result)
        )

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Called after each playbook of the command line. The counts are those of all playbooks so far."""
        recap = {
            host: {name: stats.summarize(host)[name] for name in RECAP} for host in sorted(stats.processed)
        }
        totals = {name: sum(row[name] for row in recap.values()) for name in RECAP}
        is_check = bool(context.CLIARGS.get("check"))
        has_drift = bool(self._changes or totals["changed"])
        self._write(
            {
                "drift": has_drift,
                "check_mode": is_check,
                "started_at": self._started_at,
                "finished_at": _now(),
                "versions": _versions(),
                "playbooks": self._playbooks,
                "totals": {"hosts": len(recap), **totals},
                "hosts": recap,
                "changes": self._changes,
                "failures": self._failures,
                **self._of_package(),
            }
        )
        code, failed = self._exit_code(), totals["failures"] or totals["unreachable"]
        if self._is_last() and is_check and has_drift and code and not failed:
            # The only exception of a callback that Ansible does not catch. Its own clean-up still runs.
            raise SystemExit(code)

    # --- the report

    def _add_change(self, result: object, **more: object) -> None:
        outcome = _of(result, "result")
        self._keep(result)
        where = self._where(result)
        is_ours = str(where["module"]).startswith("hosting.cloud.")
        ended = (_ended(outcome) or self._ending(result)) if is_ours else None
        if outcome.get("changed") or ended:
            diff = outcome.get("diff")
            shown = {} if not diff else {"diff": diff if isinstance(diff, list) else [diff]}
            why = {"ended": ended} if ended else {}
            self._changes.append({**where, **more, **shown, **why})

    def _ending(self, result: object) -> str | None:
        """The day on which the object of a task ends, if it is not paid for and that is within
        O(ends_within)."""
        days = self._ends_within()
        found = map(ENDS.search, map(str, _of(result, "result").get("warnings") or ()))
        return next((f"ends {line[2]}" for line in found if line and WITHIN[line[1]] <= days), None)

    def _add_failure(self, result: object, **more: object) -> None:
        outcome = _of(result, "result")
        self._keep(result, failed=True)
        message = outcome.get("censored") or outcome.get("msg") or "failed without a message"
        facts = {"failure": outcome["failure"]} if isinstance(outcome.get("failure"), dict) else {}
        self._failures.append(
            {**self._where(result), "message": str(message), "unreachable": False, **more, **facts}
        )

    def _keep(self, result: object, **more: object) -> None:
        outcome = _of(result, "result")
        if not outcome.get("_ansible_no_log"):
            self._results.append({**outcome, "action": self._where(result)["module"], **more})

    def _of_package(self) -> Json:
        """What the playbook manages, and what decides the cost of the run. Empty where the Python package is
        not installed here: then no task of the collection ran on the controller."""
        try:
            from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
            from pulumi_hosting.reports.run_results import of_results
        except ImportError:
            return {"objects": [], "priced": []}
        objects = ManagedObjects.of_results(self._results)
        facts = ("kind", "id", "name", "mode", "is_kept_paid")
        return {
            "objects": [{name: getattr(one, name) for name in facts} for one in objects],
            "priced": [change.facts() for change in of_results(self._results)],
        }

    def _where(self, result: object) -> Json:
        task = _of(result, "task")
        return {
            "host": _of(result, "host").get_name(),
            "play": self._play,
            "task": task.get_name(),
            "module": task.resolved_action or task.action,
            "path": task.get_path(),
        }

    def _item(self, result: object) -> Json:
        return {"item": _private(self, "_get_item_label")(_of(result, "result"))}

    def _is_whole_loop(self, result: object) -> bool:
        """Whether this is the result of a loop whose items were reported. Forgets the loop."""
        key = _key(result)
        known = key in self._loops
        self._loops.discard(key)
        return known

    def _exit_code(self) -> int:
        code: int = self.get_option("exit_code")
        # The system keeps the lowest eight bits: with 256, a run with drift would exit with 0.
        return code if 0 <= code <= 255 else self._instead("exit_code", code, "0 to 255", 3)

    def _ends_within(self) -> int:
        """Days; -1 if what ends is no drift."""
        given = str(self.get_option("ends_within") or "").strip().removesuffix("d")
        if not given or given in ("1", "7", "14", "30"):
            return int(given or -1)
        return self._instead("ends_within", given, "1, 7, 14 or 30", 30)

    def _instead(self, option: str, given: object, allowed: str, used: int) -> int:
        """The value that is ``used`` for a wrong one. Not an exception: without the callback, drift would
        exit with 0."""
        wrong = f"{option} must be {allowed}, not {given}. Using {used}. Next: correct {option}"
        self._display.warning(f"hosting.cloud.drift: {wrong}")
        return used

    def _is_last(self) -> bool:
        """Whether this is the last playbook: an exit before it would skip the others."""
        named = context.CLIARGS.get("args")
        return not isinstance(named, list | tuple) or len(self._playbooks) >= len(named)

    def _write(self, report: Json) -> None:
        path = Path(self.get_option("report"))
        try:
            text = json.dumps(report, indent=2, default=_unknown)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_privately(path, text)
        except (OSError, TypeError, ValueError) as error:
            # A warning: Ansible would catch an exception, and a run with drift would exit with 0.
            reason = getattr(error, "strerror", None) or error
            self._display.warning(
                f"hosting.cloud.drift could not write its report {path}: {reason}. Next: set "
                f"HOSTING_DRIFT_REPORT to another path"
            )


def _ended(outcome: Json) -> str | None:
    """How the paid time of the object of a task is over; None where it is not."""
    shown = [outcome.get(kind) for kind in ("server", "domain")]
    found = [one.get("status") for one in shown if isinstance(one, dict)]
    return next((status for status in found if status in ENDED), None)


def _of(result: object, name: str) -> Any:
    """``result.name``; before ansible-core 2.19 there is only ``result._name``."""
    return getattr(result, name) if hasattr(type(result), name) else _private(result, f"_{name}")


def _private(owner: object, name: str) -> Any:
    """What ansible-core keeps under a private name. Without it the run stops: Ansible would catch any other
    exception, and a run with drift would exit with 0."""
    if not hasattr(owner, name):
        missing = f"{type(owner).__name__} of ansible-core {ansible_version} has no {name}"
        advice = "install the newest hosting.cloud, or an ansible-core that it supports"
        raise SystemExit(f"hosting.cloud.drift: {missing}. Next: {advice}")
    return getattr(owner, name)


def _key(result: object) -> tuple[str, str]:
    return _of(result, "host").get_name(), _private(_of(result, "task"), "_uuid")


def _versions() -> dict[str, str]:
    found = {"ansible_core": ansible_version, "python": platform.python_version()}
    try:
        return {**found, "pulumi_hosting": version("pulumi-hosting")}
    except PackageNotFoundError:
        return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _unknown(value: object) -> str:
    # A value that JSON has no type for may be a secret that is decrypted when it is printed.
    return f"<{type(value).__name__}>"
