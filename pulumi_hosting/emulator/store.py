"""All data of the emulator: the rows by kind, counters, indexes, and what staff can switch."""

import base64
import heapq
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Any, TypeVar

from pulumi_hosting.api.operations import SCOPES
from pulumi_hosting.emulator import price_list
from pulumi_hosting.emulator import rows as r

REQUESTS_KEPT = 20_000
OPENING_BALANCE = Decimal("1000.00")


VARIANTS: dict[str, tuple[object, ...]] = {
    "refusals_stored": (True, False),
    "transient_refusals_stored": (True, False),
    "replay_request_id": ("fresh", "stored"),
    "key_memory": ("account", "key"),
    "body_comparison": ("parsed", "bytes"),
    "deleted_servers": ("gone", "listed"),
    "duplicate_ssh_key": ("conflict", "second"),
    "sandbox_echo": ("none", "server"),
    "balance_low": ("due_dates", "movements"),
    "early_renewal": ("any_time", "last_day"),
    "suspended_renewal": ("allowed", "refused"),
    "expired_renewal": ("allowed", "refused"),
    "terminated_after_days": (14, 1, 60),
}

T = TypeVar("T", bound=r.Row)


@dataclass
class ServiceSettings:
    """What staff can switch."""

    dialect: str = "spec"
    api_enabled: bool = True
    sandbox_enabled: bool = True
    readings: dict[str, Any] = field(
        default_factory=lambda: {name: values[0] for name, values in VARIANTS.items()}
    )
    """The value of each behaviour variant."""
    routes: dict[str, str] = field(default_factory=dict)


class Store:
    """The rows by kind, counters and indexes. Everything random is derived from ``seed`` and a counter.

    Nothing here reads a clock: ``now`` is the present. ``kept``: in a state file, so that changes are noted.
    """

    def __init__(self, seed: int = 0, *, now: float = 0.0, kept: bool = False) -> None:
        self.seed = seed
        # The present, of the clock or of the task that runs; set before anything is done.
        self.now = now
        # Seconds of the clock until a server and a bought address are there.
        self.provisioning_delay = self.ip_delay = 0.0
        self.tables: dict[str, dict[int, Any]] = {kind: {} for kind in r.ROW_TYPES}
        self.accounts: dict[int, r.AccountRow] = self.tables["accounts"]
        self.keys: dict[int, r.KeyRow] = self.tables["keys"]
        self.tariffs: dict[int, r.TariffRow] = self.tables["tariffs"]
        self.locations: dict[int, r.LocationRow] = self.tables["locations"]
        self.images: dict[int, r.ImageRow] = self.tables["images"]
        self.zones: dict[int, r.ZoneRow] = self.tables["zones"]
        self.servers: dict[int, r.ServerRow] = self.tables["servers"]
        self.addresses: dict[int, r.AddressRow] = self.tables["addresses"]
        self.invoices: dict[int, r.InvoiceRow] = self.tables["invoices"]
        self.orders: dict[int, r.OrderRow] = self.tables["orders"]
        self.movements: dict[int, r.MovementRow] = self.tables["movements"]
        self.ssh_keys: dict[int, r.SshKeyRow] = self.tables["ssh_keys"]
        self.domains: dict[int, r.DomainRow] = self.tables["domains"]
        self.subscriptions: dict[int, r.SubscriptionRow] = self.tables["subscriptions"]
        self.deliveries: dict[int, r.DeliveryRow] = self.tables["deliveries"]
        self.tasks: dict[int, r.Task] = self.tables["tasks"]
        self.stored: dict[int, r.StoredResponse] = self.tables["stored"]
        self.faults: dict[int, r.Fault] = self.tables["faults"]
        self.requests: dict[int, r.RequestLog] = self.tables["requests"]
        self.service = ServiceSettings()
        # Tells this account from those that an emulator at the same address had before, or has after a reset.
        self.start = ""
        self.counters: dict[str, int] = defaultdict(int)
        # Fixed rate windows: name → [start of the window, calls in it].
        self.windows: dict[str, list[int]] = {}
        # Sliding rate windows: name → times of the latest calls.
        self.recent: dict[str, list[float]] = {}
        # Kind and id of the rows added, changed or removed since the last save, in a store that is kept.
        self.changed: set[tuple[str, int]] = set()
        self._watched = (
            {kind: r.watched(row, self.changed) for kind, row in r.ROW_TYPES.items()} if kept else {}
        )
        # Servers with a change whose response is delayed. Empty after a restart, so not saved.
        self.changing: set[int] = set()
        self.by_token: dict[str, r.KeyRow] = {}
        self.by_idempotency_key: dict[str, r.StoredResponse] = {}
        self._of: dict[tuple[str, int], dict[int, Any]] = {}
        self._due: list[tuple[float, int]] = []

    # --- ids and randomness

    def count(self, name: str) -> int:
        """The next number, from 1, of the counter ``name``."""
        number = self.counters[name] = self.counters[name] + 1
        return number

    def random(self, label: str) -> bytes:
        """32 bytes derived from the seed, the label and a counter of that label."""
        return sha256(f"{self.seed}:{label}:{self.count('random:' + label)}".encode()).digest()

    def token(self, label: str, length: int) -> str:
        """A random string of letters and digits, at most 51."""
        # Five bytes are eight characters; no more are encoded than are shown.
        raw = self.random(label)[: -(-length * 5 // 8)]
        return base64.b32encode(raw).decode().lower()[:length]

    def password(self) -> str:
        """A root password by the rules of the API: letters and at least one digit."""
        return f"{self.random('password').hex()[:17]}A7#"

    def webhook_secret(self) -> str:
        return "whsec_" + self.token("webhook secret", 44)

    # --- rows

    def new_id(self, kind: type[r.Row], first: int | None = None, counter: str = "") -> int:
        """The next id of a row of this kind. ``first``: of ids of another range, with a ``counter`` of
        their own.
        """
        start, name = kind.first_id if first is None else first, f"id:{counter or kind.kind}"
        while (id := start - 1 + self.count(name)) in self.tables[kind.kind]:
            pass  # it was given to a row by hand
        return id

    def number(self, row: T) -> T:
        """Give a row its place among all rows, and an id if it has none."""
        row.id = row.id or self.new_id(type(row))
        row.seq = self.count("seq")
        if isinstance(row, r.Owned) and not row.created_at:
            row.created_at = self.now
        return row

    def add(self, row: T) -> T:
        """Add a new row."""
        if not row.seq:
            self.number(row)
        self.tables[row.kind][row.id] = row
        self._index(row)
        return row

    def remove(self, row: r.Row) -> None:
        self.tables[row.kind].pop(row.id, None)
        if self._watched:
            self.changed.add((row.kind, row.id))
        if isinstance(row, r.StoredResponse):
            self.by_idempotency_key.pop(f"{row.scope}:{row.key}", None)
        self._of.get((row.kind, getattr(row, row.owner, 0)), {}).pop(row.id, None)

    def of(self, kind: type[T], owner_id: int) -> dict[int, T]:
        """Rows of one account (addresses, invoices: of one server), oldest first."""
        return self._of.get((kind.kind, owner_id), {})

    def newest(self, kind: type[T], owner_id: int) -> Iterator[T]:
        return reversed(self.of(kind, owner_id).values())

    def schedule(self, due: float, what: str, object_id: int, note: str = "") -> None:
        """Schedule the task ``what`` of :mod:`pulumi_hosting.emulator.tasks` for ``due``."""
        self.add(r.Task(due=due, what=what, object_id=object_id, note=note))

    def next_due(self) -> float | None:
        while self._due and self._due[0][1] not in self.tasks:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def pop_due(self) -> r.Task | None:
        """Remove and return the earliest task that is due."""
        due = self.next_due()
        if due is None or due > self.now:
            return None
        task = self.tasks[heapq.heappop(self._due)[1]]
        self.remove(task)
        return task

    def drop_tasks(self, object_id: int, *kinds: str, note: str = "") -> None:
        """Drop the tasks of these kinds for an object, those with the word ``note`` in their note."""
        for task in list(self.tasks.values()):
            if task.object_id == object_id and task.what in kinds and note in (*task.note.split(), ""):
                self.remove(task)

    def copy(self) -> "Store":
        """All of it, apart from this one; what is being changed is not under way there."""
        other = Store(self.seed, now=self.now, kept=bool(self._watched))
        for name in ("start", "counters", "windows", "recent", "service", "provisioning_delay", "ip_delay"):
            setattr(other, name, deepcopy(getattr(self, name)))
        for kind, table in self.tables.items():
            other.tables[kind].update(
                (id, r.ROW_TYPES[kind](**deepcopy(row.columns()))) for id, row in table.items()
            )
        other.rebuild()
        return other

    def rebuild(self) -> None:
        """Rebuild the indexes after rows were loaded."""
        for table in self.tables.values():
            for row in sorted(table.values(), key=lambda row: row.seq):
                self._index(row)

    def _index(self, row: r.Row) -> None:
        if self._watched:
            row.__class__ = self._watched[row.kind]  # from now on it notes its changes
            self.changed.add((row.kind, row.id))
        if (owner := getattr(row, row.owner, None)) is not None:
            self._of.setdefault((row.kind, owner), {})[row.id] = row
            if isinstance(row, r.KeyRow):
                self.by_token[row.token] = row
        elif isinstance(row, r.StoredResponse):
            self.by_idempotency_key[f"{row.scope}:{row.key}"] = row
        elif isinstance(row, r.Task):
            heapq.heappush(self._due, (row.due, row.id))

    # --- catalog and accounts

    def add_price_list(self) -> None:
        """What a fresh service sells, of each kind that it never had."""
        for kind, entries in price_list.CATALOG.items():
            if not self.tables[kind] and f"id:{kind}" not in self.counters:
                for columns in entries:
                    self.add(r.ROW_TYPES[kind](**columns))

    def image(self, slug: str) -> r.ImageRow | None:
        return next((row for row in self.images.values() if row.slug == slug), None)

    def zone(self, tld: str) -> r.ZoneRow | None:
        """The zone of this name without its dot."""
        return next((row for row in self.zones.values() if row.tld == tld), None)

    def zone_of(self, domain: r.DomainRow) -> r.ZoneRow:
        return next(row for row in self.zones.values() if row.tld == domain.tld)

    def new_account(self, *, balance: Decimal = OPENING_BALANCE, currency: str = "EUR") -> r.AccountRow:
        """An account with one live and one test key with all scopes."""
        number = self.count("account")
        name = "demo" if number == 1 else f"demo{number}"
        account = self.add(
            r.AccountRow(
                login=name,
                email=f"{name}@example.com",
                currency=currency,
                opening=balance,
                balance=balance,
                created_at=self.now,
            )
        )
        self.new_key(account, "live", name="live")
        self.new_key(account, "test", name="test")
        return account

    def renumber(self, account: r.AccountRow, id: int) -> None:
        """Give another id to an account that has nothing but its keys."""
        keys = list(self.of(r.KeyRow, account.id).values())
        for row in (account, *keys):
            self.remove(row)
        account.id = id
        for key in keys:
            key.account_id = id
        for row in (account, *keys):
            self.add(row)

    def email(self, account_id: int, subject: str) -> None:
        """List an e-mail to the owner of the account."""
        owner = self.accounts[account_id].email
        self.add(r.EmailRow(account_id=account_id, to=owner, subject=subject))

    def new_key(
        self, account: r.AccountRow, mode: str, *, name: str, scopes: list[str] | None = None, **columns: Any
    ) -> r.KeyRow:
        token = f"vk_{mode}_{self.token('key:' + mode, 40)}"
        granted = list(SCOPES) if scopes is None else scopes
        return self.add(
            r.KeyRow(account_id=account.id, name=name, mode=mode, token=token, scopes=granted, **columns)
        )
