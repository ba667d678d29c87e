"""Files that other tools wrote: exports of Pulumi stacks, results of Ansible runs."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pulumi_hosting.rehearsal.facts import JsonObject, mapping
from pulumi_hosting.rehearsal.managed_objects import COLLECTION, WEBHOOK, ManagedObject, ManagedObjects
from pulumi_hosting.reports.module_scopes import MODULES
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


# --- what failed


@dataclass(frozen=True, slots=True)
class FailedTask:
    """One task that failed on one host, or did not reach it.

    - ``stopped``: it kept the tasks behind it from running: those of the host, or those of its block.
    - ``is_ours``: it is a task of the collection, so the object that it declares is not in the results.
    """

    host: str
    task: str
    message: str
    stopped: bool
    is_ours: bool

    def __str__(self) -> str:
        reason = " ".join(self.message.split()).partition(". Next: ")[0]
        return f"task '{self.task}' failed on {self.host}: {reason.removesuffix('.')}"


@dataclass(frozen=True, slots=True)
class FailedTasks:
    """The failed tasks of a run. ``has_failed``: whether the run itself failed; it does not where each was
    ignored or rescued.
    """

    tasks: tuple[FailedTask, ...]
    has_failed: bool

    @property
    def reason(self) -> str:
        """Why the run failed, in one line; empty where it did not."""
        if not self.has_failed:
            return ""
        last = next((task for task in reversed(self.tasks) if task.stopped), None)
        return str(last or "a host failed, or was not reached")

    @property
    def gap(self) -> str:
        """Why the results do not name everything that the playbook manages; empty where they do."""
        missed = next((task for task in self.tasks if task.stopped or task.is_ours), None)
        return self.reason or str(missed or "")


def failed_tasks(found: JsonObject) -> FailedTasks:
    """Of the report of the callback ``hosting.cloud.drift``, or of the output of ``ansible.posix.json``."""
    if isinstance(found.get("plays"), list):
        recap = _mappings(found.get("stats"))
        tasks = tuple(_of_plays(found, recap))
    else:
        recap, tasks = _mappings({"": found.get("totals")}), tuple(_of_report(found))
    if not recap:
        return FailedTasks(tasks, any(task.stopped for task in tasks))
    has_failed = any(row.get("failures") or row.get("unreachable") for row in recap.values())
    return FailedTasks(tasks, has_failed)


def _of_report(found: JsonObject) -> Iterator[FailedTask]:
    for row in found.get("failures") or ():
        host, module = row.get("host") or "a host", str(row.get("module") or "")
        yield _failed(host, row.get("task"), module, row.get("message"), not row.get("ignored"))


def task_results(found: JsonObject) -> Iterator[tuple[JsonObject, str, JsonObject]]:
    """Task, host and result of all tasks in the output of the callback ``ansible.posix.json``."""
    for play in found["plays"]:
        for task in play.get("tasks") or ():
            for host, result in (task.get("hosts") or {}).items():
                yield task, host, result


def _of_plays(found: JsonObject, recap: Mapping[str, JsonObject]) -> Iterator[FailedTask]:
    """The callback does not say which failures are ignored; where its recap of a host counts no other, all
    are."""
    for task, host, result in task_results(found):
        if result.get("failed") or result.get("unreachable"):
            row = recap.get(host, {"failures": 1})
            is_counted = any(row.get(count) for count in ("failures", "unreachable", "rescued"))
            name, module = (task.get("task") or {}).get("name"), str(result.get("action") or "")
            yield _failed(host, name, module, result.get("msg"), is_counted)


def _failed(host: object, task: object, module: str, message: object, stopped: bool) -> FailedTask:
    """The module may have one of the short names of plays with ``collections``."""
    collection, _, name = module.rpartition(".")
    is_ours = collection == COLLECTION or (not collection and name in MODULES)
    return FailedTask(str(host), str(task or module), str(message or "no message"), stopped, is_ours)


def _mappings(values: object) -> Mapping[str, JsonObject]:
    return {name: row for name, row in mapping(values).items() if isinstance(row, Mapping)}
