"""Files that other tools wrote: exports of Pulumi stacks, results of Ansible runs."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.rehearsal.managed_objects import WEBHOOK, ManagedObject, ManagedObjects
from pulumi_hosting.reports.failed_tasks import failed_tasks, task_results
from pulumi_hosting.reports.report import CannotAnswer, Unusable
from pulumi_hosting.session.text import without_secrets


@contextmanager
def stack_export(path: Path) -> Iterator[JsonObject]:
    """What ``pulumi stack export`` wrote, as in ``reading``."""
    with reading(path, "pulumi stack export") as found:
        if not isinstance(found.get("deployment"), Mapping):
            raise Unusable(
                f"{named(path)} is no export of a stack. Next: "
                f"pulumi stack export > {file_for(path, 'stack.json')}"
            )
        yield found


def managed_by(path: Path) -> ManagedObjects:
    """The objects of a stack, from its export."""
    with stack_export(path) as export:
        return ManagedObjects.of_stack(export)


def run_results(path: Path) -> ManagedObjects:
    """The objects that a playbook manages, from the report of the callback ``hosting.cloud.drift`` or from
    the output of the callback ``ansible.posix.json``. Raises ``CannotAnswer`` where a task failed whose
    objects, or those of the tasks behind it, are not among them.
    """
    with reading(path, "the report of the callback hosting.cloud.drift") as found:
        return _managed(path, found)


def _managed(path: Path, found: JsonObject) -> ManagedObjects:
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


@contextmanager
def reading(path: Path, what: str) -> Iterator[JsonObject]:
    """The JSON object in a file; ``-`` is standard input. ``what``: how such a file is made. Raises
    ``Unusable`` if there is none, or if it has another structure than the code within reads.
    """
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        found = json.loads(text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not JSON"
        raise Unusable(f"{named(path)} cannot be read: {reason}. Next: give {what}") from None
    if not isinstance(found, Mapping):
        raise Unusable(f"{named(path)} holds no JSON object. Next: give {what}")
    try:
        _check_parts(found)
        yield found
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Unusable(f"{named(path)} cannot be read: it is damaged. Next: give {what}") from None


_LISTS = ("steps", "resources", "pending_operations", "plays", "tasks")
_OBJECTS = ("deployment", "newState", "oldState", "inputs", "outputs", "hosts")


def _check_parts(found: JsonObject) -> None:
    """Raise ``TypeError`` for what is no object, or no list of objects, as the tools write it."""
    for name in (*_LISTS, *_OBJECTS):
        value = found.get(name)
        if value is None:
            continue
        for part in value if name in _LISTS else [value]:
            if not isinstance(part, Mapping):
                raise TypeError(name)
            if name not in ("inputs", "outputs", "hosts"):  # what a program declares may have any names
                _check_parts(part)


def named(path: Path) -> str:
    """A file of the command line in a message; ``-`` is standard input."""
    return "standard input" if str(path) == "-" else str(path)


def file_for(path: Path, other: str) -> str:
    """The file that a next step writes: ``path``, or ``other`` where that is standard input."""
    return other if str(path) == "-" else str(path)
