"""A playbook: its check run, its run, its drift."""

import json
import shlex
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from plan import FOUND, REFUSED_TO_TEST_KEYS, Change, Drift, Managed, Plan, Run, last_line, run, setting

VARYING = ("charge", "price", "balance", "refund", "amount", "due_at", "expires_at", "renewal")
"""Parts of names in a difference that are prices and dates. ``mode`` says which key looked."""
DRIFT = 3
"""Exit code of the callback hosting.cloud.drift."""


class Playbook:
    """The playbook PLAYBOOK, with PLAYBOOK_ARGS."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.directory = Path(setting("PROJECT", "."))

    def play(self, environ: Mapping[str, str], report: Path, *arguments: str) -> Run:
        program = shlex.split(setting("ANSIBLE_PLAYBOOK", "ansible-playbook"))
        given = shlex.split(setting("PLAYBOOK_ARGS", ""))
        callbacks = [*setting("ANSIBLE_CALLBACKS_ENABLED", "").split(","), "hosting.cloud.drift"]
        settings = {
            "ANSIBLE_CALLBACKS_ENABLED": ",".join(name for name in callbacks if name),
            "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
            "HOSTING_DRIFT_REPORT": str(report),
        }
        command = [*program, *arguments, "--diff", *given, self.name]
        return run(command, self.directory, {**environ, **settings})

    def plan(self, environ: Mapping[str, str]) -> Plan:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder).resolve() / "drift.json"
            done = self.play(environ, report, "--check")
            if not report.exists():
                return Plan(error=last_line(done.output), details=done.output)
            source = report.read_text(encoding="utf-8")
        found = json.loads(source)
        failures = _failures(found)
        return Plan(
            changes=[_change(item) for item in found["changes"] if not _only_renews(item)],
            renewals=sum(map(_renewal, found.get("priced") or ()), Decimal(0)),
            unchecked=[text for text in failures if REFUSED_TO_TEST_KEYS.search(text)],
            error="" if done.code in (0, DRIFT) else (failures or [last_line(done.output)])[-1],
            details=done.output,
            source=source,
        )

    def apply(self, environ: Mapping[str, str]) -> Run:
        with tempfile.TemporaryDirectory() as folder:
            return self.play(environ, Path(folder).resolve() / "drift.json")

    @property
    def repair(self) -> str:
        """What a person runs about drift."""
        return " ".join(filter(None, ("ansible-playbook", setting("PLAYBOOK_ARGS", ""), self.name)))

    def drift(self, environ: Mapping[str, str], folder: Path) -> Drift:
        """The check run and its report. Of one that failed, the report does not name everything."""
        report = folder.resolve() / "drift.json"
        done = self.play(environ, report, "--check")
        code = FOUND if done.code == DRIFT else done.code
        failures = _failures(json.loads(report.read_text(encoding="utf-8"))) if report.exists() else []
        is_complete = code in (0, FOUND) and report.exists()
        reason = (failures or [last_line(done.output)])[-1]
        gaps = [] if is_complete else [f"the check run of {self.name} failed: {reason}"]
        return Drift(Run(code, done.stdout, done.stderr), Managed(["--results", str(report)], gaps))


def _failures(found: Mapping[str, Any]) -> list[str]:
    """The tasks that failed and are not ignored, with the codes of their errors."""
    failed = [item for item in found["failures"] if not item.get("ignored")]
    codes = [(item.get("failure") or {}).get("code") or "" for item in failed]
    return [
        f"{item['task']}: {item['message']}" + (f" ({code})" if code not in item["message"] else "")
        for item, code in zip(failed, codes, strict=True)
    ]


def _only_renews(item: Mapping[str, Any]) -> bool:
    """Whether the task only renews what it declares, as keep_paid says."""
    sides = [_mapping(row.get(side)) for row in item.get("diff") or () for side in ("before", "after")]
    return any("renewal" in side for side in sides) and not any(map(_lasting, sides))


def _renewal(priced: Mapping[str, Any]) -> Decimal:
    """What a task charges to keep an object paid."""
    return Decimal(priced.get("charge") or 0) if priced.get("action") == "renew" else Decimal(0)


def _change(item: Mapping[str, Any]) -> Change:
    """One task that would change something."""
    facts = {name: item.get(name) for name in ("host", "play", "task", "module", "item")}
    differences = [_lasting(row) for row in item.get("diff") or ()]
    fields: dict[str, tuple[Any, Any]] = {}
    for row in differences:
        before, after = _mapping(row.get("before")), _mapping(row.get("after"))
        names = (name for name in {*before, *after} if before.get(name) != after.get(name))
        fields |= {name: (before.get(name), after.get(name)) for name in names}
    label = f" ({item['item']})" if item.get("item") else ""
    return Change("change", f"{item['task']}{label}", {**facts, "diff": differences}, fields)


def _lasting(value: Any) -> Any:
    """Without what differs from one look to the next."""
    if isinstance(value, Mapping):
        return {
            name: _lasting(inner)
            for name, inner in value.items()
            if name not in ("mode", "prepared") and not any(part in name for part in VARYING)
        }
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
