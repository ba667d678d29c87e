# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tasks of one run know of each other: charges, changes that check mode predicts, and answers of the
service.

Tasks run in processes of their own. In the controller the memory is kept in files that these share
(:mod:`..plugin_utils.run_files`); a module's process is given a copy, and returns what is new.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from decimal import Decimal
from functools import cached_property
from time import monotonic
from typing import Any
from uuid import uuid4

from .json_types import Json, Values

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.api.models import Me
    from pulumi_hosting.client.client import Client
    from pulumi_hosting.client.requests import HttpRequest
    from pulumi_hosting.planning.budget import Book
    from pulumi_hosting.session.account_snapshot import AccountSnapshot, InMemory
    from pulumi_hosting.session.account_snapshot import Storage as SnapshotStorage
    from pulumi_hosting.session.shared_reads import Reads


UNKNOWN_ACCOUNT = "?"
"""The account of a key that the controller does not know. Its charges count for every account, and those of
every account for it."""
CHARGED, PREDICTED, PLANNED, SHOWN = "charged", "predicted", "planned", "shown"
DECLARED = "declared"
"""The parts that are stored: charges, charges predicted by check mode, changes predicted by check mode, which
lines were shown that a run shows once, and which servers its tasks declare."""

RUN_SECONDS = 86400.0
"""Longer than a run takes."""

FIRST_ID = 1_900_000_000
"""Ids of planned objects begin here. The service counts from 1, and simulated objects from 2,000,000,000 (API
document)."""
_ID_COUNT = 100_000_000

Effect = list[Any]
"""One predicted change, as JSON holds it: ``["add", kind, item]``, ``["set", kind, id, fields]``,
``["delete", kind, id]``, ``["charge", amount]`` or ``["revoke"]``. Items and fields have the API's names;
``billing.auto_renew`` is a field of ``billing``. No secret is part of it."""


def planned_id(kind: str, name: str) -> int:
    """The id of an object that does not exist yet. One object has the same id in every process of the run."""
    return FIRST_ID + zlib.crc32(f"{kind}/{name}".encode()) % _ID_COUNT


def is_planned(id: object) -> bool:
    """Whether the id is that of an object that does not exist yet.

    >>> is_planned(planned_id("server", "web-1")), is_planned("20001")
    (True, False)
    """
    text = str(id)
    return text.isascii() and text.isdigit() and FIRST_ID <= int(text) < FIRST_ID + _ID_COUNT


class ProcessStorage:
    """Where the memory of a run is kept: in this process. ``parts``: what is known of it."""

    def __init__(self, parts: dict[str, Json] | None = None) -> None:
        self._parts = parts or {}

    def open(self, part: str) -> AbstractContextManager[Json]:
        """The content of one part, for one process at a time. Changes of it are kept."""
        return nullcontext(self._parts.setdefault(part, {}))

    def snapshot(self, scope: Callable[[], str]) -> SnapshotStorage | None:
        """Where the snapshot of an account is kept; None: in this process. ``scope``: what
        distinguishes it from those of other accounts."""
        return None

    def forget_snapshots(self) -> None:
        """Ask every account again."""


class RunMemory:
    """The memory of one run, as one task uses it. See the methods by what they remember: charged (it is the
    ledger of the task's budget), planned, reads.

    - ``storage``: where it is kept.
    - ``account``: whose money the task spends. Called when it is needed first: it may ask the service.
    - ``key``: what stands for the task's API key and service, without telling them.
    - ``rights``: what distinguishes the key's rights from those of others. Called as ``account`` is.
    - ``holder``: what distinguishes the task from those of other hosts.
    - ``check_mode``: whether charges are only predicted.
    - ``allowance``: what was booked for a task that goes on alone (``async``); None for all others.
    """

    def __init__(
        self,
        storage: ProcessStorage,
        *,
        account: Callable[[], str],
        key: str = "",
        rights: Callable[[], str] = lambda: "",
        holder: str = "",
        check_mode: bool = False,
        allowance: Decimal | None = None,
    ) -> None:
        self._storage, self._ask_account, self._key, self._holder = storage, account, key, holder
        self._ask_rights, self._plans = rights, key
        self._charges = PREDICTED if check_mode else CHARGED
        self.allowance = allowance

    @classmethod
    def of_controller(cls, given: Values, *, check_mode: bool) -> RunMemory:
        """The memory of a module's process. ``given``: what the controller's ``for_module`` returned, and
        ``booked`` for a task that goes on alone."""
        booked = given.get("booked")
        allowance = None if booked is None else Decimal(str(booked["amount"]))
        storage = ProcessStorage(given.get("parts"))
        return cls(storage, account=lambda: "", check_mode=check_mode, allowance=allowance)

    def for_module(self, *, charges: bool) -> Json:
        """What a module's process must know. ``charges``: whether the task has a limit, and so must know what
        was spent."""
        parts: Json = {PLANNED: {"": self.effects}, DECLARED: {"": self._declared}}
        if charges:
            spent = [
                {"account": "", "amount": amount, "currency": unit} for unit, amount in self.spent().items()
            ]
            parts[self._charges] = {"spent": spent, "stopped": {"": self.stopped}}
        return {"parts": parts}

    def without_planned(self) -> RunMemory:
        """The same charges, and no predicted changes: for a task of which only the price is needed."""
        twin = copy.copy(self)
        twin._plans = uuid4().hex
        return twin

    @cached_property
    def account(self) -> str:
        return self._ask_account()

    # --- charged

    @contextmanager
    def open(self, book: Book, identity: str) -> Iterator[None]:
        """Count a purchase of a :class:`~pulumi_hosting.planning.budget.Budget` together with those of all
        tasks.

        One that is booked and never settled stays counted, since it may have been charged. Booked again (a
        retry, a rescue, the same task on another host), it is counted once. ``identity``: what is bought,
        such as ``server/web-1``.
        """
        with self._storage.open(self._charges) as content:
            bookings, name = content.setdefault("booked", {}), f"{self.account} {identity}"
            book.stopped = content.get("stopped", {}).get(self.account)
            book.elsewhere = spent_in(content, self.account, without=name)
            yield
            if cost := book.remove(identity):
                holders = sorted({*bookings.get(name, {}).get("holders", ()), self._holder})
                booking = {"account": self.account, "amount": str(cost.amount), "currency": cost.currency}
                bookings[name] = {**booking, "holders": holders}

    def settle(self, identity: str, charged: Values | None) -> None:
        """The task has ended. ``charged``: what its own request charged (``amount``, ``currency``); None if
        nothing."""
        with self._storage.open(self._charges) as content:
            bookings = content.setdefault("booked", {})
            name = f"{self.account} {identity}"
            booking = bookings.pop(name, None)
            if charged is not None:
                content.setdefault("spent", []).append({"account": self.account, **charged})
            others = [holder for holder in booking["holders"] if holder != self._holder] if booking else []
            if others:  # they send the same purchase, which is counted once
                amount = "0" if charged is not None else booking["amount"]
                bookings[name] = {**booking, "amount": amount, "holders": others}

    def claim(self, charge: str) -> bool:
        """Whether no other task of the run has reported this charge. ``charge``: an invoice, or the object
        that was bought."""
        with self._storage.open(self._charges) as content:
            claimed = content.setdefault("claimed", [])
            name = f"{self.account} {charge}"
            if name in claimed:
                return False
            claimed.append(name)
            return True

    def stop(self, reason: str) -> None:
        """Refuse every further purchase of the run on this account."""
        with self._storage.open(self._charges) as content:
            content.setdefault("stopped", {})[self.account] = reason

    @property
    def stopped(self) -> str | None:
        """Why nothing more may be bought; None while it may."""
        with self._storage.open(self._charges) as content:
            found = content.get("stopped", {}).get(self.account)
        return None if found is None else str(found)

    def spent(self) -> dict[str, str]:
        """What the run has charged, or may have, by currency."""
        with self._storage.open(self._charges) as content:
            return {currency: str(amount) for currency, amount in spent_in(content, self.account).items()}

    def is_first(self, line: str) -> bool:
        """Whether no task of the run has shown this line; from now on, one has."""
        with self._storage.open(SHOWN) as content:
            first = line not in content
            content[line] = True
        return first

    # --- declared

    def declare(self, *servers: list[str | None]) -> None:
        """A task that begins declares these servers, each by its id, its name or both."""
        if servers:
            with self._storage.open(DECLARED) as content:
                declared = content.setdefault(self._key, [])
                declared.extend(server for server in servers if server not in declared)

    def is_declared(self, id: str, name: str | None) -> bool:
        """Whether a task of the run that has begun declares the server with this id and this name."""
        return any(id == known or (name is not None and name == named) for known, named in self._declared)

    @property
    def _declared(self) -> list[list[str | None]]:
        with self._storage.open(DECLARED) as content:
            return list(content.get(self._key, ()))

    # --- planned

    @property
    def effects(self) -> list[Effect]:
        """The changes that the earlier tasks of this check run would make, oldest first."""
        with self._storage.open(PLANNED) as content:
            return list(content.get(self._plans, ()))

    def predict(self, effect: Effect) -> None:
        """Add one change: the balance falls by a charge, or rises where it is negative."""
        with self._storage.open(PLANNED) as content:
            content.setdefault(self._plans, []).append(effect)

    def predict_new(self, kind: str, name: str, item: Values) -> int:
        """An object would be made; ``name`` is unique among its kind. Returns its id."""
        id = planned_id(kind, name)
        self.predict(["add", kind, {**item, "id": id}])
        return id

    def predict_change(self, kind: str, id: object, fields: Values) -> None:
        """Fields of an object would get these values; a rename changes ``name``."""
        if fields:
            self.predict(["set", kind, str(id), dict(fields)])

    def planned_objects(self, kind: str) -> tuple[dict[str, Json], dict[str, Json], set[str]]:
        """Of one kind: the new objects by id, the changed fields of others by id, and the ids of the deleted
        ones."""
        added: dict[str, Json] = {}
        changed: dict[str, Json] = {}
        deleted: set[str] = set()
        for change, *rest in self.effects:
            if change not in ("add", "set", "delete") or rest[0] != kind:
                continue
            if change == "add":
                # an address has a number within its server
                within = f"{rest[1]['server_id']}/" if kind == "server_ip" else ""
                id = f"{within}{rest[1]['id']}"
                deleted.discard(id)
                added[id] = dict(rest[1])
            elif change == "delete":
                added.pop(rest[1], None)
                changed.pop(rest[1], None)
                deleted.add(rest[1])
            elif rest[1] in added:
                set_fields(added[rest[1]], rest[2])
            else:
                changed.setdefault(rest[1], {}).update(rest[2])
        return added, changed, deleted

    def planned_addresses(self, server_id: str) -> tuple[list[Json], set[str]]:
        """The addresses that would be bought for a server, and the ids of those that would be released."""
        added, _changed, deleted = self.planned_objects("server_ip")
        bought = [item for item in added.values() if str(item["server_id"]) == server_id]
        parts = (id.partition("/") for id in deleted)
        return bought, {address for server, _slash, address in parts if server == server_id}

    @property
    def planned_charges(self) -> Decimal:
        return sum((Decimal(effect[1]) for effect in self.effects if effect[0] == "charge"), Decimal(0))

    @property
    def key_is_revoked(self) -> bool:
        return ["revoke"] in self.effects

    # --- reads

    @cached_property
    def reads(self) -> Reads:
        """Answers of the service that the tasks of the run share."""
        return Reads(self.snapshots)

    @cached_property
    def snapshots(self) -> SnapshotStorage:
        """Where the snapshot of the task's account is kept."""
        return self._storage.snapshot(lambda: self._scope) or InMemory()

    @cached_property
    def _scope(self) -> str:
        """The account, and what this key may see of it."""
        if self.account == UNKNOWN_ACCOUNT:
            return self._key
        return f"{self.account} {self._ask_rights()}"

    def owner_of(self, client: Client) -> Me:
        """Whose key the task's client has; asked once per run and key."""
        if self._charges == PREDICTED and self.key_is_revoked:
            return client.me()
        kept = AccountSnapshot(self._storage.snapshot(lambda: self._key))
        me: Me = kept.get("me", lambda: {"get_me": [client.me()]}, monotonic, RUN_SECONDS)["get_me"][0]
        return me

    def observe(self, request: HttpRequest, outcome: object) -> None:
        """Bring the snapshot up to date with what the task has sent. Asks nothing."""
        if "_scope" in self.__dict__ or self._knows_owner:
            self.reads.observe(request, outcome)
        elif request.operation.is_write:
            self._storage.forget_snapshots()

    @property
    def _knows_owner(self) -> bool:
        """Whether the account is known without asking."""
        kept = self._storage.snapshot(lambda: self._key)
        return kept is None or bool(kept.load("me").rows)


def spent_in(content: Values, account: str, without: str = "") -> dict[str, Decimal]:
    """Settled and booked amounts of an account by currency. ``without``: the name of a booking that does not
    count."""
    rows = [
        *content.get("spent", ()),
        *(row for name, row in content.get("booked", {}).items() if name != without),
    ]
    totals: dict[str, Decimal] = {}
    for row in rows:
        if account == UNKNOWN_ACCOUNT or row["account"] in (account, UNKNOWN_ACCOUNT):
            totals[row["currency"]] = totals.get(row["currency"], Decimal(0)) + Decimal(row["amount"])
    return totals


def set_fields(item: Json, fields: Values) -> None:
    """Set fields of an object of the API; ``billing.auto_renew`` is a field of ``billing``."""
    for name, value in fields.items():
        outer, dot, inner = name.partition(".")
        if not dot:
            item[name] = value
        elif isinstance(item.get(outer), Mapping):
            item[outer] = {**item[outer], inner: value}
