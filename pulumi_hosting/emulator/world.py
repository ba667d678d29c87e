"""Everything the emulator knows, as plain rows.

A row holds only texts, numbers, booleans, ``Decimal`` and lists or dictionaries of them, so that a world can be written to a file and read
back. Moments are unix seconds. Lists inside rows are replaced, never changed in place. Nothing here asks for the time or for randomness:
the moment is handed in by the caller, and random bytes are drawn from the seed and a counter that is part of the world.
"""

import base64
import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, get_args

from pulumi_hosting.api.operations import SCOPES
from pulumi_hosting.emulator import catalog

REQUESTS_KEPT = 20_000
# Marks a row that was changed since it was written to a file; not a column.
CHANGED = "+changed"
OPENING_BALANCE = Decimal("1000.00")


@dataclass
class Row:
    """Base of every row. ``seq`` grows with every row made, of whatever kind: lists are ordered by it, newest first."""

    kind: ClassVar[str]
    first_id: ClassVar[int] = 1

    id: int
    seq: int

    if not TYPE_CHECKING:  # a type checker that saw it would let any attribute be set

        def __setattr__(self, name: str, value: Any) -> None:
            self.__dict__[name] = value
            self.__dict__[CHANGED] = True

    def take_change(self) -> dict[str, Any] | None:
        """The columns, if any was set since this was asked last."""
        columns = self.__dict__
        return columns if columns.pop(CHANGED, False) else None

    @classmethod
    def load(cls, data: dict[str, Any]) -> Self:
        for item in fields(cls):
            is_money = item.type is Decimal or Decimal in get_args(item.type)
            if is_money and isinstance(data.get(item.name), str):
                data[item.name] = Decimal(data[item.name])
        return cls(**data)


@dataclass
class Account(Row):
    kind = "accounts"
    first_id = 1001

    login: str
    email: str
    currency: str
    opening: Decimal
    balance: Decimal
    created_at: float
    group_discount_percent: Decimal = Decimal(0)
    loyalty_discount_percent: Decimal = Decimal(0)
    email_verified: bool = True
    two_factor_enabled: bool = False
    suspended: bool = False
    api_enabled: bool = True
    topped_up: bool = False
    promo_used: list[str] = field(default_factory=list)


@dataclass
class Key(Row):
    kind = "keys"
    first_id = 501

    account_id: int
    name: str
    mode: str
    token: str
    scopes: list[str]
    created_at: float
    ip_allowlist: list[str] = field(default_factory=list)
    not_before: float | None = None
    expires_at: float | None = None
    rate_per_minute: int | None = None
    rate_expensive_per_minute: int | None = None
    revoked_at: float | None = None
    revoked_reason: str | None = None
    last_used_at: float | None = None
    last_used_ip: str | None = None

    @property
    def is_test(self) -> bool:
        return self.mode == "test"

    @property
    def hint(self) -> str:
        return f"{self.token[:11]}…{self.token[-4:]}"


@dataclass
class Tariff(Row):
    kind = "tariffs"

    name: str
    description: str
    location_id: int
    cpu_cores: int
    ram_mb: int
    disk_gb: int
    price_monthly: Decimal
    price_hourly: Decimal | None = None
    in_stock: bool = True
    disabled: bool = False
    non_refundable: bool = False
    excluded_os: list[str] = field(default_factory=list)
    extra_ip_price: Decimal = Decimal("2.00")
    max_extra_ips: int = 3


@dataclass
class Server(Row):
    kind = "servers"
    first_id = 20001

    account_id: int
    name: str
    hostname: str
    tariff_id: int
    os: str
    cycle: str
    months: int
    created_at: float
    next_due_at: float
    status: str = "active"
    power: str = "running"
    blocked: bool = False
    expired: bool = False
    is_test: bool = False
    synthetic: bool = False
    pending_cancel: bool = False
    auto_renew: bool = True
    notes: str = ""
    promo_code: str | None = None
    busy: str | None = None
    addresses_coming: int = 0
    power_since: float = 0.0
    suspended_from: str | None = None
    owner_key_id: int | None = None
    ssh_key_ids: list[int] = field(default_factory=list)
    custom_fields: dict[str, str] = field(default_factory=dict)

    @property
    def is_sandbox(self) -> bool:
        return self.owner_key_id is not None

    @property
    def is_gone(self) -> bool:
        return self.status in ("cancelled", "terminated")


@dataclass
class Address(Row):
    kind = "addresses"
    first_id = 30001

    server_id: int
    address: str
    version: int
    primary: bool
    bought: bool
    price_monthly: Decimal
    added_at: float
    ptr: str | None = None
    invoice_id: int | None = None


@dataclass
class Invoice(Row):
    kind = "invoices"
    first_id = 40001

    account_id: int
    type: str
    status: str
    amount: Decimal
    description: str
    created_at: float
    due_at: float | None = None
    paid_at: float | None = None
    cancelled_at: float | None = None
    gateway: str | None = None
    server_id: int | None = None
    domain_id: int | None = None
    period_start: float | None = None
    period_end: float | None = None
    refunded: Decimal = Decimal(0)
    refundable: bool = True


@dataclass
class Order(Row):
    """A server order that did not finish at once; its id is the invoice's. ``plan`` holds the columns of the server to make."""

    kind = "orders"

    account_id: int
    status: str
    outcome: str
    tariff_id: int | None
    server_name: str
    amount: Decimal
    created_at: float
    updated_at: float
    plan: dict[str, Any]
    server_id: int | None = None
    failure_reason: str | None = None


@dataclass
class Movement(Row):
    """One movement of money. ``amount`` is absolute; ``direction`` is credit or debit."""

    kind = "movements"
    first_id = 50001

    account_id: int
    at: float
    amount: Decimal
    direction: str
    type: str
    description: str
    gateway: str | None = None
    operation: str | None = None
    object_id: int | None = None
    invoice_id: int | None = None
    idempotency_key: str | None = None
    request_seq: int | None = None


@dataclass
class SshKey(Row):
    kind = "ssh_keys"
    first_id = 60001

    account_id: int
    name: str
    type: str
    public_key: str
    fingerprint: str
    created_at: float


@dataclass
class Domain(Row):
    kind = "domains"
    first_id = 70001

    account_id: int
    name: str
    tld: str
    status: str
    created_at: float
    years: int
    auto_renew: bool
    privacy: bool
    nameservers: list[str]
    registered_at: float | None = None
    expires_at: float | None = None
    locked: bool = False
    blocked: bool = False


@dataclass
class Subscription(Row):
    kind = "subscriptions"
    first_id = 80001

    account_id: int
    url: str
    events: list[str]
    description: str
    secret: str
    created_at: float
    active: bool = True
    failures_in_row: int = 0
    disabled_at: float | None = None
    disabled_reason: str | None = None
    last_delivery_at: float | None = None
    last_status: int | None = None


@dataclass
class Delivery(Row):
    """``payload`` is the very text that is sent, at the first attempt and at every other."""

    kind = "deliveries"
    first_id = 90001

    account_id: int
    subscription_id: int
    event_id: str
    event_type: str
    payload: str
    created_at: float
    attempts: int = 0
    failures: int = 0
    next_attempt_at: float | None = None
    delivered_at: float | None = None
    dead_at: float | None = None
    last_status: int | None = None
    last_error: str | None = None
    last_response: str | None = None

    @property
    def status(self) -> str:
        if self.next_attempt_at is not None:
            return "pending"
        return "dead" if self.dead_at is not None else "delivered"


@dataclass
class Task(Row):
    """Something that happens later: ``what`` names a function of :mod:`pulumi_hosting.emulator.agenda`."""

    kind = "tasks"

    due: float
    what: str
    object_id: int
    note: str = ""


@dataclass
class Stored(Row):
    """What an Idempotency-Key remembers. ``running`` while the first request is not answered yet (never true after a restart)."""

    kind = "stored"

    scope: str
    key: str
    operation: str
    path: str
    fingerprint: str
    created_at: float
    status: int = 0
    body: Any = None
    request_id: str = ""
    retry_after: float | None = None
    running: bool = False

    @classmethod
    def load(cls, data: dict[str, Any]) -> "Stored":
        return super().load({**data, "running": False})


@dataclass
class Fault(Row):
    kind = "faults"

    method: str | None
    path: str | None
    after: int
    times: int
    action: dict[str, Any]


@dataclass
class Exchange(Row):
    """A request that arrived, and its answer, as they were; masked when shown or written to a file."""

    kind = "requests"

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: str
    at: float
    key_id: int | None = None
    status: int | None = None
    response: str = ""
    bucket: str | None = None
    replayed: bool = False


ROWS: tuple[type[Row], ...] = (
    Account,
    Key,
    Tariff,
    Server,
    Address,
    Invoice,
    Order,
    Movement,
    SshKey,
    Domain,
    Subscription,
    Delivery,
    Task,
    Stored,
    Fault,
)

READINGS: dict[str, tuple[Any, ...]] = {
    "refusals_stored": (True, False),
    "transient_refusals_stored": (True, False),
    "replay_request_id": ("fresh", "stored"),
    "key_memory": ("account", "key"),
    "body_comparison": ("parsed", "bytes"),
    "deleted_servers": ("gone", "listed"),
    "duplicate_ssh_key": ("conflict", "second"),
    "sandbox_echo": ("none", "server"),
}

T = TypeVar("T", bound=Row)


@dataclass
class Service:
    """What staff can switch."""

    dialect: str = "spec"
    api_enabled: bool = True
    sandbox_enabled: bool = True
    readings: dict[str, Any] = field(default_factory=lambda: {name: values[0] for name, values in READINGS.items()})
    routes: dict[str, str] = field(default_factory=dict)


class World:
    """The rows by kind, the counters, and a few indexes kept beside them. ``seed`` makes everything drawn at random reproducible."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.tables: dict[str, dict[int, Any]] = {row.kind: {} for row in ROWS}
        self.accounts: dict[int, Account] = self.tables["accounts"]
        self.keys: dict[int, Key] = self.tables["keys"]
        self.tariffs: dict[int, Tariff] = self.tables["tariffs"]
        self.servers: dict[int, Server] = self.tables["servers"]
        self.addresses: dict[int, Address] = self.tables["addresses"]
        self.invoices: dict[int, Invoice] = self.tables["invoices"]
        self.orders: dict[int, Order] = self.tables["orders"]
        self.movements: dict[int, Movement] = self.tables["movements"]
        self.ssh_keys: dict[int, SshKey] = self.tables["ssh_keys"]
        self.domains: dict[int, Domain] = self.tables["domains"]
        self.subscriptions: dict[int, Subscription] = self.tables["subscriptions"]
        self.deliveries: dict[int, Delivery] = self.tables["deliveries"]
        self.tasks: dict[int, Task] = self.tables["tasks"]
        self.stored: dict[int, Stored] = self.tables["stored"]
        self.faults: dict[int, Fault] = self.tables["faults"]
        self.requests: deque[Exchange] = deque(maxlen=REQUESTS_KEPT)
        self.service = Service()
        self.counters: dict[str, int] = {}
        # Rate windows: name → [start of the window, calls in it].
        self.windows: dict[str, list[int]] = {}
        # Limits of calls within any stretch of time: name → the moments of the latest calls.
        self.recent: dict[str, list[float]] = {}
        # Rows taken away since the world was written to a file; nobody counts them when it never was.
        self.removed: list[tuple[str, int]] | None = None
        # Servers with a change that is processed and not answered yet. Nothing is after a restart, so no file needs it.
        self.changing: set[int] = set()
        self.by_token: dict[str, Key] = {}
        self.by_idempotency_key: dict[str, Stored] = {}
        self._of: dict[tuple[str, int], dict[int, Any]] = {}
        self._due: list[tuple[float, int]] = []

    # --- ids and randomness

    def count(self, name: str) -> int:
        """1, 2, 3 … for each name."""
        value = self.counters.get(name, 0) + 1
        self.counters[name] = value
        return value

    def random(self, label: str) -> bytes:
        """32 bytes that depend on the seed, the label and how often it was asked."""
        return sha256(f"{self.seed}:{label}:{self.count('random:' + label)}".encode()).digest()

    def token(self, label: str, length: int) -> str:
        """A random text of letters and digits."""
        raw = self.random(label) + self.random(label)
        return base64.b32encode(raw).decode().lower().rstrip("=")[:length]

    def password(self) -> str:
        """A root password by the rules of the API: letters and at least one digit."""
        return f"{self.token('password', 17)}A7#"

    # --- rows

    def new_id(self, kind: type[Row]) -> int:
        return kind.first_id - 1 + self.count("id:" + kind.kind)

    def make(self, kind: type[T], *, id: int | None = None, **columns: Any) -> T:
        """A new row that is not part of the world yet."""
        return kind(id=self.new_id(kind) if id is None else id, seq=self.count("seq"), **columns)

    def add(self, row: T) -> T:
        self.tables[row.kind][row.id] = row
        self._index(row)
        return row

    def remove(self, row: Row) -> None:
        self.tables[row.kind].pop(row.id, None)
        if self.removed is not None:
            self.removed.append((row.kind, row.id))
        if isinstance(row, Stored):
            self.by_idempotency_key.pop(f"{row.scope}:{row.key}", None)
        for owner in self._owners(row):
            self._of.get(owner, {}).pop(row.id, None)

    def of(self, kind: type[T], owner_id: int) -> dict[int, T]:
        """Rows of one account (addresses, invoices: of one server), oldest first."""
        return self._of.get((kind.kind, owner_id), {})

    def newest(self, kind: type[T], owner_id: int) -> Iterator[T]:
        return reversed(self.of(kind, owner_id).values())

    def later(self, due: float, what: str, object_id: int, note: str = "") -> None:
        """Remember something to be done at ``due``."""
        self.add(self.make(Task, due=due, what=what, object_id=object_id, note=note))

    def next_due(self) -> float | None:
        while self._due and self._due[0][1] not in self.tasks:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def pop_due(self, now: float) -> Task | None:
        """The earliest task that is due, taken off the agenda."""
        due = self.next_due()
        if due is None or due > now:
            return None
        task = self.tasks[heapq.heappop(self._due)[1]]
        self.remove(task)
        return task

    def rebuild(self) -> None:
        """Make the indexes anew, after rows were loaded."""
        for table in self.tables.values():
            for row in sorted(table.values(), key=lambda row: row.seq):
                self._index(row)

    def _index(self, row: Row) -> None:
        if isinstance(row, Key):
            self.by_token[row.token] = row
        elif isinstance(row, Stored):
            self.by_idempotency_key[f"{row.scope}:{row.key}"] = row
        elif isinstance(row, Task):
            heapq.heappush(self._due, (row.due, row.id))
        for owner in self._owners(row):
            self._of.setdefault(owner, {})[row.id] = row

    @staticmethod
    def _owners(row: Row) -> list[tuple[str, int]]:
        owners = []
        if isinstance(row, Address):
            owners.append((row.kind, row.server_id))
        elif isinstance(row, Delivery):
            owners.append((row.kind, row.subscription_id))
        elif hasattr(row, "account_id"):
            owners.append((row.kind, row.account_id))
        return owners

    # --- beginnings

    def new_account(self, now: float, *, balance: Decimal = OPENING_BALANCE, currency: str = "EUR") -> Account:
        """An account with one live and one test key with all scopes."""
        number = self.count("account")
        name = "demo" if number == 1 else f"demo{number}"
        account = self.add(
            self.make(
                Account,
                login=name,
                email=f"{name}@example.com",
                currency=currency,
                opening=balance,
                balance=balance,
                created_at=now,
            )
        )
        self.new_key(account, "live", now, name="live")
        self.new_key(account, "test", now, name="test")
        return account

    def new_key(self, account: Account, mode: str, now: float, *, name: str, scopes: list[str] | None = None, **columns: Any) -> Key:
        token = f"vk_{mode}_{self.token('key:' + mode, 40)}"
        granted = list(SCOPES) if scopes is None else scopes
        return self.add(self.make(Key, account_id=account.id, name=name, mode=mode, token=token, scopes=granted, created_at=now, **columns))


def fresh(seed: int, now: float) -> World:
    """A world with the catalog and one fresh account."""
    world = World(seed)
    for columns in catalog.TARIFFS:
        world.add(world.make(Tariff, **columns))
    world.new_account(now)
    return world
