"""What is on the account and managed by nothing that was given: no Pulumi stack, no Ansible run."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pulumi_hosting.provider.names import class_of, token
from pulumi_hosting.rehearsal.managed_objects import ManagedObject, ManagedObjects
from pulumi_hosting.reports.account_objects import AccountObject, AccountObjects, named
from pulumi_hosting.resources.powers import natural_key
from pulumi_hosting.session.prepaid import ENDED

Form = Literal["native", "dynamic", "ansible"]
"""The native provider, dynamic resources, a playbook."""


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """One object that nothing manages.

    - ``adopt``: what declares it without buying or changing it; ``remove``: what deletes it; empty if it was
      not asked for.
    """

    object: AccountObject
    adopt: str
    remove: str

    def facts(self) -> dict[str, Any]:
        """The same for machines."""
        facts = {
            **self.object.facts(),
            "ownership_tag": self.object.tag,
            "note": self.object.note,
            "adopt": self.adopt,
        }
        return facts | ({"remove": self.remove} if self.remove else {})


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
    ended: tuple[AccountObject, ...] = ()
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
    held = {(item.kind, item.id) for item in managed} | {(item.kind, item.name) for item in managed}
    extra = [found for found in account if not _is_held(found, held)]
    unmanaged_servers = {found.id for found in extra if found.kind == "server"}
    rows = [found for found in extra if not _goes_with(found, unmanaged_servers) and not found.is_ending]
    return Audit(
        tuple(
            Unmanaged(found, adopt_command(found, form), remove_command(found, form) if commands else "")
            for found in rows
        ),
        tuple(_missing(account, managed)),
        account.unread,
        tuple(found for found in extra if found.is_ending),
        tuple(found for found in account if found.note in ENDED and found not in extra),
    )


def adopt_command(found: AccountObject, form: Form) -> str:
    """What brings the object under management: of the native provider a command, else what to declare."""
    if found.id.startswith("order:"):
        return "wait until the order is delivered, then run audit again"
    if form == "native":
        return f"pulumi import {token(class_of(found.kind))} NAME {found.id}"
    if form == "ansible":
        return f"declare the task hosting.cloud.{found.kind}: {{id: {found.id}, ...}}"
    by = [f'adopt_id="{found.adopt_id}"'] if found.adopt_id else natural_key(found.resource)
    return f'declare hosting.{class_of(found.kind)}("NAME", {", ".join((*by, "..."))})'


def remove_command(found: AccountObject, form: Form) -> str:
    """What deletes the object; of a domain, what ends its renewal, since nothing deletes one."""
    if found.id.startswith("order:"):
        return "wait until the order is delivered"
    if form != "ansible" and found.kind == "ssh_key":
        return "delete it in the control panel"  # a stack keeps the keys that it did not add
    if form == "native":
        type = token(class_of(found.kind))
        take = f"pulumi import --protect=false --generate-code=false {type} NAME {found.id}"
        return f"{take} && pulumi destroy --target '**{type}::NAME'"
    if form == "dynamic":
        return "declare it, pulumi up, delete the declaration, pulumi up"
    if found.kind == "domain":
        return f"ansible localhost -m hosting.cloud.domain -a 'name={found.name} auto_renew=false'"
    if found.kind in ("server_ip", "ptr"):
        server, _, address = found.id.partition("/")
        address = found.state.values().get("address") or address
        arguments = f"server_id={server} address={address}"
    else:
        arguments = f"id={found.id}"
    return f"ansible localhost -m hosting.cloud.{found.kind} -a '{arguments} state=absent'"


def _is_held(found: AccountObject, held: Iterable[tuple[str, str]]) -> bool:
    return (found.kind, found.id) in held or (found.kind == "domain" and (found.kind, found.name) in held)


def _goes_with(found: AccountObject, servers: Iterable[str]) -> bool:
    """Reverse DNS of a server that is listed itself: it goes with the server and costs nothing."""
    return found.kind == "ptr" and found.id.partition("/")[0] in servers


def _missing(account: AccountObjects, managed: ManagedObjects) -> Iterator[ManagedObject]:
    known = {(found.kind, found.id) for found in account} | {(found.kind, found.name) for found in account}
    for item in managed:
        is_settled = item.mode == "live" and not item.is_leaving and item.id[:1].isdigit()
        if is_settled and item.kind not in account.unread and (item.kind, item.id) not in known:
            yield item
