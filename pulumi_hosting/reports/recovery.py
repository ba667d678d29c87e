"""What an interrupted run left in a stack's state: what is pending, what of it exists on the account, and the
command that resolves it.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from pulumi_hosting.api.values import fingerprint
from pulumi_hosting.client.exceptions import HostingError, NotFound
from pulumi_hosting.exactly_once import address_list
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY
from pulumi_hosting.exactly_once.order_facts import has_ended, how_order_ended
from pulumi_hosting.exactly_once.ownership_tag import is_tag, is_tag_of
from pulumi_hosting.provider.names import identity_of
from pulumi_hosting.rehearsal.facts import Json, JsonObject, ReportFacts
from pulumi_hosting.rehearsal.managed_objects import PTR, SERVER_IP, SSH_KEY, ManagedObjects, kind_of
from pulumi_hosting.reports.account_objects import AccountObject, AccountObjects, read_account
from pulumi_hosting.reports.report import FOUND, Asking, CannotAnswer, Report, Section, Table, money
from pulumi_hosting.reports.run_results import stack_export
from pulumi_hosting.resources.server_ip import PENDING
from pulumi_hosting.session.request import Request

UP, REFRESH, CLEAR = "pulumi up --yes", "pulumi refresh --yes", "pulumi refresh --yes --clear-pending-creates"
UP_REFRESH = "pulumi up --yes --refresh"
_ORDER = (UP, UP_REFRESH, REFRESH, CLEAR)
"""The order in which the commands are run: what was created is found before anything else is read."""


@dataclass(frozen=True, slots=True)
class Unfinished(ReportFacts):
    """One resource that an interrupted run left unfinished.

    - ``pending``: what the run was doing, such as ``creating`` or ``deleting``.
    - ``account``: what of it is on the account, in words; ``objects`` are the same for machines.
    - ``in_empty_stack``: nothing else is in the state, as after a destroy.
    - ``command``: what resolves it. ``edit``: what to change in the program before, where that is needed.
    """

    JSON = ("kind", "name", "urn", "id", "pending", "account", "objects", "edit", "command")

    kind: str
    name: str
    urn: str
    id: str
    pending: str
    command: str
    account: str = "not checked"
    edit: str = ""
    objects: tuple[AccountObject, ...] = ()
    state: JsonObject = field(default_factory=dict)
    in_empty_stack: bool = False

    def facts(self) -> dict[str, Json]:
        """Nothing of the state's inputs, which may be secret."""
        return {name: None if value == "" else value for name, value in ReportFacts.facts(self).items()}


def commands(rows: Iterable[Unfinished]) -> list[str]:
    """The commands of all rows, each once, in the order in which they are to be run."""
    found = dict.fromkeys(row.command for row in rows)
    return sorted(found, key=lambda command: _ORDER.index(command.partition(" --stack ")[0]))


def unfinished(export: JsonObject) -> list[Unfinished]:
    """What is unfinished in a stack's export."""
    deployment = export["deployment"]
    resources = [row for row in deployment.get("resources") or () if kind_of(row.get("type", ""))]
    rows = [*_operations(deployment, resources)]
    known = {(row.urn, row.id) for row in rows}
    others = filter(None, map(_of_resource, resources))
    return rows + [row for row in others if (row.urn, row.id) not in known]


# --- the state


def _operations(deployment: JsonObject, resources: Iterable[JsonObject]) -> Iterator[Unfinished]:
    present = {row["urn"]: row for row in resources if not row.get("delete")}
    for operation in deployment.get("pending_operations") or ():
        resource, type = operation["resource"], operation["type"]
        if kind_of(resource.get("type", "")) is None:
            continue
        if type != "creating":
            yield _row(resource, type, UP if type == "importing" else REFRESH)
            continue
        found = present.get(resource["urn"])
        later = found is not None and found.get("created") != resource.get("created")
        if resource.get("id") or later:  # a later run found it; the engine keeps the entry
            yield _row({**resource, "id": ""}, "created since; only the entry is left", CLEAR)
        else:
            row = _row({**resource, "id": ""}, "creating", UP)
            yield replace(row, in_empty_stack=not deployment.get("resources"))


def _of_resource(resource: JsonObject) -> Unfinished | None:
    id = str(resource.get("id") or "")
    if resource.get("delete"):
        return _row(resource, "replaced, and still to be deleted", UP)
    if id.startswith((ORDER_PREFIX, PENDING)):
        return _row(resource, "ordered, and not delivered when the run ended", UP_REFRESH)
    if resource.get("pendingReplacement"):
        return _row(resource, "deleted, and not made again", UP)
    if resource.get("initErrors"):
        return _row(resource, "created, and not completely set up", UP)
    return None


def _row(resource: JsonObject, pending: str, command: str) -> Unfinished:
    urn = resource["urn"]
    stack = urn.removeprefix("urn:pulumi:").partition("::")[0]
    return Unfinished(
        kind=kind_of(resource["type"]) or "",
        name=urn.split("::", 3)[-1],
        urn=urn,
        id=str(resource.get("id") or ""),
        pending=pending,
        command=f"{command} --stack {stack}",
        state={**(resource.get("inputs") or {}), **(resource.get("outputs") or {})},
    )


# --- the account


def _checked(
    row: Unfinished, request: Request, account: AccountObjects, others: Iterable[AccountObject]
) -> Unfinished:
    if row.kind in account.unread:
        return _with(row, f"not checked: {account.unread[row.kind]}")
    if row.pending == "creating":
        return _created(row, request, [item for item in others if item.kind == row.kind])
    try:
        if row.id.startswith(ORDER_PREFIX):
            return _with(row, _order(request, row.id.removeprefix(ORDER_PREFIX)))
        if row.id.startswith(PENDING):
            server_id, _, number = row.id.removeprefix(PENDING).partition("/")
            which = int(number) if number.isdecimal() else None
            verdict = address_list.became_of(request, server_id, which)
            return _with(row, verdict.sentence(f"the purchase of an address for server {server_id}"))
    except (HostingError, ValueError) as error:
        return _with(row, f"not checked: {error}")
    if not row.id:
        return _with(row, "in the state")
    found = [item for item in account if item.kind == row.kind and row.id in (item.id, item.name)]
    return _with(row, _named(found, "is there") if found else f"{_title(row.kind)} {row.id} is gone", found)


def _created(row: Unfinished, request: Request, others: Iterable[AccountObject]) -> Unfinished:
    """``others``: what no stack holds, of its kind."""
    identity = str(row.state.get("__identity") or identity_of(row.urn, row.kind))
    tagged = [item for item in others if is_tag_of(item.tag, identity)]
    alike = [item for item in others if not is_tag(item.tag) and _is_alike(row, item)]
    found = tagged or alike
    if not found:
        command = row.command.replace(UP, CLEAR, 1) if row.in_empty_stack else row.command
        return replace(_with(row, "nothing of it"), command=command)
    named = "may be its" if row.kind == SERVER_IP else "has its name"
    how, edit = "carries its ownership tag" if tagged else named, ""
    old = [item for item in found if _age(item, request) > KEY_MEMORY]
    if old and row.kind != SSH_KEY and (id := old[0].adopt_id):
        how = f"{how}, older than seven days"
        what = f"{_title(row.kind)} {row.name}"
        edit = f'set adopt_id="{id}" on {what} in the program, if it is this resource\'s'
    return _with(row, _named(found, how), found, edit)


def _is_alike(row: Unfinished, item: AccountObject) -> bool:
    """Whether an object without a tag may be what the resource was making."""
    declared, values = row.state, item.state.values()
    if row.kind == SSH_KEY:
        with suppress(IndexError, ValueError):  # a key that is no key: nothing was made of it
            return fingerprint(str(declared.get("publicKey"))) == values.get("fingerprint")
        return False
    if row.kind in (SERVER_IP, PTR):
        is_same = str(declared.get("serverId")) == str(values.get("server_id") or item.id.partition("/")[0])
        return is_same and (row.kind == SERVER_IP or declared.get("address") in (None, values.get("address")))
    key = "url" if row.kind == "webhook_subscription" else "name"
    return bool(declared.get(key)) and declared[key] == values.get(key)


def _age(item: AccountObject, request: Request) -> timedelta:
    values = item.state.values()
    made = values.get("created_at") or values.get("registered_at") or values.get("added_at")
    return request.service_now() - datetime.fromisoformat(made) if made else timedelta(0)


def _order(request: Request, number: str) -> str:
    try:
        order = request.client.orders.get(int(number))
    except NotFound:
        return f"order {number} is unknown"
    if order.server_id is None and has_ended(request, order):
        return how_order_ended(request, order, order.server_name)
    server = f", server {order.server_id}" if order.server_id else ""
    return f"order {number} is {order.status}{server}"


def _named(found: Iterable[AccountObject], how: str) -> str:
    parts = []
    for item in found:
        price = f"{money(item.price_monthly, item.currency)} per month" if item.price_monthly else ""
        known = ", ".join(filter(None, (item.name, price)))
        parts.append(f"{_title(item.kind)} {item.id} {f'({known}) ' if known else ''}{how}")
    return "; ".join(parts)


def _title(kind: str) -> str:
    return kind.replace("_", " ")


def _with(row: Unfinished, account: str, objects: Iterable[AccountObject] = (), edit: str = "") -> Unfinished:
    return replace(row, account=account, objects=tuple(objects), edit=edit)


# --- the report


def run(asking: Asking, export: Path) -> Report:
    with stack_export(export) as found:
        rows = unfinished(found)
        held = {(item.kind, item.id) for item in ManagedObjects.of_stack(found)}
    if not rows:
        return Report({"unfinished": [], "commands": []}, ["Nothing is unfinished."])
    warnings = []
    try:
        with asking() as (request, step):
            account = read_account(request, step, dict.fromkeys(row.kind for row in rows))
            others = [item for item in account if (item.kind, item.id) not in held]
            rows = [_checked(row, request, account, others) for row in rows]
    except CannotAnswer as error:
        warnings.append(f"the account was not checked: {error}")
    facts = {"unfinished": [row.facts() for row in rows], "commands": commands(rows)}
    return Report(facts, [*_sections(rows)], warnings, FOUND)


def _sections(rows: list[Unfinished]) -> Iterator[Section]:
    cells = [(_title(row.kind), row.name, row.pending, row.account) for row in rows]
    yield Table(("KIND", "NAME", "PENDING", "ON THE ACCOUNT"), cells)
    yield ""
    for row in rows:
        if row.edit:
            yield f"Before: {row.edit}"
    for command in commands(rows):
        yield f"Next: {command}"
    yield "If the stack is locked by the killed run: pulumi cancel. Then run recover on a new export."
