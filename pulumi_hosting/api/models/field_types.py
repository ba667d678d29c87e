"""Kinds of values in bodies: money, timestamps, names, and the closed sets of the API document."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.api.values import (
    DOMAIN_NAME_PATTERN,
    HOST_NAME_PATTERN,
    INT64,
    KEY_TYPES,
    LINE_PATTERN,
    LINES_PATTERN,
    NAME_LENGTH,
    SERVER_NAME_PATTERN,
    check_domain_name,
    check_host_name,
    check_line,
    check_notes,
    check_public_key,
    check_server_name,
)

MONTHS = (1, 3, 6, 12)
SANDBOX_SERVER_IDS = 9_000_000_000
SYNTHETIC_SERVER_IDS = range(2_000_000_000, SANDBOX_SERVER_IDS)
MONEY_PATTERN = r"^-?[0-9]+\.[0-9]{2,4}$"
_MONEY = re.compile(MONEY_PATTERN.strip("^$"))
PASSWORD_PATTERN = r"^(?=.*[A-Za-z])(?=.*[0-9])[A-Za-z0-9!@#$%^&*-]{8,64}$"  # noqa: S105  # a rule, not a password
ServerStatus = Literal["active", "stopped", "suspended", "pending_cancel", "cancelled", "terminated"]
SERVER_STATUSES: tuple[str, ...] = get_args(ServerStatus)
DomainStatus = Literal["pending", "active", "expired", "transfer_pending", "cancelled"]
DOMAIN_STATUSES: tuple[str, ...] = get_args(DomainStatus)
EVENTS: Mapping[str, str] = {
    "server.created": "a server was created",
    "server.suspended": "a server was suspended",
    "server.unsuspended": "a server was resumed",
    "server.terminated": "a server was deleted",
    "server.reinstalled": "a server was reinstalled",
    "invoice.created": "a new invoice",
    "invoice.paid": "an invoice was paid",
    "invoice.overdue": "an invoice is overdue",
    "balance.low": "the balance is low",
    "domain.registered": "a domain became active",
    "domain.expiring": "a domain expires soon",
    "domain.renewed": "a domain was renewed",
    "key.created": "an API key was created",
    "key.revoked": "an API key was revoked",
    "ping": "a test",
}
"""The types of events, and what each says."""
EVENT_TYPES = tuple(EVENTS)


def optional(description: str) -> Any:
    """A field that need not be given, or that an answer may lack: then it is ``None``."""
    return Field(default=None, description=description)


_NO_MONEY = "money must be a decimal string with 2 to 4 fraction digits"
_NO_TIMESTAMP = "a timestamp must be an RFC 3339 text with a zone, within the years 1 to 9999 in UTC"


def _money_from_api(value: object) -> object:
    # A float has lost cents already; an answer that carries one is not what the document describes.
    if isinstance(value, Decimal):
        return value
    if not isinstance(value, str) or not is_money(value):
        raise ValueError(_NO_MONEY)
    return Decimal(value)


def is_money(text: str) -> bool:
    """Whether the text is a sum of money as answers have it."""
    return len(text) <= 40 and _MONEY.fullmatch(text) is not None


def _money_to_api(value: Decimal) -> str:
    # By its digits: arithmetic would round what is longer than a decimal context, or refuse it.
    whole, _, cents = f"{value:f}".partition(".")
    return f"{whole}.{cents.rstrip('0'):0<2}"


def _amount_to_send(value: object) -> object:
    is_text = isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}\.[0-9]{2}", value)
    if not is_text and (isinstance(value, bool) or not isinstance(value, int | float | Decimal)):
        raise ValueError("must be a money string with two fraction digits")
    # Compared before anything is made of it: a number of a thousand digits would not become a decimal, or not
    # a short one.
    if isinstance(value, int | float) and not 0 <= value < 10**15:
        raise ValueError("must be from 0 to less than 10^15")
    amount = Decimal(str(value))
    if not amount.is_finite() or not 0 <= amount < 10**15 or amount != amount.quantize(Decimal("0.01")):
        raise ValueError("must be from 0 to less than 10^15, with at most two fraction digits")
    return amount


def _to_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(_NO_TIMESTAMP) from None


def _whole(value: object) -> object:
    # A choice of numbers would take True for 1.
    if type(value) is not int:
        raise ValueError("must be a whole number")
    return value


@dataclass(frozen=True, slots=True)
class _UsualText:
    """Values as nearly all answers have them are read without a Python function of ours: a page of 100
    servers holds 800. They match ``pattern``, and ``kind`` makes the value. All others are read by the rules
    of the field; ``wrong`` says what is wrong with those that are refused.
    """

    pattern: str | None
    kind: Callable[[str], object] | None
    wrong: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        usual: CoreSchema = core_schema.str_schema(pattern=self.pattern, strict=True)
        if self.kind is not None:
            usual = core_schema.no_info_after_validator_function(self.kind, usual)
        return core_schema.union_schema(
            [usual, handler(source)],
            mode="left_to_right",
            custom_error_type="value_refused",
            custom_error_message=self.wrong,
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema["choices"][1])


Money = Annotated[
    Decimal,
    BeforeValidator(_money_from_api),
    _UsualText(r"^-?[0-9]{1,30}\.[0-9]{2,4}$", Decimal, _NO_MONEY),
    PlainSerializer(_money_to_api, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": MONEY_PATTERN}),
]
Amount = Annotated[
    Decimal,
    BeforeValidator(_amount_to_send),
    PlainSerializer(_money_to_api, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^[0-9]{1,15}\.[0-9]{2}$"},
                {"type": "number", "multipleOf": 0.01, "minimum": 0, "exclusiveMaximum": 10**15},
            ]
        }
    ),
]


def _timestamp_to_api(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _timestamp_from_api(value: object) -> object:
    # pydantic would take the digits of unix seconds too.
    if isinstance(value, datetime) or (isinstance(value, str) and _RFC3339.fullmatch(value)):
        return value
    raise ValueError(_NO_TIMESTAMP)


def _shown_once(value: object) -> object:
    # The replay of a stored answer blanks its secrets (API document, "Idempotency"): nothing was shown.
    return None if value == "" else value


ShownOnce = Annotated[Secret | None, BeforeValidator(_shown_once)]
"""A secret that is shown once: ``None`` in a replay, where the service blanks it."""
NewSecret = Annotated[Secret, BeforeValidator(_shown_once)]
"""A secret that the answer must show: a blank one is damage."""
Timestamp = Annotated[
    AwareDatetime,
    # After a validator of ours, strict mode would take JSON text for Python text and refuse it; what is text
    # is decided above.
    Field(strict=False),
    BeforeValidator(_timestamp_from_api),
    AfterValidator(_to_utc),
    _UsualText(
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$",
        datetime.fromisoformat,
        _NO_TIMESTAMP,
    ),
    PlainSerializer(_timestamp_to_api, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Id = Annotated[int, Field(ge=1, le=INT64)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class Constraint:
    """A rule of ours for a value: ``check`` raises ``ValueError``, ``printed`` is what JSON Schema can say of
    it.
    """

    def __init__(self, check: Callable[..., object], **printed: object) -> None:
        self.check, self.printed = check, printed

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), **self.printed}


ONE_LINE = Constraint(check_line, pattern=LINE_PATTERN)
ServerName = Annotated[
    str, Constraint(check_server_name, pattern=SERVER_NAME_PATTERN, maxLength=NAME_LENGTH, minLength=1)
]
HostName = Annotated[str, Constraint(check_host_name, pattern=HOST_NAME_PATTERN, maxLength=NAME_LENGTH)]
DomainName = Annotated[
    str,
    Field(min_length=3, max_length=NAME_LENGTH),
    Constraint(check_domain_name, pattern=DOMAIN_NAME_PATTERN),
]
Notes = Annotated[str, Constraint(check_notes, pattern=LINES_PATTERN)]
Line = Annotated[str, ONE_LINE]
ShortLine = Annotated[str, Field(min_length=1, max_length=64), ONE_LINE]
PublicKey = Annotated[
    str,
    Field(max_length=16384),
    Constraint(check_public_key, pattern=rf"^\s*({'|'.join(KEY_TYPES)})\s+[A-Za-z0-9+/]+=*(\s.*)?$"),
]


def known(*values: str) -> Any:
    """A text whose documented values are ``values``; others are accepted, since enums of this API may
    grow."""
    return Field(json_schema_extra={"examples": list(values)})


ServerStatusText = Annotated[str, known(*SERVER_STATUSES)]
DomainStatusText = Annotated[str, known(*DOMAIN_STATUSES)]
EventType = Annotated[str, known(*EVENT_TYPES)]
EVENT_PATTERN = r"^(\*|ping|[a-z_]+\.[a-z_]+)$"
"""A new type of event looks like ``thing.happened``; ``*`` stands for all."""


def _name_of(value: object) -> object:
    # Older deployments send location and os as objects.
    if isinstance(value, dict):
        return value.get("slug") or value.get("name") or value.get("code")
    return value


NameText = Annotated[
    str | None, BeforeValidator(_name_of), _UsualText(None, None, "must be a text, or an object with a name")
]


def _check_password(value: Secret) -> Secret:
    if not re.fullmatch(PASSWORD_PATTERN, value.reveal()):
        raise ValueError(
            "must be 8 to 64 characters of A-Z a-z 0-9 ! @ # $ % ^ & * - with at least "
            "one letter and one digit"
        )
    return value


RootPassword = Annotated[
    Secret,
    AfterValidator(_check_password),
    WithJsonSchema(
        {"type": "string", "format": "password", "pattern": PASSWORD_PATTERN, "minLength": 8, "maxLength": 64}
    ),
]
OsSlug = Annotated[str, Field(min_length=1, max_length=128), ONE_LINE]
PromoCode = ShortLine
Months = Annotated[Literal[1, 3, 6, 12], BeforeValidator(_whole)]
BillingCycle = Literal["monthly", "hourly"]
