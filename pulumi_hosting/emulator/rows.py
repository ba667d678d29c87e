"""The rows of the store.

A row holds only strings, numbers, booleans, ``Decimal`` and lists or dictionaries of them, so that it can be
written to a file and read back. Times are unix seconds. Lists inside rows are replaced, never changed in
place.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, ClassVar, TypeVar, cast, dataclass_transform

# The statuses of a server that has ended, and of one that has not.
GONE = frozenset(("cancelled", "terminated"))
LIVING = ("active", "stopped", "suspended", "pending_cancel")
# The statuses of a domain that the registrar has not confirmed.
PENDING = ("pending", "transfer_pending")


Columns = dict[str, Any]
"""Values by the names of columns; what a fault does, by the names of its actions."""


@dataclass(frozen=True, slots=True)
class Editable:
    """A mark on a column: the control interface can set it, there under ``name`` if that is another."""

    name: str | None = None


EDITABLE = Editable()


ROW_TYPES: "dict[str, type[Row]]" = {}
"""Every kind of row in the store's tables, those that a module of handlers defines for itself too."""


@dataclass_transform(kw_only_default=True)
@dataclass(kw_only=True)
class Row:
    """Base of every row. ``seq`` grows with every new row of any kind; lists are sorted by it."""

    kind: ClassVar[str]
    first_id: ClassVar[int]
    owner: ClassVar[str]
    """The column with the id of what it belongs to; rows without it belong to nothing."""

    id: int = 0
    """0 until the store numbers the row."""
    seq: int = 0

    def __init_subclass__(cls, *, kind: str = "", first_id: int = 1, owner: str = "account_id") -> None:
        """A class with a ``kind`` is a dataclass; one without is that of its base."""
        if kind:
            cls.kind, cls.first_id, cls.owner = kind, first_id, owner
            ROW_TYPES[kind] = dataclass(kw_only=True)(cls)

    def columns(self) -> Columns:
        """The columns by name; their values are not copied."""
        return dict(self.__dict__)


@dataclass(kw_only=True)
class Owned(Row):
    """Base of the rows that belong to an account."""

    account_id: int
    created_at: float = 0.0
    """The present, unless it is given."""


T = TypeVar("T", bound=Row)


def watched(kind: type[T], changed: set[tuple[str, int]]) -> type[T]:
    """The class of rows of this kind that add their kind and id to ``changed`` when a column is set."""

    def note(row: T, name: str, value: object) -> None:
        object.__setattr__(row, name, value)
        changed.add((row.kind, row.id))

    return cast(type[T], type(kind.__name__, (kind,), {"__setattr__": note}))


class AccountRow(Row, kind="accounts", first_id=1001):
    login: str
    email: str
    currency: str
    opening: Decimal
    balance: Decimal
    created_at: float
    email_verified: Annotated[bool, EDITABLE] = True
    suspended: Annotated[bool, EDITABLE] = False
    banned: Annotated[bool, EDITABLE] = False
    api_enabled: Annotated[bool, Editable("api_enabled_for_account")] = True
    group_discount_percent: Annotated[Decimal, EDITABLE] = Decimal(0)
    loyalty_discount_percent: Annotated[Decimal, EDITABLE] = Decimal(0)
    referral_percent: Annotated[Decimal, EDITABLE] = Decimal(0)
    two_factor_enabled: bool = False
    topped_up: bool = False
    promo_used: list[str] = field(default_factory=list)


class KeyRow(Owned, kind="keys", first_id=501):
    name: str
    mode: str
    token: str
    scopes: list[str]
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


class LocationRow(Row, kind="locations"):
    code: Annotated[str, EDITABLE]
    name: Annotated[str, EDITABLE]
    country: Annotated[str, EDITABLE]
    city: Annotated[str, EDITABLE]


class ImageRow(Row, kind="images"):
    slug: Annotated[str, EDITABLE]
    name: Annotated[str, EDITABLE]
    family: Annotated[str, EDITABLE] = "linux"
    version: Annotated[str, EDITABLE] = ""
    supports_ssh_keys: Annotated[bool, EDITABLE] = True
    min_disk_gb: Annotated[int, EDITABLE] = 5


class ZoneRow(Row, kind="zones"):
    """A domain zone; ``tld`` without its dot, prices per year."""

    tld: str
    price_register: Annotated[Decimal, EDITABLE]
    price_renew: Annotated[Decimal, EDITABLE]
    price_transfer: Annotated[Decimal | None, EDITABLE] = None
    min_years: Annotated[int, EDITABLE] = 1
    max_years: Annotated[int, EDITABLE] = 10
    privacy: Annotated[bool, EDITABLE] = True

    @property
    def transfer(self) -> bool:
        return self.price_transfer is not None


class TariffRow(Row, kind="tariffs"):
    name: str
    description: str
    location_id: int
    cpu_cores: int
    ram_mb: int
    disk_gb: int
    in_stock: Annotated[bool, EDITABLE] = True
    price_monthly: Annotated[Decimal, EDITABLE]
    disabled: Annotated[bool, EDITABLE] = False
    price_hourly: Decimal | None = None
    non_refundable: bool = False
    excluded_os: list[str] = field(default_factory=list)
    extra_ip_price: Decimal = Decimal("2.00")
    max_extra_ips: int = 3


class ServerRow(Owned, kind="servers", first_id=20001):
    hostname: str
    tariff_id: int
    cycle: str
    months: int
    next_due_at: float
    status: Annotated[str, EDITABLE] = "active"
    name: Annotated[str, EDITABLE]
    notes: Annotated[str, EDITABLE] = ""
    auto_renew: Annotated[bool, EDITABLE] = True
    blocked: Annotated[bool, EDITABLE] = False
    expired: Annotated[bool, EDITABLE] = False
    power: Annotated[str, EDITABLE] = "running"
    os: Annotated[str, EDITABLE]
    is_test: bool = False
    synthetic: bool = False
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
    def is_leaving(self) -> bool:
        """Whether its cancellation is approved. A suspension does not withdraw it."""
        return "pending_cancel" in (self.status, self.suspended_from)

    @property
    def is_gone(self) -> bool:
        return self.status in GONE


class AddressRow(Row, kind="addresses", first_id=30001, owner="server_id"):
    server_id: int
    address: str
    version: int
    added_at: float
    primary: bool = False
    bought: bool = False
    price_monthly: Decimal = Decimal("0.00")
    ptr: Annotated[str | None, EDITABLE] = None
    invoice_id: int | None = None


class InvoiceRow(Owned, kind="invoices", first_id=40001):
    type: str
    status: str
    amount: Decimal
    description: str
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


class OrderRow(Owned, kind="orders"):
    """A server order that did not finish at once; its id is the invoice's. ``plan``: the columns of the new
    server.
    """

    status: str
    outcome: str
    tariff_id: int | None
    server_name: str
    amount: Decimal
    updated_at: float
    plan: Columns
    server_id: int | None = None
    failure_reason: str | None = None


class MovementRow(Row, kind="movements", first_id=50001):
    """One movement of money. ``amount`` is absolute; ``direction`` is credit or debit."""

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


class SshKeyRow(Owned, kind="ssh_keys", first_id=60001):
    name: Annotated[str, EDITABLE]
    type: str
    public_key: str
    fingerprint: str


class DomainRow(Owned, kind="domains", first_id=70001):
    name: str
    tld: str
    status: Annotated[str, EDITABLE]
    years: int
    blocked: Annotated[bool, EDITABLE] = False
    auto_renew: Annotated[bool, EDITABLE]
    privacy: Annotated[bool, EDITABLE]
    nameservers: Annotated[list[str], EDITABLE]
    registered_at: float | None = None
    expires_at: float | None = None
    locked: bool = False


class SubscriptionRow(Owned, kind="subscriptions", first_id=80001):
    url: Annotated[str, EDITABLE]
    events: Annotated[list[str], EDITABLE]
    description: Annotated[str, EDITABLE]
    secret: str
    active: Annotated[bool, EDITABLE] = True
    failures_in_row: int = 0
    disabled_at: float | None = None
    disabled_reason: str | None = None
    last_delivery_at: float | None = None
    last_status: int | None = None


class DeliveryRow(Owned, kind="deliveries", first_id=90001, owner="subscription_id"):
    """``payload`` is the body that is sent, the same at every attempt; ``headers``: of the latest one."""

    subscription_id: int
    event_id: str
    event_type: str
    payload: str
    headers: dict[str, str] = field(default_factory=dict)
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


class EmailRow(Owned, kind="emails", first_id=95001):
    """An e-mail that the service would send to the owner."""

    to: str
    subject: str


class Task(Row, kind="tasks"):
    """Something that happens later: ``what`` names a function of :mod:`pulumi_hosting.emulator.tasks`."""

    due: float
    what: str
    object_id: int
    note: str = ""


class StoredResponse(Row, kind="stored"):
    """The response stored under an Idempotency-Key. ``running``: not sent yet (false after a restart)."""

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

    @property
    def asks(self) -> tuple[str, str, str]:
        """What every request with the key must equal."""
        return self.operation, self.path, self.fingerprint


class Fault(Row, kind="faults"):
    method: str | None
    path: str | None
    after: int
    times: int
    action: Columns


class RequestLog(Row, kind="requests"):
    """A request that arrived and its response, as they were sent; ``log_redaction`` masks them. In a state
    file their bodies are JSON, masked. ``stray``: outside the API; its path is the whole one.
    """

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: Any
    at: float
    key_id: int | None = None
    status: int | None = None
    response: Any = b""
    bucket: str | None = None
    replayed: bool = False
    stray: bool = False
