"""What is on the account and managed by nothing that was given: no Pulumi stack, no Ansible run."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from operator import add
from pathlib import Path
from shutil import which
from typing import Literal

from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.provider.names import class_of, dynamic_token, token
from pulumi_hosting.rehearsal.facts import Json
from pulumi_hosting.rehearsal.managed_objects import ManagedObject, ManagedObjects
from pulumi_hosting.reports import report
from pulumi_hosting.reports.account_objects import AccountObject, AccountObjects, named, read_account
from pulumi_hosting.reports.recovery import unfinished
from pulumi_hosting.reports.run_results import managed_by, run_results, stack_export
from pulumi_hosting.resources.powers import natural_key
from pulumi_hosting.session.prepaid import ENDED

Form = Literal["native", "dynamic", "ansible"]
"""The native provider, dynamic resources, a playbook."""


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """One object that nothing manages.

    - ``form``: what is to adopt it; ``commands``: whether to say what removes it, too.
    """

    object: AccountObject
    form: Form
    commands: bool

    def facts(self) -> dict[str, Json]:
        """The same for machines."""
        facts: dict[str, Json] = {
            **self.object.facts(),
            "ownership_tag": self.object.tag,
            "note": self.object.note,
            "adopt": adopt_command(self.object, self.form, values := _values(self.object)),
        }
        return facts | ({"remove": remove_command(self.object, self.form, values)} if self.commands else {})


@dataclass(frozen=True, slots=True)
class Audit:
    """``missing``: what is managed, and is not on the account. ``ending``: unmanaged too, but nothing is left
    to do: it is paid, is not renewed, and cannot be deleted. ``ended``: what is managed, and whose paid time
    is over; ``uncovered``: a line for each object that ends soon and is not paid for.
    """

    unmanaged: tuple[Unmanaged, ...]
    missing: tuple[ManagedObject, ...]
    unread: Mapping[str, str]
    ending: tuple[AccountObject, ...]
    ended: tuple[AccountObject, ...]
    uncovered: tuple[str, ...] = ()

    def facts(self) -> dict[str, object]:
        """The same for machines."""
        return {
            "unmanaged": [row.facts() for row in self.unmanaged],
            "missing": [named(item) for item in self.missing],
            "ending": [named(item) for item in self.ending],
            "ended": [{**named(item), "status": item.note} for item in self.ended],
            "uncovered": [*self.uncovered],
            "not_checked": dict(self.unread),
        }


def audit(account: AccountObjects, managed: ManagedObjects, form: Form, *, commands: bool) -> Audit:
    """Compares the account with what is ``managed``. A primary address goes with its server, so only bought
    addresses and reverse DNS are objects of their own. ``form``: what adopts the rest; ``commands``: say what
    removes it too, for a ``managed`` that is complete.
    """
    held = {(item.kind, item.id) for item in managed}
    held |= {(item.kind, item.name) for item in managed if item.kind == "domain"}
    extra = [found for found in account if not _is_held(found, held)]
    servers = {found.id for found in extra if found.kind == "server"}
    # reverse DNS of a server that is listed itself goes with the server and costs nothing
    listed = [found for found in extra if found.kind != "ptr" or found.id.partition("/")[0] not in servers]
    rows = [found for found in listed if not found.is_ending]
    return Audit(
        tuple(Unmanaged(found, form, commands) for found in rows),
        tuple(_missing(account, managed)),
        account.unread,
        tuple(found for found in extra if found.is_ending),
        tuple(found for found in account if found.note in ENDED and found not in extra),
    )


_PLACES = {"id": "ID", "own_id": "ID", "name": "DOMAIN", "server": "SERVER_ID", "address": "ADDRESS"}
"""What a hint for all objects of a kind has in place of their values."""


def _values(found: AccountObject) -> dict[str, str]:
    server, _, address = found.id.partition("/")
    address = found.state.values().get("address") or address
    own = found.adopt_id or ""
    return {"id": found.id, "own_id": own, "name": found.name, "server": server, "address": address}


def _is_order(found: AccountObject) -> bool:
    return found.id.startswith("order:")


def adopt_command(found: AccountObject, form: Form, values: Mapping[str, str]) -> str:
    """What brings an object of this kind under management: of the native provider a command, else what to
    declare.
    """
    if _is_order(found):
        return "wait until it is delivered, then run audit again"
    if form == "native":
        return f"pulumi import {token(class_of(found.kind))} NAME {values['id']}"
    if form == "ansible":
        return f"declare the task hosting.cloud.{found.kind}: {{id: {values['id']}, ...}}"
    by = [f'adopt_id="{values["own_id"]}"'] if found.adopt_id else natural_key(found.resource)
    return f'declare hosting.{class_of(found.kind)}("NAME", {", ".join((*by, "..."))})'


def remove_command(found: AccountObject, form: Form, values: Mapping[str, str]) -> str:
    """What deletes it; of a domain, what ends its renewal, since nothing deletes one."""
    if _is_order(found):
        return "wait until it is delivered"
    if form != "ansible" and found.kind == "ssh_key":
        return "delete it in the control panel"  # a stack keeps the keys that it did not add
    if form == "native":
        type = token(class_of(found.kind))
        take = f"pulumi import --protect=false --generate-code=false {type} NAME {values['id']}"
        return f"{take} && pulumi destroy --target '**{type}::NAME'"
    if form == "dynamic":
        return "declare it, pulumi up, delete the declaration, pulumi up"
    if found.kind == "domain":
        return f"ansible localhost -m hosting.cloud.domain -a 'name={values['name']} auto_renew=false'"
    arguments = f"id={values['id']}"
    if found.kind in ("server_ip", "ptr"):
        arguments = f"server_id={values['server']} address={values['address']}"
    return f"ansible localhost -m hosting.cloud.{found.kind} -a '{arguments} state=absent'"


def form_there(stacks: Iterable[Path], results: Iterable[Path]) -> Form:
    """What adopts objects without ``--form``: what made the given files, else what is installed."""
    if exports := "".join(path.read_text(errors="replace") for path in stacks):
        is_dynamic = dynamic_token("") in exports and f'"{token("")}' not in exports
        return "dynamic" if is_dynamic else "native"
    return "ansible" if (results or which("ansible-playbook")) and not which("pulumi") else "native"


def _is_held(found: AccountObject, held: Iterable[tuple[str, str]]) -> bool:
    return (found.kind, found.id) in held or (found.kind == "domain" and (found.kind, found.name) in held)


def _missing(account: AccountObjects, managed: ManagedObjects) -> Iterator[ManagedObject]:
    known = {(found.kind, found.id) for found in account}
    known |= {(found.kind, found.name) for found in account if found.kind == "domain"}
    for item in managed:
        is_settled = item.mode == "live" and not item.is_leaving and item.id[:1].isdigit()
        if is_settled and item.kind not in account.unread and (item.kind, item.id) not in known:
            yield item


# --- the report

_NOT_GIVEN = {
    "pulumi": "no stack was given, so objects that stacks manage are listed too. "
    "Next: pulumi stack export > prod.json, then --stack prod.json",
    "ansible": "no playbook run was given, so objects that playbooks manage are listed too. "
    "Next: run the playbook with --check and the callback hosting.cloud.drift, then --results drift.json",
}
"""What is missing to tell what is managed, and how to give it."""


def run(
    asking: report.Asking,
    stacks: tuple[Path, ...],
    results: tuple[Path, ...],
    form: Form | None,
    commands: bool,
    ends_within: timedelta | None,
) -> report.Report:
    form = form or form_there(stacks, results)
    is_given = stacks or (form == "ansible" and results)
    not_given = "" if is_given else _NOT_GIVEN["ansible" if form == "ansible" else "pulumi"]
    if commands and not_given:
        raise report.Unusable(f"--commands names what deletes objects, but {not_given}")
    managed = reduce(add, [*map(managed_by, stacks), *map(run_results, results)], ManagedObjects())
    with asking() as (request, step):
        account = read_account(request, step)
        paid = None if ends_within is None else paid_time_of(request).kept_paid(managed.kept_paid)
    found = audit(account, managed, form, commands=commands)
    warnings = [not_given] if found.unmanaged and not_given else []
    warnings += _interrupted(stacks if found.unmanaged else ())
    warnings += [report.not_read(report.plural(kind), why, "checked") for kind, why in found.unread.items()]
    if paid is not None:
        named = {(one.kind, one.id) for one in found.ended}
        ends = [event for event in paid.uncovered(ends_within) if event.what.key not in named]
        found = replace(found, uncovered=tuple(map(paid.described, ends)))
        warnings += [report.not_read(what, why) for what, why in paid.refused.items()]
    has_found = found.unmanaged or found.ended or found.uncovered
    exit_code = report.FOUND if has_found else 1 if found.unread or (paid and paid.refused) else 0
    return report.Report(found.facts(), [*_sections(found, form, commands=commands)], warnings, exit_code)


def _interrupted(stacks: Iterable[Path]) -> Iterator[str]:
    for stack in stacks:
        with stack_export(stack) as export:
            if unfinished(export):
                yield (
                    f"the run before {stack.name} was interrupted, and what it made may be listed. Next: "
                    f"pulumi-hosting recover {stack}, before anything is removed"
                )


def _sections(found: Audit, form: Form, *, commands: bool) -> Iterator[report.Section]:
    for item in found.missing:
        step = "run the playbook" if form == "ansible" else "pulumi up --refresh"
        yield f"{item} is managed and not on the account. Next: {step}"
    for one in found.ended:
        values = one.state.values()
        until = values.get("expires_at") or values.get("next_due_at")
        paid = f" (paid until {until[:10]})" if until else ""
        yield f"{one.kind} {one.name} ({one.id}) is {one.note}{paid}. Next: pulumi-hosting renewals"
    yield from found.uncovered
    for one in found.ending:
        yield f"{one.kind} {one.name} ({one.id}) is in no stack and no playbook: {one.note}."
    if found.unread:
        yield f"Not checked: {', '.join(map(report.plural, found.unread))}."
    if not found.unmanaged:
        if not (found.ended or found.uncovered):
            what = "that was checked" if found.unread else "on the account"
            yield f"Everything {'else ' if found.ending else ''}{what} is managed."
        return
    objects = [row.object for row in found.unmanaged]
    rows = [
        (one.kind, one.id, one.name, report.money(one.price_monthly, one.currency), one.tag, one.note)
        for one in objects
    ]
    yield report.Table(("KIND", "ID", "NAME", "PER MONTH", "TAG", "NOTE"), rows)
    monthly = report.totals((one.price_monthly, one.currency) for one in objects)
    counts = Counter(report.plural(one.kind) for one in objects)
    counted = ", ".join(f"{number} {kind if number > 1 else kind[:-1]}" for kind, number in counts.items())
    yield f"\n{len(objects)} unmanaged ({counted}), {monthly} per month\n"
    yield from _hints("adopt", objects, adopt_command, form)
    yield f"To adopt everything: pulumi-hosting import DIR --form {form}\n"
    if commands:
        yield from _hints("remove", objects, remove_command, form)
    else:
        yield "To see what removes them: --commands"


def _hints(
    verb: str, objects: Iterable[AccountObject], command: Callable[..., str], form: Form
) -> Iterable[str]:
    """One line for each kind, with the table's columns in place of values."""
    lines: dict[str, None] = {}
    for one in objects:
        places = _PLACES | ({"own_id": "ADDRESS"} if one.resource.parent else {})
        title = f"{'ordered ' * _is_order(one)}{one.resource.title}"
        lines[f"To {verb} each {title}: {command(one, form, places)}"] = None
    return lines
