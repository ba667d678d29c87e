"""Resources: fields that are missing, have another name, another type or another value."""

from typing import Any

from tests.certify.mutants.change import Edit, answer, breaks, drop, endpoint, put, rename, row

SERVERS = "GET /servers|GET /servers/{server_id}|POST /servers|PATCH /servers/{server_id}"
TARIFFS = "GET /catalog/tariffs|GET /catalog/tariffs/{tariff_id}"
INVOICES = "GET /invoices|GET /invoices/{invoice_id}"
DOMAINS, HOOKS = "GET /domains|GET /domains/{domain_id}", "POST /webhooks|GET /webhooks|PATCH /webhooks/{id}"
ADDRESSES = "GET /servers/{server_id}/ips"


def _opposite(value: object) -> object:
    return not value


def _word(old: str, new: str) -> Any:
    return lambda word: new if word == old else word


def _of(sentence: str, routes: str, missing: str, /, *also: str, **edits: Edit) -> list[Any]:
    """Mutants of what these routes answer: one for each field of ``missing``, and an edit each.

    ``also``: other sentences, of what is compared with it.
    """
    called = routes.replace("{id}", "{webhook_id}")
    prefix = sentence.lower().replace("*", "").replace("`", "").lstrip("- ").split(":")[0].split(" (")[0]
    edits = {f"no-{path}": drop(*path.split("|")) for path in missing.split()} | edits
    quoted = (row(sentence), *(endpoint(route) for route in routes.split("|")), *also)
    every = ((f"{prefix}: {id}", f"{prefix}: {id}", answer(called, edit)) for id, edit in edits.items())
    return breaks(quoted, *every)


# fmt: off
ACCOUNT = [
    *_of(
        "**Health** (`GET /health`)", "GET /health", "status time version",
        "`GET /health` returns `version`;", "Current API version string is `1`;", "Timestamps are RFC 3339",
        up=put("status", "up"), unix=put("time", 1795000000), number=put("version", 1),
    ),
    *_of(
        "**Me** (`GET /me`)", "GET /me", "key key.id scopes|key.scopes",
        few=put("scopes", lambda scopes: scopes[:1]), text=put("scopes", " ".join),
        mode=put("livemode", _opposite),
    ),
    *_of(
        "**Account**: login, e-mail", "GET /account", "login email currency group two_factor_enabled",
        "It always comes with `currency` (ISO 4217",
        number=put("email_verified", int), word=put("two_factor_enabled", "no"),
    ),
    *_of(
        "**Balance**: `balance`", "GET /balance",
        "balance upcoming_7d upcoming_30d low_balance",
        word=put("low_balance", "false"), low=put("low_balance", _opposite),
        more=put("upcoming_7d", "999.00"),
    ),
    *_of(
        "**Transaction**: `amount` (absolute value)", "GET /transactions",
        "data.*.amount data.*.direction data.*.type data.*.created_at",
        negative=put("data.*.amount", lambda money: f"-{money}"),
        out=put("data.*.direction", _word("debit", "out")), kind=put("data.*.type", "charge"),
        swapped=put("data.*.direction", lambda word: {"debit": "credit"}.get(word, "debit")),
        invoice=put("data.*.invoice_id", None),
    ),
    *_of(
        "**TopupInfo**: `currency`", "GET /balance/topup-info",
        "min max first_topup_bonus_percent first_topup_eligible gateways currency",
        objects=put("gateways", lambda codes: [{"code": code} for code in codes]),
        high=put("min", "99999.00"),
    ),
    *_of(
        "**TopupResult**: `invoice_id`", "POST /balance/topup", "invoice_id payment_url gateway",
        text=put("invoice_id", str), path=put("payment_url", "pay/1"), other=put("gateway", "cash"),
    ),
    *_of(
        "**Invoice**: `id` (integer)", INVOICES, "**.type **.status **.due_at **.paid_at **.items",
        endpoint("POST /servers"), endpoint("POST /balance/topup"), row("**ServerCreated**"),
        row("- `status` values: `not_paid`"), row("- `type` values: `topup`"),
        text=put("**.id", str), sum=put("**.amount", lambda money: f"{float(money) + 1:.2f}"),
        server=put("**.items", lambda items: [{"amount": item["amount"]} for item in items]),
    ),
    *_of(
        "- `status` values: `not_paid`, `paid`", INVOICES, "",
        row("- Invoice `status`:"), endpoint("POST /balance/topup"),
        unpaid=put("**.status", _word("not_paid", "unpaid")), upper=put("**.status", str.upper),
        open=put("**.status", _word("not_paid", "open")),
    ),
    *_of(
        "- `type` values: `topup`, `vds_purchase`", INVOICES, "",
        endpoint("POST /balance/topup"),
        deposit=put("**.type", _word("topup", "deposit")),
        server=put("**.type", _word("vds_purchase", "server")),
        hyphen=put("**.type", lambda word: word.replace("_", "-")),
    ),
    *_of(
        "**PaymentLink**: contains", "POST /invoices/{invoice_id}/payment-link", "payment_url",
        null=put("payment_url", None), renamed=rename("payment_url", "url"),
    ),
]

CATALOG = [
    *_of(
        "**Tariff**: `id`, `name`", TARIFFS,
        "data.*.name|name **.location.code **.price_monthly **.list_price_monthly **.price_hourly"
        " **.hourly_available",
        text=put("**.id", str), place=put("**.location", 1), number=put("**.in_stock", int),
    ),
    *_of(
        "**OsImage**: `slug`", "GET /catalog/os", "data.*.slug",
        renamed=rename("data.*.slug", "code"), prefix=put("data.*.slug", lambda slug: f"os:{slug}"),
    ),
    *_of(
        "**OsImage**: `slug`", "GET /catalog/locations", "data.*.code",
        null=put("data.*.code", None), number=put("data.*.code", 1),
    ),
    *_of(
        "**Zone** (domain TLD)", "GET /catalog/zones",
        "data.*.tld data.*.price_renew data.*.price_register data.*.max_years data.*.privacy_supported",
        text=put("data.*.min_years", str),
    ),
    *_of(
        "**Quote**: `total`", "GET /catalog/quote", "total balance_sufficient shortfall discounts",
        wrong=put("balance_sufficient", _opposite), more=put("shortfall", "3.00"),
    ),
]

SERVER = [
    *_of(
        "**Server**: `id`, `name`", SERVERS,
        "name|server.name|data.*.name status|server.status|data.*.status **.ip|**.primary_ip|**.ips **.notes"
        " **.flags **.flags.blocked **.flags.expired **.billing **.billing.cycle **.billing.next_due_at"
        " **.billing.recurring_amount **.billing.auto_renew **.resources refund_quote",
        row("- Server flags: `flags.blocked`"),
        text=put("**.id", str), number=put("**.billing.auto_renew", int),
    ),
    *_of(
        "- Server `status`: `active`", SERVERS, "",
        running=put("**.status", _word("active", "running")), upper=put("**.status", str.upper),
        number=put("**.status", 1),
    ),
    *_of(
        "**ServerCreated** (201", "POST /servers",
        "server root_password invoice_id charged balance_after order_url",
        endpoint("GET /catalog/quote"), endpoint("GET /balance"), row("**Balance**"),
        endpoint("GET /transactions"), row("**Transaction**"), row("**Invoice**: `id`"),
        more=put("charged", lambda money: f"{float(money) + 1:.2f}"), none=put("balance_after", "0.00"),
    ),
    *_of(
        "**Order**: `invoice_id`", "GET /orders/{invoice_id}",
        "invoice_id status server_id tariff_id amount created_at order_url failure_reason updated_at",
    ),
    *_of(
        "**ServerStatus (live)**", "GET /servers/{server_id}/status", "power",
        on=put("power", "on"), true=put("power", True), text=put("uptime_seconds", str),
    ),
    *_of(
        "**RefundQuote**: `amount`", "GET /servers/{server_id}/refund-quote",
        "amount refundable excluded_reason breakdown breakdown.*.days_left referral_adjustment",
        wrong=put("refundable", _opposite), word=put("refundable", str),
    ),
    *_of(
        "**DeleteResult**: `status`", "DELETE /servers/{server_id}",
        "status refund|refund_quote balance_after", row("**RefundQuote**"), endpoint("GET /balance"),
        row("**Transaction**"), row("| Server | any not `cancelled`/`terminated`"),
        endpoint("GET /servers/{server_id}/refund-quote"),
        refund=put("refund", lambda old: {**old, "amount": "0.01"} if isinstance(old, dict) else "0.01"),
        balance=put("balance_after", "0.00"),
    ),
    *_of(
        "**Server IP**: `id`", ADDRESSES,
        "data.*.id data.*.ip|data.*.address data.*.primary data.*.ptr data.*.price_monthly",
        name=put("data.*.ip", "localhost"), none=put("data.*.primary", False),
    ),
    *_of(
        "**Server IP**: `id`", f"{ADDRESSES}/quote", "prorated_now price_monthly extra_ips max_extra_ips",
        text=put("max_extra_ips", str),
    ),
]

OTHERS = [
    *_of(
        "**SSH key**: `id`", "GET /ssh-keys|POST /ssh-keys", "**.id **.name **.public_key",
        renamed=rename("**.public_key", "key"), cut=put("**.public_key", lambda text: text[:20]),
    ),
    *_of(
        "**Domain**: `id`, `name`", DOMAINS,
        "**.name **.status **.blocked **.expires_at **.nameservers **.auto_renew",
        text=put("**.id", str), number=put("**.locked", int),
    ),
    *_of(
        "- Domain `status`: `pending`", DOMAINS, "",
        other=put("**.status", "registered"), upper=put("**.status", str.upper), ok=put("**.status", "ok"),
    ),
    *_of(
        "**Availability**: `available`", "GET /domains/availability",
        "available price_register price_renew currency",
        word=put("available", str), other=put("reason", lambda word: word and "registered"),
    ),
    *_of(
        "**API key** (as listed)", "GET /keys",
        "data.*.id data.*.name data.*.scopes data.*.mode data.*.expires_at data.*.not_before",
        production=put("data.*.mode", _word("live", "production")),
    ),
    *_of(
        "**Webhook subscription**: `id`", HOOKS, "**.id **.url **.events **.active **.disabled_reason secret",
        prefix=put("secret", lambda text: text.removeprefix("whsec_")),
    ),
    *_of(
        "**Webhook delivery**: `id`", "GET /webhooks/{id}/deliveries",
        "data.*.id data.*.event_type data.*.attempts data.*.last_status data.*.last_error",
        row("- Delivery `status`:"), row("| Delivery | `pending` | receiver answers 2xx"),
        ok=put("data.*.status", "ok"), waiting=put("data.*.status", _word("delivered", "pending")),
    ),
    *_of(
        "**Webhook test result**: `ok`", "POST /webhooks/{id}/test",
        "ok status latency_ms detail",
        text=put("latency_ms", lambda number: f"{number} ms"),
    ),
]

MUTANTS = [*ACCOUNT, *CATALOG, *SERVER, *OTHERS]
