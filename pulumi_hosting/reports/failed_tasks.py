"""The tasks that failed in a run of a playbook: after them it is not known what the playbook manages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.reports.module_scopes import MODULES

_COLLECTION = "hosting.cloud"


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
        module = str(row.get("module") or "")
        yield FailedTask(
            str(row.get("host") or "a host"),
            str(row.get("task") or module),
            str(row.get("message") or "no message"),
            not row.get("ignored"),
            _is_ours(module),
        )


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
            action = str(result.get("action") or "")
            yield FailedTask(
                host,
                str((task.get("task") or {}).get("name") or action),
                str(result.get("msg") or "no message"),
                any(row.get(count) for count in ("failures", "unreachable", "rescued")),
                _is_ours(action),
            )


def _is_ours(module: str) -> bool:
    """Whether a module, or one of the short names of plays with ``collections``, is of this collection."""
    collection, _, name = module.rpartition(".")
    return collection == _COLLECTION or (not collection and name in MODULES)


def _mappings(values: object) -> Mapping[str, JsonObject]:
    rows = values.items() if isinstance(values, Mapping) else ()
    return {name: row for name, row in rows if isinstance(row, Mapping)}
