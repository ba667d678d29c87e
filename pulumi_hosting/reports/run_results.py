"""Files that other tools wrote: exports of Pulumi stacks, results of Ansible runs, and previews. What they
manage, and what they would change: of each object what decides its price.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pulumi_hosting.api.casing import camel
from pulumi_hosting.api.error_codes import parted
from pulumi_hosting.rehearsal import managed_objects
from pulumi_hosting.rehearsal.facts import JsonObject, mapping
from pulumi_hosting.reports.module_scopes import MODULES
from pulumi_hosting.reports.report import CannotAnswer, Unusable
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.session.text import without_secrets


@contextmanager
def stack_export(path: Path) -> Iterator[JsonObject]:
    """What ``pulumi stack export`` wrote, as in ``reading``."""
    with reading(path, "pulumi stack export") as found:
        if not isinstance(found.get("deployment"), Mapping):
            raise Unusable(
                f"{named(path)} is not a stack export. Next: "
                f"pulumi stack export > {file_for(path, 'stack.json')}"
            )
        yield found


def managed_by(path: Path) -> managed_objects.ManagedObjects:
    """The objects of a stack, from its export."""
    with stack_export(path) as export:
        return managed_objects.ManagedObjects.of_stack(export)


def run_results(path: Path) -> managed_objects.ManagedObjects:
    """The objects that a playbook manages, from the report of the callback ``hosting.cloud.drift`` or from
    the output of the callback ``ansible.posix.json``. Raises ``CannotAnswer`` where a task failed whose
    objects, or those of the tasks behind it, are not among them.
    """
    with reading(path, "the report of the callback hosting.cloud.drift") as found:
        return _managed(path, found)


def _managed(path: Path, found: JsonObject) -> managed_objects.ManagedObjects:
    if gap := failed_tasks(found).gap:
        raise CannotAnswer(
            f"{named(path)}: what the playbook manages is not known completely: {gap}. Next: correct the "
            "playbook, and run it again"
        )
    if isinstance(objects := found.get("objects"), list):
        rows = [row for row in objects if isinstance(row, Mapping)]
        return managed_objects.ManagedObjects(
            tuple(
                managed_objects.ManagedObject(
                    str(row["kind"]),
                    str(row["id"]),
                    name_of(row),
                    str(row.get("mode") or "live"),
                    is_kept_paid=bool(row.get("is_kept_paid")),
                )
                for row in rows
                if row.get("kind") and row.get("id")
            )
        )
    if isinstance(found.get("plays"), list):
        return managed_objects.ManagedObjects.of_results(result for _, _, result in task_results(found))
    raise Unusable(
        f"{named(path)} is no result of an Ansible run. Next: ANSIBLE_CALLBACKS_ENABLED=hosting.cloud.drift "
        f"HOSTING_DRIFT_REPORT={file_for(path, 'report.json')} ansible-playbook --check site.yml"
    )


def name_of(row: JsonObject) -> str:
    """The name of an object in a report of the callback; that of a subscription is its URL."""
    name = str(row.get("name", ""))
    return without_secrets(name) if row.get("kind") == managed_objects.WEBHOOK else name


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
        raise Unusable(f"{named(path)} cannot be read: {reason}. Next: pass the output of {what}") from None
    if not isinstance(found, Mapping):
        raise Unusable(f"{named(path)} does not hold a JSON object. Next: pass the output of {what}")
    try:
        _check_parts(found)
        yield found
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Unusable(f"{named(path)} is damaged. Next: pass the output of {what}") from None


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
        return f"task '{self.task}' failed on {self.host}: {parted(' '.join(self.message.split()))[0]}"


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
    is_ours = collection == managed_objects.COLLECTION or (not collection and name in MODULES)
    return FailedTask(str(host), str(task or module), str(message or "no message"), stopped, is_ours)


def _mappings(values: object) -> Mapping[str, JsonObject]:
    return {name: row for name, row in mapping(values).items() if isinstance(row, Mapping)}


_FIELDS = (
    *("id", "name", "url", "address", "server_id", "adopt_id", "currency", "auto_renew", "keep_paid"),
    *("os", "tariff_id", "tariff", "months", "hours", "billing_cycle", "promo_code", "years"),
    *("price_monthly", "price_renew", "refund_quote", "next_due_at", "expires_at", "status"),
)
"""What is kept of an object: nothing secret; of a URL the parts that hold none."""

_REPLACES = ("replace", "create-replacement", "delete-replaced")
_ACTIONS = {
    **{"create": "create", "update": "update", "delete": "delete", "same": "keep", "import": "import"},
    **dict.fromkeys(_REPLACES, "replace"),
}
"""Operation of an engine → action. What is only read, or leaves the state alone, is no change."""

# The severity, which Pulumi's CLI puts in front; the name, which a dynamic resource does, before a severity.
_FRONT = r"(?:warning: )?(?:(?P<name>.+?): )?(?:warning: )?"
_PRICE = re.compile(
    _FRONT + r"(?:will|would) charge (?P<amount>[\d.]+) (?P<currency>\w*) \((?P<what>.*)\); run "
)
_FOR_A_DOMAIN = re.compile(r"\d years?(, no auto-renew| from \S+)?$|^transfer of |on this account already$")
_TAKEOVER = re.compile(_FRONT + r"(?P<what>takes over .*|\S+ is already on the account \(.*)")
_BEYOND_LIMIT = re.compile(_FRONT + r"with a live key it would be refused: (?P<what>.*); it is not ordered")
_PRICE_LATER = re.compile(_FRONT + r"price of [^:]*: (?P<what>not known before [^;]*)")


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One object of a preview.

    - ``action``: ``create``, ``update``, ``reinstall``, ``replace``, ``delete``, ``keep``, ``import``,
      ``take over``, or ``renew`` as ``keep_paid`` says; of a task that pays for something, such as
      ``server_renew``, ``pay``.
    - ``before``, ``after``: the fields that decide its price. ``after`` of a new object is its declaration.
    - ``charge``: what the preview says that it charges now, in ``currency``; None where it says nothing.
    - ``note``: why it says nothing, or what is taken over.
    """

    kind: str
    name: str
    action: str
    before: JsonObject = field(default_factory=dict)
    after: JsonObject = field(default_factory=dict)
    charge: Decimal | None = None
    currency: str | None = None
    note: str = ""

    def facts(self) -> dict[str, object]:
        """The same for machines; :func:`from_facts` reads it."""
        return {**asdict(self), "charge": None if self.charge is None else str(self.charge)}


def from_facts(facts: JsonObject) -> PlannedChange:
    """What :meth:`PlannedChange.facts` wrote."""
    return PlannedChange(**{**facts, "name": name_of(facts), "charge": decimal_of(facts.get("charge"))})


@dataclass(frozen=True, slots=True)
class Planned:
    """``hidden``: how many unchanged resources the preview counts and does not show. ``beyond_limit``: what
    the preview says of orders that a limit would refuse with a live key."""

    changes: tuple[PlannedChange, ...]
    hidden: int = 0
    beyond_limit: tuple[str, ...] = ()

    def __add__(self, other: "Planned") -> "Planned":
        beyond_limit = self.beyond_limit + other.beyond_limit
        return Planned(self.changes + other.changes, self.hidden + other.hidden, beyond_limit)


def planned(path: Path) -> Planned:
    """The changes in a file: the output of ``pulumi preview --json``, the report of the callback
    ``hosting.cloud.drift`` or the output of the callback ``ansible.posix.json``. Raises ``Unusable``.
    """
    with reading(path, "pulumi preview --json") as found:
        return _planned(path, found)


def _planned(path: Path, found: JsonObject) -> Planned:
    if isinstance(found.get("steps"), list) or "changeSummary" in found:
        if failed := _failure_of(found):
            raise Unusable(
                f"{named(path)}: the preview failed, so what it costs is not known: {failed} Next: correct "
                "the program, and preview again"
            )
        return Planned(tuple(of_preview(found)), _hidden(found), tuple(_beyond_limit(found)))
    if reason := failed_tasks(found).reason:
        raise Unusable(
            f"{named(path)}: the check run failed, so what it costs is not known: {reason}. Next: correct "
            "the playbook, and check it again"
        )
    if isinstance(found.get("priced"), list):
        return Planned(tuple(from_facts(row) for row in found["priced"]))
    if isinstance(found.get("plays"), list):
        return Planned(tuple(of_results(result for _, _, result in task_results(found))))
    raise Unusable(
        f"{named(path)} is neither a preview nor the result of a check run. Next: "
        f"pulumi preview --json > {file_for(path, 'preview.json')}"
    )


def decimal_of(value: object) -> Decimal | None:
    """An amount of money as the API writes it; None for anything else.

    >>> decimal_of("5.00"), decimal_of("[unknown]"), decimal_of(None)
    (Decimal('5.00'), None, None)
    """
    text = str(value)
    return Decimal(text) if re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", text) else None


# --- Pulumi


def of_preview(digest: JsonObject) -> list[PlannedChange]:
    """The changes of ``pulumi preview --json``, also the unchanged resources that it shows. The prices are
    those that the provider announces in the preview."""
    found: dict[tuple[str, str], PlannedChange] = {}
    for step in digest.get("steps") or ():
        old, new = step.get("oldState") or {}, step.get("newState") or {}
        kind, action = managed_objects.kind_of((new or old).get("type", "")), _ACTIONS.get(step.get("op", ""))
        if kind is None or action is None or (new or old).get("external"):
            continue
        key = (step["urn"], action)
        if action == "delete" and old.get("retainOnDelete"):
            action = "keep"
        change = found.get(key, PlannedChange(kind, step["urn"].rpartition("::")[2], action))
        before = _kept(_snake(old.get("outputs")), old.get("id"))
        after = {**_kept(_snake(new.get("inputs"))), **_kept(_snake(new.get("outputs")))}
        charge = decimal_of((new.get("outputs") or {}).get("charged")) if action != "keep" else None
        was, becomes = before.get("os"), after.get("os")
        if action == "update" and kind == managed_objects.SERVER and was and becomes and was != becomes:
            action = "reinstall"
        found[key] = replace(
            change,
            action=action,
            before=before or change.before,
            after=after or change.after,
            charge=change.charge if charge is None else charge,
        )
    for message in digest.get("diagnostics") or ():
        _announce(found, str(message.get("urn") or ""), str(message.get("message") or "").strip())
    return list(found.values())


def _failure_of(digest: JsonObject) -> str:
    """The first error of a preview that failed, as one line; empty where it did not."""
    errors = [row for row in digest.get("diagnostics") or () if row.get("severity") == "error"]
    message = str(errors[0].get("message") or "it says no more").strip() if errors else ""
    return message.splitlines()[0] if message else ""


def _beyond_limit(digest: JsonObject) -> Iterator[str]:
    for message in digest.get("diagnostics") or ():
        if line := _BEYOND_LIMIT.match(str(message.get("message") or "").strip()):
            name = line["name"] or str(message.get("urn") or "").rpartition("::")[2]
            yield f"{name}: refused with a live key: {line['what']}"


def _hidden(digest: JsonObject) -> int:
    counted = int((digest.get("changeSummary") or {}).get("same") or 0)
    return max(0, counted - sum(1 for step in digest.get("steps") or () if step.get("op") == "same"))


def _announce(found: dict[tuple[str, str], PlannedChange], urn: str, message: str) -> None:
    """Put what a line of the preview says about money to its resource. A dynamic resource names itself in
    front of the line, in place of the URN."""
    news: JsonObject
    if line := _PRICE.match(message):
        news = {"charge": Decimal(line["amount"]), "currency": line["currency"] or None}
        kind = managed_objects.DOMAIN if _FOR_A_DOMAIN.search(line["what"]) else managed_objects.SERVER
        kinds = [managed_objects.SERVER_IP if line["what"].startswith("an address") else kind]
    elif line := _TAKEOVER.match(message):
        news = {"action": "take over", "charge": Decimal(0), "note": line["what"]}
        kinds = [*RESOURCES]
    elif line := _PRICE_LATER.match(message):
        news = {"note": f"price {line['what']}"}
        kinds = [managed_objects.SERVER, managed_objects.DOMAIN]
        if "server" in line["what"]:
            kinds = [managed_objects.SERVER_IP]
    else:
        return
    for key, change in found.items():
        # Where only a name says of which resource it speaks, its kind must fit: names repeat.
        is_meant = key[0] == urn if urn else change.name == line["name"] and change.kind in kinds
        if is_meant and change.action in ("create", "replace", "update", "reinstall"):
            renews = {"action": "renew"} if change.action == "update" else {}
            found[key] = replace(change, **{**news, **renews})
            return


# --- Ansible


def of_results(results: Iterable[JsonObject]) -> Iterator[PlannedChange]:
    """The changes that tasks of the collection report, of loops those of each item."""
    for result in managed_objects.flat(results):
        if not (result.get("skipped") or result.get("failed")):
            yield from _of_result(result)


def _of_result(result: JsonObject) -> Iterator[PlannedChange]:
    charge = mapping(result.get("charge"))
    amount, currency = decimal_of(charge.get("amount")), charge.get("currency")
    kind = next((kind for kind in RESOURCES if kind in result), None)
    arguments = mapping(mapping(result.get("invocation")).get("module_args"))
    module = str(result.get("action", "")).rpartition(".")[2]
    if kind is None or (charge and module not in ("", kind, f"{kind}_transfer")):
        if charge:
            name = str(arguments.get("name") or arguments.get("id") or "")
            note = "" if amount is not None else "price not known"
            yield PlannedChange(module or "task", name, "pay", {}, {}, amount, currency, note)
        return
    after = _kept(result[kind]) if isinstance(result[kind], Mapping) else None
    before = after
    if result.get("changed"):
        before = _kept({**arguments, **mapping(mapping(result.get("diff")).get("before"))})
    shown = after if after is not None else before or {}
    named_by = next((key for key in ("name", "url", "address", "id") if shown.get(key)), None)
    name = str(shown[named_by]) if named_by else _place(kind, arguments)
    declared, keeps = {**_kept(arguments), **(after or {})}, {"keep_paid": arguments.get("keep_paid")}
    if after is None:
        if result.get("changed"):
            yield PlannedChange(kind, name, "delete", before or {})
    elif not result.get("changed"):
        yield PlannedChange(kind, name, "keep", after, {**_kept(keeps), **after})
    elif after.get("id"):
        is_renewed = "renewal" in mapping(mapping(result.get("diff")).get("before"))
        is_erased = kind == managed_objects.SERVER and arguments.get("state") == "reinstalled"
        action = "renew" if is_renewed else "create" if charge else "reinstall" if is_erased else "update"
        is_new = action == "create"
        yield PlannedChange(kind, name, action, {} if is_new else after, declared, amount, currency)
    else:
        note = "price not known before its server exists" if charge and amount is None else ""
        free = Decimal(0) if "charge" in result and not charge else amount
        yield PlannedChange(kind, name, "create", {}, declared, free, currency, note)


def _place(kind: str, arguments: JsonObject) -> str:
    """What is part of a server and has no name and no id yet, by its server and its position there."""
    if RESOURCES[kind].parent != managed_objects.SERVER:
        return ""
    server = arguments.get("server_name") or arguments.get("server_id") or "new server"
    position = arguments.get("position")
    return f"{server}/{position}" if position else str(server)


def _snake(values: Any) -> dict[str, object]:
    return {name: values[camel(name)] for name in _FIELDS if camel(name) in (values or {})}


def _kept(values: JsonObject, id: object = None) -> dict[str, object]:
    kept = {name: values[name] for name in _FIELDS if values.get(name) not in (None, "")}
    if "url" in kept:
        kept["url"] = without_secrets(str(kept["url"]))
    return kept | ({"id": str(id)} if id else {})
