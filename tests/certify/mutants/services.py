"""Domains, API keys, webhook subscriptions, and events with their deliveries."""

import json
from dataclasses import replace
from itertools import count
from typing import Any

from pulumi_hosting.emulator import events, webhook_delivery
from pulumi_hosting.emulator import rows as r
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import Answer
from tests.certify.mutants.change import (
    Change,
    answer,
    around,
    asked,
    body,
    both,
    breaks,
    code,
    const,
    drop,
    endpoint,
    handler,
    lines,
    put,
    query,
    refused,
    refuses,
    rename,
    row,
)

AVAILABLE, REGISTER = "GET /domains/availability", "POST /domains"
NAMESERVERS, UPDATE = "PUT /domains/{domain_id}/nameservers", "PATCH /domains/{domain_id}"
RENEW, TRANSFER = "POST /domains/{domain_id}/renew", "POST /domains/transfers"
YEARS, SERVERS_LIMIT = row("| Domain renewal `years` |"), row("| Nameservers per domain |")
CODES_409 = row("| 409 | `")


def _of(route: str, *mutants: tuple[Any, ...]) -> list[Any]:
    return breaks(endpoint(route), *mutants)


def _unchanged(operation: str, kind: type[r.Row], name: str, *column: str) -> Change:
    """The answer is right; the row is as before."""

    def handle(original: Any, call: Call) -> Answer:
        known = call.own(kind, call.ids[name])
        before = {key: getattr(known, key) for key in column}
        response: Answer = original(call)
        for key, value in before.items():
            setattr(known, key, value)
        return response

    return handler(operation, handle)


def _sets(routes: str, name: str, new: Any) -> Change:
    def edit(data: dict[str, Any]) -> None:
        if name in data:
            data[name] = new(data[name])

    return body(routes, edit)


def _has_punycode(call: Call) -> bool:
    return "xn--" in call.query.name


def _four(hosts: Any) -> Any:
    return hosts[:4] if len(hosts) > 4 else hosts


def _two(hosts: Any) -> Any:
    return [*hosts, "ns9.example.net"] if len(hosts) == 1 else hosts


def _distinct(hosts: Any) -> Any:
    return hosts if len({*hosts}) == len(hosts) else [f"{n}.{host}" for n, host in enumerate(hosts)]


DOMAINS = [
    *_of(
        AVAILABLE,
        (
            "free-unicode",
            "no Unicode",
            refuses(AVAILABLE, "validation_error", lambda c: not c.query.name.isascii()),
        ),
        (
            "free-none",
            "no name",
            asked(AVAILABLE, lambda c: setattr(c.request, "query", c.request.query or "name=a.com")),
        ),
        ("free-ascii", "no punycode", refuses(AVAILABLE, "validation_error", _has_punycode)),
    ),
    *breaks(
        (endpoint(REGISTER), row("| Domain | (none) | `POST /domains` answers 201")),
        ("domain-status", "another status", answer(REGISTER, put("status", "ok"))),
        ("domain-charged", "no `charged`", answer(REGISTER, drop("charged"))),
        ("domain-none", "no `domain`", answer(REGISTER, drop("domain"))),
        ("domain-more", "another price", answer(REGISTER, put("charged", lambda m: f"{float(m) + 1:.2f}"))),
        (
            "domain-renews",
            "it renews itself",
            body(REGISTER, lambda data: data.setdefault("auto_renew", True)),
        ),
        ("domain-years", "two years", body(REGISTER, lambda data: data.setdefault("years", 2))),
        ("domain-again", "another code", refused("domain_exists domain_taken", code("conflict")), CODES_409),
    ),
    *breaks(
        (endpoint(NAMESERVERS), SERVERS_LIMIT),
        ("ns-1", "one is enough", _sets(NAMESERVERS, "nameservers", _two)),
        ("ns-5", "five", _sets(NAMESERVERS, "nameservers", _four)),
        ("ns-same", "two that are equal", _sets(NAMESERVERS, "nameservers", _distinct)),
        (
            "ns-lost",
            "nothing is kept",
            _unchanged("set_domain_nameservers", r.DomainRow, "domain_id", "nameservers"),
        ),
        ("ns-none", "not answered", answer(NAMESERVERS, drop("nameservers"))),
    ),
    *_of(
        UPDATE,
        (
            "domain-privacy",
            "`privacy` is lost",
            _unchanged("update_domain", r.DomainRow, "domain_id", "privacy"),
        ),
        (
            "domain-renew",
            "`auto_renew` is lost",
            _unchanged("update_domain", r.DomainRow, "domain_id", "auto_renew"),
        ),
        ("domain-update", "not answered", answer(UPDATE, drop("privacy", "auto_renew"))),
    ),
    *breaks(
        (endpoint(RENEW), YEARS),
        ("years-0", "0 years", _sets(RENEW, "years", lambda n: n or 1)),
        ("years-11", "11 years", _sets(RENEW, "years", lambda n: 1 if n == 11 else n)),
        ("years-status", "another status", answer(RENEW, put("status", "ok"))),
        ("years-charged", "no `charged`", answer(RENEW, drop("charged"))),
        ("years-price", "one year for all", answer(RENEW, put("charged", "8.00"))),
    ),
    *_of(
        TRANSFER,
        (
            "transfer-code",
            "no code is needed",
            body(TRANSFER, lambda data: data.setdefault("auth_code", "x-1")),
        ),
        ("transfer-status", "no `status`", answer(TRANSFER, drop("status"))),
        ("transfer-charged", "no `charged`", answer(TRANSFER, drop("charged"))),
        ("transfer-word", "another status", answer(TRANSFER, put("status", "done"))),
    ),
]


# --- keys and subscriptions -------------------------------------------------------------------------------

RESULT = row("**Webhook test result**: `ok`")
HOOK_FIELDS = row("**Webhook subscription**: `id`")
HOOKS, HOOK, TEST = "POST /webhooks", "PATCH /webhooks/{id}", "POST /webhooks/{id}/test"
ROTATE, LOG = "POST /webhooks/{id}/rotate-secret", "GET /webhooks/{id}/deliveries"
REDELIVER = "POST /webhooks/deliveries/{delivery_id}/redeliver"
CALLED = {route: route.replace("{id}", "{webhook_id}") for route in (HOOK, TEST, ROTATE, LOG)}


def _with_secret(row: Any) -> Any:
    return {**row, "secret": "whsec_" + "a" * 44}


def _any_url(url: str) -> str:
    return f"https://{url.partition('://')[2]}" if url.startswith("http://") else url


def _public(url: str) -> str:
    return "https://hooks.example.org/" if url.startswith(("https://127.", "https://10.")) else url


def _old_signature(original: Any, store: Any, delivery: Any) -> Any:
    """Signed with the first secret of the subscription."""
    subscription = store.subscriptions[delivery.subscription_id]
    first = subscription.__dict__.setdefault("_first", subscription.secret)
    kept, subscription.secret = subscription.secret, first
    try:
        return original(store, delivery)
    finally:
        subscription.secret = kept


def _keeps_first(original: Any, call: Call) -> Answer:
    subscription = call.own(r.SubscriptionRow, call.ids["webhook_id"])
    subscription.__dict__.setdefault("_first", subscription.secret)
    return original(call)  # type: ignore[no-any-return]  # of an untyped original


def _same_secret(original: Any, call: Call) -> Answer:
    subscription = call.own(r.SubscriptionRow, call.ids["webhook_id"])
    secret, response = subscription.secret, original(call)
    subscription.secret = response.body["secret"] = secret
    return response  # type: ignore[no-any-return]  # of an untyped original


def _other_payload(original: Any, call: Call) -> Answer:
    delivery = call.own(r.DeliveryRow, call.ids["delivery_id"])
    event = json.loads(delivery.payload) | {"id": "evt_again"}
    delivery.payload = json.dumps(event, separators=(",", ":"))
    return original(call)  # type: ignore[no-any-return]  # of an untyped original


def _never_sent(original: Any, call: Call) -> Answer:
    response: Answer = original(call)
    delivery = call.own(r.DeliveryRow, call.ids["delivery_id"])
    delivery.next_attempt_at, delivery.delivered_at = None, call.now
    return response


SUBSCRIPTIONS = [
    *breaks(
        (endpoint("GET /keys"), endpoint("GET /keys/{key_id}")),
        ("keys-other", "another key", answer("GET /keys/{key_id}", put("id", 1))),
        ("keys-none", "none", answer("GET /keys", put("data", []))),
        ("keys-404", "404 for the own key", refuses("GET /keys/{key_id}", "not_found")),
    ),
    *_of(
        "GET /webhooks/events",
        (
            "types-texts",
            "texts",
            answer("GET */events", put("data", lambda rows: [one["type"] for one in rows])),
        ),
        ("types-name", "`name`", answer("GET */events", rename("data.*.type", "name"))),
        ("types-few", "one is missing", answer("GET */events", put("data", lambda rows: rows[1:]))),
    ),
    *_of(
        HOOKS,
        ("hook-http", "http is accepted", _sets(HOOKS, "url", _any_url)),
        ("hook-local", "private addresses", _sets(HOOKS, "url", _public)),
        ("hook-later", "the secret again", answer("GET /webhooks", put("data.*", _with_secret)), HOOK_FIELDS),
        ("hook-events", "all events", _sets(HOOKS, "events", lambda names: ["*"])),
    ),
    *breaks(
        (endpoint(HOOK), row("| Subscription | disabled | `PATCH")),
        (
            "active-lost",
            "`active` is lost",
            _unchanged("update_webhook", r.SubscriptionRow, "webhook_id", "active"),
        ),
        ("active-shown", "not shown", answer(CALLED[HOOK], drop("active"))),
        (
            "active-refused",
            "refused",
            refuses(CALLED[HOOK], "validation_error", lambda c: c.body.active is True),
        ),
    ),
    *_of(
        ROTATE,
        ("rotate-same", "the same secret", handler("rotate_webhook_secret", _same_secret)),
        ("rotate-none", "not answered", answer(CALLED[ROTATE], drop("secret"))),
        (
            "rotate-old",
            "signed with the old one",
            both(
                handler("rotate_webhook_secret", _keeps_first),
                around(webhook_delivery, "attempt", _old_signature),
            ),
        ),
    ),
    *_of(
        TEST,
        ("ping-false", "not ok", answer(CALLED[TEST], put("ok", False))),
        ("ping-status", "another status", answer(CALLED[TEST], put("status", 500))),
        ("ping-202", "queued", answer(CALLED[TEST], drop("ok", "status", "latency_ms", "detail")), RESULT),
    ),
    *_of(
        LOG,
        ("log-status", "`status` is ignored", asked(CALLED[LOG], query("status"))),
        ("log-type", "`event_type` is ignored", asked(CALLED[LOG], query("event_type"))),
        ("log-empty", "empty", answer(CALLED[LOG], put("data", []))),
    ),
    *breaks(
        (
            endpoint(REDELIVER),
            row("| Delivery | `dead` | `POST"),
            "retries and redeliveries send identical bytes",
        ),
        ("again-bytes", "other bytes", handler("redeliver_webhook", _other_payload)),
        ("again-never", "never sent", handler("redeliver_webhook", _never_sent)),
        ("again-status", "no `status`", answer(REDELIVER, drop("status"))),
    ),
]


# --- events -----------------------------------------------------------------------------------------------

VERSIONED = "`GET /health` returns `version`; webhook envelopes carry `api_version`."
ENVELOPE = "Envelope fields: `id` (`evt_` + string), `type`, `created_at` (timestamp), `livemode` (boolean),"
SAME = "The envelope is serialized once at queue time"
SIGNED = (
    row("| `X-Webhook-Signature` |"),
    endpoint(ROTATE),
    "Receiver rules: verify over the raw body bytes",
)


def _event(edit: Any, type: str = "") -> Change:
    """Envelopes, or those of a type, are edited before they are serialized."""

    def envelope(original: Any, *given: Any) -> Any:
        id, text = original(*given)
        event = json.loads(text)
        if type in ("", event["type"]):
            edit(event)
        return id, json.dumps(event, separators=(",", ":"))

    return around(events, "envelope", envelope)


def _attempt(edit: Any) -> Change:
    """The headers of an attempt are edited."""

    def attempt(original: Any, store: Any, delivery: Any) -> Any:
        made = original(store, delivery)
        edit(made.headers)
        return made

    return around(webhook_delivery, "attempt", attempt)


def _without(name: str) -> Change:
    return _attempt(lambda headers: headers.pop(name))


def _header(name: str, new: Any) -> Change:
    return _attempt(lambda headers: headers.update({name: new(headers[name])}))


def _signed(new: Any) -> Change:
    return around(webhook_delivery, "signature", new)


def _never(*types: str) -> Change:
    def emit(original: Any, store: Any, account: int, type: str, *given: Any, **named: Any) -> None:
        if type not in types:
            original(store, account, type, *given, **named)

    return around(events, "emit", emit)


NUMBERS = count()


def _spaced(original: Any, store: Any, delivery: Any) -> Any:
    made = original(store, delivery)
    return replace(made, payload=json.dumps(json.loads(made.payload)).encode())


EVENTS = [
    *breaks(
        (ENVELOPE, row("| `X-Webhook-Id` |"), row("| `X-Webhook-Event` |"), VERSIONED),
        ("event-id", "no `id`", _event(lambda e: e.pop("id"))),
        ("event-prefix", "another prefix", _event(lambda e: e.update(id=e["id"].removeprefix("evt_")))),
        ("event-type", "no `type`", _event(lambda e: e.pop("type"))),
        ("event-time", "unix seconds", _event(lambda e: e.update(created_at=1795000000))),
        ("event-live", "a text", _event(lambda e: e.update(livemode="true"))),
        ("event-account", "a text", _event(lambda e: e.update(account_id=str(e["account_id"])))),
        ("event-version", "a number", _event(lambda e: e.update(api_version=1))),
        ("event-object", "no object", _event(lambda e: e["data"].pop("object"))),
        ("event-flat", "no `data`", _event(lambda e: e.update(e.pop("data")))),
        ("event-resource", "no `resource`", _event(lambda e: e.pop("resource"))),
    ),
    *breaks(
        SIGNED,
        ("sign-none", "missing", _without("X-Webhook-Signature")),
        ("sign-upper", "upper case", _header("X-Webhook-Signature", str.upper)),
        ("sign-scheme", "`sha256=`", _signed(lambda original, *given: "sha256=" + original(*given)[3:])),
        (
            "sign-body",
            "without the time",
            _signed(lambda original, secret, time, body: original(secret, "", body)),
        ),
        (
            "sign-key",
            "without the prefix",
            _signed(lambda original, secret, *given: original(secret[6:], *given)),
        ),
        ("sign-bytes", "of other bytes", around(webhook_delivery, "attempt", _spaced)),
    ),
    *breaks(
        (row("| `X-Webhook-Timestamp` |"), row("| Webhook signature tolerance |"), *SIGNED),
        ("stamp-none", "missing", _without("X-Webhook-Timestamp")),
        ("stamp-ms", "milliseconds", _header("X-Webhook-Timestamp", lambda t: t + "000")),
        ("stamp-late", "400 seconds off", _header("X-Webhook-Timestamp", lambda t: str(int(t) - 400))),
    ),
    *breaks(
        (row("| `X-Webhook-Id` |"), SAME),
        ("hook-id-none", "missing", _without("X-Webhook-Id")),
        ("hook-id-own", "not the event's", _header("X-Webhook-Id", lambda _: "dlv_1")),
        ("hook-id-time", "another one each time", _header("X-Webhook-Id", lambda _: f"evt_{next(NUMBERS)}")),
    ),
    *breaks(
        row("| `X-Webhook-Event` |"),
        ("hook-event-none", "missing", _without("X-Webhook-Event")),
        ("hook-event-upper", "upper case", _header("X-Webhook-Event", str.upper)),
        ("hook-event-area", "the area alone", _header("X-Webhook-Event", lambda t: t[:4])),
    ),
    *breaks(
        row("| `User-Agent` |"),
        ("agent-none", "another one", _header("User-Agent", lambda _: "python/3")),
        ("agent-version", "no version", _header("User-Agent", lambda t: t[:-4])),
        ("agent-missing", "missing", _without("User-Agent")),
    ),
    *(
        one
        for type in (
            "server.created",
            "server.terminated",
            "server.reinstalled",
            "invoice.created",
            "invoice.paid",
            "domain.registered",
        )
        for one in breaks(
            (ENVELOPE, row("| `X-Webhook-Event` |"), *lines(f"`{type}`")),
            (f"no-{type}", "it never comes", _never(type)),
            (f"type-{type}", "another type", _event(lambda e: e.update(type="other"), type)),
            (f"empty-{type}", "an id alone", _event(lambda e: e["data"].update(object={"id": 1}), type)),
        )
    ),
    *breaks(
        row("| `ping` | from"),
        ("pong", "another message", _event(lambda e: e["data"]["object"].pop("message"), "ping")),
        ("ping-type", "another type", _event(lambda e: e.update(type="test"), "ping")),
        ("ping-id", "no subscription", _event(lambda e: e["data"]["object"].pop("subscription_id"), "ping")),
    ),
    *breaks(
        (row("| Delivery | `pending` | failure |"), "Retries: after 60 s, 5 min, 15 min, 1 h, 6 h;"),
        ("retry-never", "no retry", const(webhook_delivery, "RETRY_AFTER", ())),
        ("retry-early", "after 5 s", const(webhook_delivery, "RETRY_AFTER", (5, 300, 900, 3600, 21600))),
        (
            "retry-late",
            "after 5 minutes",
            const(webhook_delivery, "RETRY_AFTER", (300, 300, 900, 3600, 21600)),
        ),
    ),
]

MUTANTS = [*DOMAINS, *SUBSCRIPTIONS, *EVENTS]
