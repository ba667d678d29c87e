"""The tasks that failed in a run of a playbook: after them it is not known what the playbook manages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pulumi_hosting.rehearsal.facts import JsonObject, mapping
from pulumi_hosting.rehearsal.managed_objects import COLLECTION
from pulumi_hosting.reports.module_scopes import MODULES


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
