"""The purchases under way on this machine, or on those that share a store.

An entry is written before a purchase is sent, and removed once its result was reported to the frontend. An
entry of a process that has ended shows that a run was interrupted while it bought: no report has told yet
what was charged. Without the file (another machine) a run says less, and buys no more.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.shared_store import Scope
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY
from pulumi_hosting.exactly_once.payments import DOMAIN_PURCHASES, IP_PURCHASES, Payment, first_since
from pulumi_hosting.session.request import Request

_KIND = "open"
SENT_WITHIN = timedelta(minutes=15)  # a request may wait that long for the rate limit, and be repeated
_INVOICES = {
    "server": ("server_id", ("vds_purchase",)),
    "server_ip": ("server_id", IP_PURCHASES),
    "domain": ("domain_id", DOMAIN_PURCHASES),
    "server_renew": ("server_id", ("vds_renewal",)),
    "domain_renew": ("domain_id", ("domain_renewal",)),
    "invoice_pay": ("invoice_id", ()),
}
"""What the invoice of a purchase names, and its types; none: all."""
_CLOCKS_DIFFER = timedelta(minutes=5)  # if the service has not said its time yet


@dataclass(frozen=True, slots=True)
class Entry:
    """An unreported purchase.

    ``at``: when it was begun, by the service's clock if that is known, else by this machine's. ``key``:
    what it was first sent with.
    """

    at: datetime
    key: str


def unreported(client: Client, entry: Entry | None, kind: str, shown: Mapping[str, Any]) -> Payment | None:
    """What an interrupted purchase of this ``kind`` charged, if the account shows it. ``shown``: the fields
    of what it bought, or of what it was for."""
    if entry is None:
        return None
    return paid_for(client, kind, shown, entry.at - _CLOCKS_DIFFER, entry.at + SENT_WITHIN)


def paid_for(
    client: Client, kind: str, shown: Mapping[str, Any], since: datetime, until: datetime
) -> Payment | None:
    """The first payment of a purchase of this ``kind`` in that time; ``shown`` as in :func:`unreported`. None
    for what has no number yet."""
    name, types = _INVOICES[kind]
    id = str(shown.get(name) or shown.get("id"))
    return first_since(client, since, until, types, **{name: int(id)}) if id.isdecimal() else None


def interrupted(request: Request, kind: str, subject: str = "") -> Entry | None:
    """The purchase of this declaration that an interrupted run began and did not report. ``subject``: what it
    is for, if the declaration alone does not tell. May ask for the account of the key, and only if this
    machine knows of any purchase under way."""
    found = _of_an_ended_process(request, kind, subject)
    if found is None:
        return None
    request.unreported.append(found[0])
    return found[1]


def is_interrupted(request: Request, kind: str, made: datetime | None = None) -> bool:
    """Whether an interrupted run of this machine began a purchase of this declaration and did not report it.
    ``made``: when the object was made that it may have brought."""
    found = _of_an_ended_process(request, kind, "")
    if found is None or made is None:
        return found is not None
    return -_CLOCKS_DIFFER <= made - found[1].at <= KEY_MEMORY


def _of_an_ended_process(request: Request, kind: str, subject: str) -> tuple[tuple[Scope, str], Entry] | None:
    """The file of the purchase, and what it says."""
    try:
        if request.client.is_test_key or not local_files.may_have(request.client, _KIND):
            return None
        scope, name = local_files.account_scope(request.client), _purpose(request, kind, subject)
        found = local_files.read(scope, name, survives=False, kind=_KIND)
    except local_files.LocalFilesError:
        return None
    try:
        process, entry = int(found["process"]), Entry(datetime.fromisoformat(found["at"]), str(found["key"]))
        is_alive = process != scope.store.process and scope.store.living()(process)
    except (KeyError, TypeError, ValueError, local_files.LocalFilesError):  # there is none, or it is damaged
        return None
    return None if is_alive else ((scope, name), entry)


def begin(request: Request, kind: str, subject: str, key: str, earlier: Entry | None) -> None:
    """Write the entry of a purchase that is about to be sent; that of an ``earlier`` run goes on. Raises
    :class:`LocalFilesError`."""
    if request.client.is_test_key:  # nothing is paid
        return
    name = _purpose(request, kind, subject)
    entry = earlier or Entry(request.client.known_time or request.clock.now(), key)
    scope = local_files.account_scope(request.client)
    values = {"at": entry.at.isoformat(), "key": entry.key, "process": scope.store.process}
    local_files.write(scope, name, values, survives=False, kind=_KIND)
    request.unreported.append((scope, name))


def reported(entries: list[tuple[Scope, str]]) -> None:
    """The frontend has been given the results of these purchases: the ``unreported`` ones of a request."""
    while entries:
        with suppress(local_files.LocalFilesError):
            local_files.remove(*entries.pop(), kind=_KIND)


def end(request: Request, kind: str, subject: str = "") -> None:
    """Nothing is left to report of this declaration's purchase."""
    reported([(local_files.account_scope(request.client), _purpose(request, kind, subject))])


def _purpose(request: Request, kind: str, subject: str) -> str:
    return f"{kind} {request.identity} {subject}"
