"""The shapes of answers, from the section on resources and their fields.

A shape maps fields to their type; ``a|b`` are names of which one is enough: the document's, and the one that
clients are prepared for. A list of one shape is a list of such objects. A type ends in ``?`` if ``null`` is
allowed. ``(a b)`` lists the allowed values; words that clients are prepared for come after a slash.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

Shape = Mapping[str, Any]

MONEY = re.compile(r"-?\d+\.\d{2,4}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

PAGE: Shape = {"data": "list", "next_cursor": "text?"}
HEALTH: Shape = {"status": "(ok disabled)", "time": "time", "version": "str"}
ME: Shape = {"key": {"id": "int"}, "scopes": "list", "livemode|mode|sandbox": "any"}
ACCOUNT: Shape = {
    "login email currency": "str",
    "group loyalty_discount_percent": "any",
    "email_verified two_factor_enabled": "bool",
}
BALANCE: Shape = {
    "balance upcoming_7d upcoming_30d auto_renew_total_monthly": "money",
    "currency": "str",
    "low_balance": "bool",
}
TRANSACTION: Shape = {
    "amount": "money",
    "direction": "(credit debit)",
    "type": "(topup payment refund bonus referral adjustment other)",
    "gateway": "str?",
    "invoice_id": "int?",
    "created_at": "time",
}
TOPUP_INFO: Shape = {
    "currency": "str",
    "min max": "money",
    "first_topup_bonus_percent": "num",
    "first_topup_eligible": "bool",
    "gateways": "strs",
}
TOPUP_RESULT: Shape = {"invoice_id": "int", "payment_url": "url", "gateway": "str"}
INVOICE: Shape = {
    "id": "int",
    "type": "(topup vds_purchase vds_renewal ip_purchase domain_registration domain_renewal domain_transfer "
    "other / vds_addon domain_purchase late_fee dedicated_purchase dedicated_renewal)",
    "status": "(not_paid paid cancelled refunded / pending failed)",
    "amount": "money",
    "currency": "str",
    "due_at paid_at": "time?",
    "items": [{"server_id|domain_id": "any"}],
    "pdf_url": "str?",
}
PAID: Shape = {"invoice_id": "int", "status": "(paid)", "amount balance_after": "money", "currency": "str"}
PAYMENT_LINK: Shape = {"payment_url": "url"}
TARIFF: Shape = {
    "id": "int",
    "name": "str",
    "location": {"code": "str"},
    "price_monthly list_price_monthly": "money",
    "price_hourly": "money?",
    "hourly_available in_stock": "bool",
    "excluded_os": "strs",
}
ZONE: Shape = {
    "tld": "str",
    "price_register|price_registration price_renew|price_renewal": "money",
    "price_transfer": "money?",
    "min_years max_years": "int",
    "privacy_supported transfer_supported": "bool",
}
QUOTE: Shape = {
    "total shortfall": "money",
    "currency": "str",
    "balance_sufficient": "bool",
    "discounts": "list",
}
REFUND_QUOTE: Shape = {
    "amount": "money",
    "currency": "str",
    "refundable": "bool",
    "excluded_reason": "(promo_tariff blocked unpaid no_payment_record / service_state hourly consumed "
    "currency_mismatch unavailable)?",
    "breakdown": [{"days_left": "any"}],
    "referral_adjustment": "any",
}
SERVER: Shape = {
    "id": "int",
    "name": "str",
    "status": "(active stopped suspended pending_cancel cancelled terminated)",
    "ip|primary_ip notes": "str?",
    "tariff resources": "obj",
    "ips|ip": "addresses",
    "flags": {"blocked expired is_test": "bool"},
    "billing": {
        "cycle": "(monthly hourly)",
        "next_due_at": "time?",
        "recurring_amount": "money",
        "auto_renew": "bool",
    },
}
SERVER_DETAIL: Shape = {**SERVER, "refund_quote": REFUND_QUOTE}
SIMULATED_SERVER: Shape = {"server": SERVER, "root_password": "str", "charged balance_after": "money"}
SERVER_CREATED: Shape = {**SIMULATED_SERVER, "invoice_id": "int?", "order_url": "str?"}
ORDER: Shape = {
    "invoice_id": "int",
    "status currency": "str",
    "server_id tariff_id": "int?",
    "amount": "money",
    "created_at updated_at": "time?",
    "order_url failure_reason": "str?",
}
LIVE: Shape = {
    "power": "(running stopped unknown)",
    "cpu_percent": "num?",
    "memory disk": "any",
    "uptime_seconds": "int?",
}
DELETED: Shape = {"status": "str", "balance_after": "money", "refund": "any"}
RENEWED: Shape = {"charged balance_after": "money", "next_due_at": "time"}
ADDRESS: Shape = {"id": "int", "ip|address": "ip", "primary": "bool", "ptr": "str?", "price_monthly": "money"}
ADDRESS_QUOTE: Shape = {"prorated_now price_monthly": "money", "extra_ips max_extra_ips": "int"}
ADDRESS_BOUGHT: Shape = {"success": "bool", "server_id days": "int", "charged": "money", "currency": "str"}
POWER: Shape = {
    "server_id": "int",
    "action": "(start stop restart)",
    "status": "(accepted / done)",
    "message": "str?",
}
REINSTALL: Shape = {"server_id": "int", "status": "(reinstalling)", "os": "str", "root_password": "str?"}
SSH_KEY: Shape = {"id": "int", "name public_key": "str"}
DOMAIN: Shape = {
    "id": "int",
    "name": "str",
    "status": "(pending active expired transfer_pending cancelled)",
    "blocked locked privacy auto_renew": "bool",
    "expires_at": "time?",
    "price_renew": "money",
    "nameservers": "strs",
}
AVAILABILITY: Shape = {
    "available": "bool",
    "reason": "(taken premium reserved invalid unsupported_tld)?",
    "price_register price_renew": "money?",
    "currency": "str",
}
KEY: Shape = {
    "id": "int",
    "name": "str",
    "scopes": "strs",
    "mode": "(live test)",
    "not_before expires_at": "time?",
    "last_used_ip": "str?",
}
SUBSCRIPTION: Shape = {
    "id": "int",
    "url": "url",
    "events": "strs",
    "description disabled_reason": "str?",
    "active": "bool",
}
DELIVERY: Shape = {"id attempts": "int", "event_type": "str", "last_status": "int?", "last_error": "str?"}
TEST_RESULT: Shape = {"ok": "bool", "status": "int?", "latency_ms": "num", "detail": "str?"}
EVENT: Shape = {
    "id type api_version": "str",
    "created_at": "time",
    "livemode": "bool",
    "account_id": "int",
    "data": {"object": "obj"},
    "resource": "str?",
}

_TYPES: Mapping[str, Any] = {
    "addresses": lambda value: value is None or isinstance(value, str | list),
    "str": lambda value: isinstance(value, str),
    "text": lambda value: isinstance(value, str) and value != "",
    "ip": lambda value: isinstance(value, str) and re.fullmatch(r"[\da-f.:]+", value, re.IGNORECASE),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "num": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "strs": lambda value: isinstance(value, list) and all(isinstance(entry, str) for entry in value),
    "obj": lambda value: isinstance(value, dict),
    "money": lambda value: isinstance(value, str) and MONEY.fullmatch(value) is not None,
    "time": lambda value: isinstance(value, str) and is_time(value),
    "url": lambda value: isinstance(value, str) and re.match(r"https?://", value) is not None,
    "any": lambda value: True,
}


def is_time(text: str) -> bool:
    """RFC 3339 in UTC with a trailing Z."""
    try:
        return TIME.fullmatch(text) is not None and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def problems(value: object, shape: Shape, path: str = "") -> Iterator[str]:
    """What differs from the shape. More fields are allowed.

    >>> list(problems({"amount": 1.5, "s": "no"}, {"amount": "money", "s": "(yes / no)", "id|ids at": "int"}))
    ['amount is 1.5, not money', 'id is missing', 'at is missing']
    """
    if not isinstance(value, dict):
        yield f"{path or 'the answer'} is {_short(value)}, not an object"
        return
    for names, expected in [(names, type) for fields, type in shape.items() for names in fields.split()]:
        known = [name for name in names.split("|") if name in value]
        if not known:
            yield f"{path}{names.partition('|')[0]} is missing"
        elif isinstance(expected, Mapping):
            yield from problems(value[known[0]], expected, f"{path}{known[0]}.")
        elif isinstance(expected, list) and isinstance(entries := value[known[0]], list):
            for number, entry in enumerate(entries):
                yield from problems(entry, expected[0], f"{path}{known[0]}.{number}.")
        elif isinstance(expected, list) or not fits(value[known[0]], expected):
            yield f"{path}{known[0]} is {_short(value[known[0]])}, not {expected}"


def fits(value: object, type: str) -> bool:
    if type.endswith("?"):
        return value is None or fits(value, type[:-1])
    if type.startswith("("):
        return value in type.strip("()").replace("/", " ").split()
    return bool(_TYPES[type](value))


def _short(value: object) -> str:
    return repr(value) if len(repr(value)) < 60 else f"{repr(value)[:60]}…"


_MONEY_NAMES = re.compile(
    r"(list_)?price(_\w+)?|amount|balance(_after)?|upcoming_\w+|total|shortfall|charged|prorated_now|refund"
    r"|(gross|recurring|base)_amount|referral_adjustment|auto_renew_total_monthly"
)
_TIME_NAMES = re.compile(r"\w+_at|time|not_before|period_(start|end)")


def format_problems(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """``money`` or ``time``, and what is wrong with its format, anywhere in an answer."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if key not in ("fields", "payload"):  # words about fields; what was delivered
                yield from format_problems(entry, key)
    elif isinstance(value, list):
        for entry in value:
            yield from format_problems(entry, name)
    elif value is None:
        return
    elif _MONEY_NAMES.fullmatch(name) and not fits(value, "money"):
        yield "money", f"{name} is {_short(value)}, not a decimal string"
    elif _TIME_NAMES.fullmatch(name) and not fits(value, "time"):
        yield "time", f"{name} is {_short(value)}, not a timestamp in UTC with Z"
