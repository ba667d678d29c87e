"""What a preview, or a check run of a playbook, would change: of each object what decides its price."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pulumi_hosting.api.casing import camel
from pulumi_hosting.rehearsal.facts import JsonObject, mapping
from pulumi_hosting.rehearsal.managed_objects import DOMAIN, SERVER, SERVER_IP, flat, kind_of
from pulumi_hosting.reports.report import Unusable
from pulumi_hosting.reports.run_results import failed_tasks, file_for, name_of, named, reading, task_results
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.session.text import without_secrets

_FIELDS = (
    *("id", "name", "url", "address", "server_id", "adopt_id", "currency", "auto_renew", "status"),
    *("tariff_id", "tariff", "months", "hours", "billing_cycle", "promo_code", "years"),
    *("price_monthly", "price_renew", "refund_quote", "next_due_at", "expires_at"),
)
"""What is kept of an object: nothing secret; of a URL the parts that hold none."""

_REPLACES = ("replace", "create-replacement", "delete-replaced")
_ACTIONS = {
    **{"create": "create", "update": "update", "delete": "delete", "same": "keep", "import": "import"},
    **dict.fromkeys(_REPLACES, "replace"),
}
"""Operation of an engine → action. What is only read, or leaves the state alone, is no change."""

# The severity, which Pulumi's CLI puts in front; the name, which a dynamic resource does.
_FRONT = r"(?:warning: )?(?:(?P<name>.+?): )?"
_PRICE = re.compile(
    _FRONT + r"(?:will|would) charge (?P<amount>[\d.]+) (?P<currency>\w*) \((?P<what>.*)\); run "
)
_FOR_A_DOMAIN = re.compile(r"\d years?( from \S+)?$|^transfer of |on this account already$")
_TAKEOVER = re.compile(_FRONT + r"takes over (?P<what>.*)")
_PRICE_LATER = re.compile(_FRONT + r"price of [^:]*: (?P<what>not known before [^;]*)")


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One object of a preview.

    - ``action``: ``create``, ``update``, ``replace``, ``delete``, ``keep``, ``import``, ``take over``, or
      ``renew`` as ``keep_paid`` says; of a task that pays for something, such as ``server_renew``, ``pay``.
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
    """``hidden``: how many unchanged resources the preview counts and does not show."""

    changes: tuple[PlannedChange, ...]
    hidden: int = 0

    def __add__(self, other: "Planned") -> "Planned":
        return Planned(self.changes + other.changes, self.hidden + other.hidden)


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
        return Planned(tuple(of_preview(found)), _hidden(found))
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
        f"{named(path)} is no preview and no result of a check run. Next: "
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
        kind, action = kind_of((new or old).get("type", "")), _ACTIONS.get(step.get("op", ""))
        if kind is None or action is None or (new or old).get("external"):
            continue
        key = (step["urn"], action)
        change = found.get(key, PlannedChange(kind, step["urn"].rpartition("::")[2], action))
        before = _kept(_snake(old.get("outputs")), old.get("id"))
        after = {**_kept(_snake(new.get("inputs"))), **_kept(_snake(new.get("outputs")))}
        charge = decimal_of((new.get("outputs") or {}).get("charged")) if action != "keep" else None
        found[key] = replace(
            change,
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


def _hidden(digest: JsonObject) -> int:
    counted = int((digest.get("changeSummary") or {}).get("same") or 0)
    return max(0, counted - sum(1 for step in digest.get("steps") or () if step.get("op") == "same"))


def _announce(found: dict[tuple[str, str], PlannedChange], urn: str, message: str) -> None:
    """Put what a line of the preview says about money to its resource. A dynamic resource names itself in
    front of the line, in place of the URN."""
    news: JsonObject
    if line := _PRICE.match(message):
        news = {"charge": Decimal(line["amount"]), "currency": line["currency"] or None}
        kind = DOMAIN if _FOR_A_DOMAIN.search(line["what"]) else SERVER
        kinds = [SERVER_IP if line["what"].startswith("an address") else kind]
    elif line := _TAKEOVER.match(message):
        news = {"action": "take over", "charge": Decimal(0), "note": f"takes over {line['what']}"}
        kinds = [*RESOURCES]
    elif line := _PRICE_LATER.match(message):
        news = {"note": f"price {line['what']}"}
        kinds = [SERVER_IP] if "server" in line["what"] else [SERVER, DOMAIN]
    else:
        return
    for key, change in found.items():
        # Where only a name says of which resource it speaks, its kind must fit: names repeat.
        is_meant = key[0] == urn if urn else change.name == line["name"] and change.kind in kinds
        if is_meant and change.action in ("create", "replace", "update"):
            renews = {"action": "renew"} if change.action == "update" else {}
            found[key] = replace(change, **{**news, **renews})
            return


# --- Ansible


def of_results(results: Iterable[JsonObject]) -> Iterator[PlannedChange]:
    """The changes that tasks of the collection report, of loops those of each item."""
    for result in flat(results):
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
    declared = {**_kept(arguments), **(after or {})}
    if after is None:
        if result.get("changed"):
            yield PlannedChange(kind, name, "delete", before or {})
    elif not result.get("changed"):
        yield PlannedChange(kind, name, "keep", after, after)
    elif after.get("id"):
        is_renewed = "renewal" in mapping(mapping(result.get("diff")).get("before"))
        action = "renew" if is_renewed else "create" if charge else "update"
        is_new = action == "create"
        yield PlannedChange(kind, name, action, {} if is_new else after, declared, amount, currency)
    else:
        note = "price not known before its server exists" if charge and amount is None else ""
        free = Decimal(0) if "charge" in result and not charge else amount
        yield PlannedChange(kind, name, "create", {}, declared, free, currency, note)


def _place(kind: str, arguments: JsonObject) -> str:
    """What is part of a server and has no name and no id yet, by its server and its position there."""
    if RESOURCES[kind].parent != SERVER:
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
