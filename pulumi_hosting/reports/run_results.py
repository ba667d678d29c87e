"""Files that other tools wrote: exports of Pulumi stacks, results of Ansible runs."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.rehearsal.managed_objects import WEBHOOK, ManagedObject, ManagedObjects
from pulumi_hosting.reports.failed_tasks import failed_tasks, task_results
from pulumi_hosting.reports.report import CannotAnswer, Unusable
from pulumi_hosting.session.text import without_secrets


def stack_export(path: Path) -> JsonObject:
    """What ``pulumi stack export`` wrote."""
    found = read_json(path, "pulumi stack export")
    if not isinstance(found.get("deployment"), Mapping):
        raise Unusable(
            f"{named(path)} is no export of a stack. Next: "
            f"pulumi stack export > {file_for(path, 'stack.json')}"
        )
    return found


def run_results(path: Path) -> ManagedObjects:
    """The objects that a playbook manages, from the report of the callback ``hosting.cloud.drift`` or from
    the output of the callback ``ansible.posix.json``. Raises ``CannotAnswer`` where a task failed whose
    objects, or those of the tasks behind it, are not among them.
    """
    found = read_json(path, "the report of the callback hosting.cloud.drift")
    if gap := failed_tasks(found).gap:
        raise CannotAnswer(
            f"{named(path)}: what the playbook manages is not known completely: {gap}. Next: correct the "
            "playbook, and run it again"
        )
    if isinstance(objects := found.get("objects"), list):
        rows = [row for row in objects if isinstance(row, Mapping)]
        return ManagedObjects(
            tuple(
                ManagedObject(str(row["kind"]), str(row["id"]), name_of(row), str(row.get("mode") or "live"))
                for row in rows
                if row.get("kind") and row.get("id")
            )
        )
    if isinstance(found.get("plays"), list):
        return ManagedObjects.of_results(result for _, _, result in task_results(found))
    raise Unusable(
        f"{named(path)} is no result of an Ansible run. Next: ANSIBLE_CALLBACKS_ENABLED=hosting.cloud.drift "
        f"HOSTING_DRIFT_REPORT={file_for(path, 'report.json')} ansible-playbook --check site.yml"
    )


def name_of(row: JsonObject) -> str:
    """The name of an object in a report of the callback; that of a subscription is its URL."""
    name = str(row.get("name", ""))
    return without_secrets(name) if row.get("kind") == WEBHOOK else name


def read_json(path: Path, what: str) -> JsonObject:
    """The JSON object in a file; ``-`` is standard input. ``what``: how such a file is made."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        found = json.loads(text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not JSON"
        raise Unusable(f"{named(path)} cannot be read: {reason}. Next: give {what}") from None
    if not isinstance(found, Mapping):
        raise Unusable(f"{named(path)} holds no JSON object. Next: give {what}")
    if damage := _damage(found):
        raise Unusable(f"{named(path)} cannot be read: {damage}. Next: give {what}")
    return found


_LISTS = ("steps", "resources", "plays", "tasks")
_OBJECTS = ("deployment", "newState", "oldState", "inputs", "outputs", "hosts")


def _damage(found: JsonObject) -> str | None:
    """What is not as the tools write it: a list of objects, or an object."""
    for name in _LISTS:
        rows = found.get(name)
        if rows is not None and not (
            isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows)
        ):
            return f"{name} is no list of objects"
        if damage := next(filter(None, map(_damage, rows or ())), None):
            return damage
    for name in _OBJECTS:
        inner = found.get(name)
        if inner is not None and not isinstance(inner, Mapping):
            return f"{name} is no object"
        # what a program declares may have any names
        if inner and name not in ("inputs", "outputs", "hosts") and (damage := _damage(inner)):
            return damage
    return None


def named(path: Path) -> str:
    """A file of the command line in a message; ``-`` is standard input."""
    return "standard input" if str(path) == "-" else str(path)


def file_for(path: Path, other: str) -> str:
    """The file that a next step writes: ``path``, or ``other`` where that is standard input."""
    return other if str(path) == "-" else str(path)
