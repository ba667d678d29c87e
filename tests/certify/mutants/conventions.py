"""General conventions: bodies, timestamps, money, request ids, headers, pages."""

import re
from typing import Any

from pulumi_hosting.emulator import call, middleware
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import Answer, Refusal
from tests.certify.mutants.change import (
    ANY,
    ERRORS,
    answer,
    asked,
    body,
    breaks,
    code,
    const,
    drop,
    endpoint,
    header,
    lines,
    method,
    of_test_key,
    put,
    query,
    refused,
    refuses,
    rename,
    row,
    sent,
    status,
    step,
    texts,
    whole,
)

WRITES = "POST *|PUT *|PATCH *"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
MONEY = r"-?\d+\.\d{2,4}"
PAGED = "GET /servers|GET /invoices|GET /transactions|GET /orders|GET /domains|GET /webhooks/{*}/deliveries"
SHORT = "GET /catalog/tariffs|GET /catalog/os|GET /catalog/locations|GET /catalog/zones"
SHORT += "|GET /servers/{server_id}/ips|GET /ssh-keys|GET /keys|GET /webhooks"
SHOWN = lines(r"^\*\*|^\| `(GET|POST|PUT|PATCH|DELETE) ")
"""Every resource and every endpoint: what breaks all values breaks each of them."""
CODES_400, CODES_413, CODES_415 = (row(f"| {number} | `") for number in (400, 413, 415))

AMOUNT = (
    endpoint("POST /balance/topup"),
    row("**TopupResult**"),
    "A bare number with at most two fraction digits is also accepted, and a value with three fraction digits",
)
CURSORS = (
    "A malformed or tampered cursor gives `400 invalid_cursor`.",
    "A cursor is bound to the filter set it was issued for; changing a filter means restarting",
)
WALK = (
    "Order is newest first.",
    "During one walk there are no duplicates and no gaps.",
    "`null` on the last page.",
)
JSON_ONLY = "Request bodies of POST/PUT/PATCH are JSON only."
MONEY_RULE = "Money is a decimal string: optional minus, digits, a dot, then 2 to 4 fraction digits."
SOME_ID = "Every response carries `X-Request-ID`."
SENT_ID = (
    "A client may send its own `X-Request-ID`: it is cut to the first 64 characters drawn from letters,"
    " digits and `.` `_` `:` `-`."
)


def _as_json(text: str) -> str:
    return "application/json"


def _unsafe(call: Call) -> bool:
    return re.search(r"[^\w.:-]", call.request.headers.get("x-request-id", ""), re.ASCII) is not None


def _if_offset(new: Any) -> Any:
    """Timestamps with an offset in queries, rewritten."""
    edits = [
        query(name, lambda text: new(text) if re.search(r"[+-]\d\d:\d\d$", text) else text)
        for name in ("since", "until")
    ]
    return asked("GET /transactions", *edits)


def _request_id(new: Any) -> Any:
    """The id of a request is what ``new`` makes of the one that was sent and the emulator's own."""

    def identify(original: Any, call: Call) -> None:
        original(call)
        call.request_id = new(call.request.headers.get("x-request-id", ""), call.request_id)

    return step("identify_request", identify)


def _three_digits(data: dict[str, Any]) -> None:
    if re.fullmatch(r"\d+\.\d{3}", str(data.get("amount"))):
        data["amount"] = f"{float(data['amount']):.2f}"


def _one_more(data: dict[str, Any]) -> None:
    if re.fullmatch(r"\d+\.\d\d", str(data.get("amount"))):
        data["amount"] = f"{float(data['amount']) + 1:.2f}"


def _refuse(test: Any) -> Any:
    def read(data: dict[str, Any]) -> None:
        if test(data.get("amount")):
            raise Refusal("validation_error")

    return body("POST /balance/topup", read)


def _typed(text: str) -> Any:
    return lambda response: response.headers.update({"Content-Type": text})


BODIES = [
    *breaks(
        "The service is a REST API over HTTPS with JSON bodies for a hosting provider's clients",
        ("type-html", "HTML", answer("*", _typed("text/html"))),
        ("type-plain", "plain text", answer("*", _typed("text/plain"), on=ANY)),
        ("type-errors", "errors are HTML", answer("*", _typed("text/html"), on=ERRORS)),
    ),
    *breaks(
        ("A body with another content type gives `415 unsupported_media_type`.", JSON_ONLY, CODES_415),
        ("media-any", "any content type is read as JSON", asked(WRITES, sent("content-type", _as_json))),
        ("media-order", "the same of orders", asked("POST /servers*", sent("content-type", _as_json))),
        ("media-400", "status 400", refused("unsupported_media_type", status(400))),
        ("media-code", "another code", refused("unsupported_media_type", code("invalid_request"))),
    ),
    *breaks(
        ("A body larger than 64 KB gives `413 payload_too_large`.", row("| Request body |"), CODES_413),
        ("size-1mb", "1 MB is accepted", const(middleware, "MAX_BODY_BYTES", 2**20)),
        ("size-8k", "8 KB is refused", const(middleware, "MAX_BODY_BYTES", 2**13)),
        ("size-400", "status 400", refused("payload_too_large", status(400))),
        ("size-code", "another code", refused("payload_too_large", code("invalid_request"))),
    ),
]

VALUES = [
    *breaks(
        ("Timestamps are RFC 3339 in UTC with a trailing `Z`.", *SHOWN),
        ("time-offset", "+00:00 in place of Z", answer("*", texts(TIME, lambda t: t[:-1] + "+00:00"))),
        ("time-blank", "a blank in place of T", answer("*", texts(TIME, lambda t: t.replace("T", " ")))),
        ("time-bare", "without Z", answer("*", texts(TIME, lambda t: t[:-1]))),
        ("time-unix", "unix seconds", answer("*", put("**.created_at", 1795000000))),
        ("time-date", "a date alone", answer("*", put("**.next_due_at", lambda t: t and t[:10]))),
    ),
    *breaks(
        (
            "Possibly empty timestamps (`next_due_at`, `expires_at`, `paid_at`) are `null`, never an empty"
            " string.",
            row("**Invoice**: `id`"),
            row("**API key** (as listed)"),
        ),
        ("empty-paid", "`paid_at` is empty text", answer("*", put("**.paid_at", lambda t: t or ""))),
        ("empty-expires", "`expires_at` is empty", answer("*", put("**.expires_at", lambda t: t or ""))),
        ("zero-paid", "year 1", answer("*", put("**.paid_at", lambda t: t or "0001-01-01T00:00:00Z"))),
        ("false-paid", "false", answer("*", put("**.paid_at", lambda t: t or False))),
    ),
    *breaks(
        "Request timestamps (`since`, `until`) may use `Z` or an offset.",
        ("since-offset", "an offset is refused", _if_offset(lambda t: "no")),
        ("since-z", "Z is refused", asked("*", query("since", lambda t: t.replace("Z", "?")))),
        ("until-z", "Z is refused", asked("*", query("until", lambda t: t.replace("Z", "?")))),
        ("since-local", "an offset is dropped", _if_offset(lambda t: t[:19] + "Z")),
    ),
    *breaks(
        (MONEY_RULE, "Amounts are money strings as above.", *SHOWN),
        ("money-1", "one fraction digit", answer("*", texts(MONEY, lambda m: f"{float(m):.1f}"))),
        ("money-comma", "a comma", answer("*", texts(MONEY, lambda m: m.replace(".", ",")))),
        ("money-code", "with the currency", answer("*", texts(MONEY, lambda m: f"{m} EUR"))),
        ("money-bare", "no fraction", answer("*", texts(MONEY, lambda m: m.partition(".")[0]))),
        ("money-plus", "a plus", answer("*", texts(MONEY, lambda m: f"+{m}"))),
    ),
    *breaks(
        ("It is never a float in responses.", *SHOWN),
        ("float", "floats", answer("*", texts(MONEY, float))),
        ("float-balance", "`balance` is a float", answer("GET /balance", put("balance", float))),
        ("float-amount", "`amount` is a float", answer("*", put("**.amount", float))),
        ("float-price", "prices are floats", answer("*", put("**.price_monthly", float))),
    ),
    *breaks(
        ("It always comes with `currency` (ISO 4217 code of the account currency).", *SHOWN),
        ("currency-none", "missing", answer("*", drop("**.currency"))),
        ("currency-balance", "missing in the balance", answer("GET /balance", drop("currency"))),
        ("currency-sign", "a sign", answer("*", put("**.currency", "€"))),
        ("currency-other", "quotes in another one", answer("GET /catalog/quote", put("currency", "USD"))),
        ("currency-lower", "lower case", answer("*", put("**.currency", str.lower))),
    ),
    *breaks(
        ("In request bodies `amount` is sent as a string with two fraction digits.", *AMOUNT),
        ("amount-string", "a string is refused", _refuse(lambda a: isinstance(a, str))),
        ("amount-zero", "trailing zeros are refused", _refuse(lambda a: str(a).endswith("0"))),
        ("amount-other", "one more is asked for", body("POST /balance/topup", _one_more)),
    ),
    *breaks(
        (*AMOUNT,),
        ("amount-number", "a number is refused", _refuse(lambda a: not isinstance(a, str))),
        ("amount-integer", "an integer is refused", _refuse(lambda a: isinstance(a, int))),
        ("amount-3", "three digits are rounded", body("POST /balance/topup", _three_digits)),
    ),
    *breaks(
        (
            "Hourly prices (`price_hourly`) may have up to 4 fraction digits.",
            row("**Tariff**: `id`"),
            MONEY_RULE,
        ),
        ("hourly-6", "six digits", answer("*", put("**.price_hourly", lambda m: m and f"{m}00"))),
        ("hourly-float", "a float", answer("*", put("**.price_hourly", lambda m: m and float(m)))),
        ("hourly-e", "an exponent", answer("*", put("**.price_hourly", lambda m: m and "1.5e-2"))),
    ),
]

HEADERS = [
    *breaks(
        (SOME_ID, SENT_ID, row("- `request_id`: equals")),
        ("id-none", "missing", answer("*", header("X-Request-ID"), on=ANY)),
        ("id-errors", "missing in errors", answer("*", header("X-Request-ID"), on=ERRORS)),
        ("id-health", "missing in health", answer("GET /health", header("X-Request-ID"))),
        ("id-empty", "empty", answer("*", header("X-Request-ID", lambda _: ""), on=ANY)),
    ),
    *breaks(
        SENT_ID,
        ("id-32", "cut to 32", _request_id(lambda given, own: own[:32] if given else own)),
        ("id-uncut", "not cut", _request_id(lambda given, own: given if len(given) > 64 else own)),
        ("id-colon", "colons are dropped", _request_id(lambda given, own: own.replace(":", ""))),
        ("id-lower", "lower case", _request_id(lambda given, own: own.lower())),
        ("id-unsafe", "unsafe characters stay", _request_id(lambda given, own: given[:64] or own)),
    ),
    *breaks(
        "If anything remains it is adopted and echoed, otherwise the service generates one.",
        ("id-own", "never adopted", _request_id(lambda given, own: f"own-{len(given)}"), SENT_ID),
        ("id-fixed", "no new one", _request_id(lambda given, own: own if given else "none")),
        ("id-blank", "none is generated", _request_id(lambda given, own: own if given else ""), SOME_ID),
        ("id-refused", "other characters are refused", refuses("*", "invalid_request", _unsafe), SENT_ID),
    ),
    *breaks(
        "Every response to a test key carries `X-Sandbox: true`.",
        ("sandbox-none", "missing", answer("*", header("X-Sandbox"), on=ANY)),
        ("sandbox-1", "1", answer("*", header("X-Sandbox", lambda _: "1"), on=ANY)),
        ("sandbox-errors", "missing in errors", answer("*", header("X-Sandbox"), on=ERRORS)),
        ("sandbox-writes", "missing in writes", answer(WRITES, header("X-Sandbox"), on=ANY)),
    ),
    *breaks(
        (
            "Rate-limit headers are on responses (see Limits).",
            row("Response headers: `X-RateLimit-Limit`"),
        ),
        *(
            (f"rate-no-{name}", "missing", answer("*", header(f"X-RateLimit-{name.title()}"), on=ANY))
            for name in ("limit", "remaining", "reset")
        ),
        ("rate-fixed", "never falls", answer("*", header("X-RateLimit-Remaining", lambda _: "119"), on=ANY)),
        ("rate-left", "seconds left", answer("*", header("X-RateLimit-Reset", lambda _: "60"), on=ANY)),
        ("rate-ms", "milliseconds", answer("*", header("X-RateLimit-Reset", lambda t: f"{t}000"), on=ANY)),
        ("rate-word", "words", answer("*", header("X-RateLimit-Limit", lambda n: f"{n}/min"), on=ANY)),
        (
            "rate-bucket",
            "always 120",
            answer("*", header("X-RateLimit-Limit", lambda _: "120"), on=ANY),
            row("| Expensive bucket"),
        ),
        (
            "rate-test",
            "not for test keys",
            answer("*", header("X-RateLimit-Limit"), on=ANY, when=of_test_key),
        ),
    ),
]


def _limit(new: Any) -> Any:
    return asked(PAGED, query("limit", new))


def _page(new: Any) -> Any:
    """The rows of a page, changed."""
    return method(Call, "page", lambda original, self, rows: original(self, new([*rows])))


def _boundary(new: Any) -> Any:
    """A page after the first has other rows: ``new`` gets the row before it, and its rows."""

    def read(original: Any, self: Call, rows: Any) -> Answer:
        every = [*rows]
        shown: Answer = original(self, iter(every))
        if self.query.cursor is not None and (data := shown.body["data"]):
            views = [self.view(one) for one in every]
            shown.body["data"] = new(views[views.index(data[0]) - 1], data)
        return shown

    return method(Call, "page", read)


def _unbound(original: Any, self: Call, rows: Any) -> Answer:
    self.raw_query = {}
    return original(self, rows)  # type: ignore[no-any-return]  # of an untyped original


def _any_cursor(original: Any, self: Call, rows: Any) -> Answer:
    try:
        return original(self, rows)  # type: ignore[no-any-return]  # of an untyped original
    except Refusal:
        self.query = self.query.model_copy(update={"cursor": None})
        return original(self, rows)  # type: ignore[no-any-return]  # of an untyped original


def _last(cursor: object) -> Any:
    return answer(PAGED, put("next_cursor", lambda text: cursor if text is None else text))


PAGES = [
    *breaks(
        (
            "Response shape: `{data: [...], next_cursor: <string|null>}`.",
            *lines(r"^\| `GET .*page of"),
        ),
        ("page-list", "a bare list", answer(PAGED, whole(lambda page: page["data"]))),
        ("page-items", "`items`", answer(PAGED, rename("data", "items"))),
        (
            "page-object",
            "an object",
            answer(PAGED, put("data", lambda rows: {str(n): r for n, r in enumerate(rows)})),
        ),
        ("page-number", "a number", answer(PAGED, put("next_cursor", lambda text: text and 7))),
        (
            "page-missing",
            "no `next_cursor`",
            answer(PAGED, drop("next_cursor")),
            "`next_cursor` is `null` on",
        ),
    ),
    *breaks(
        ("Query `limit`: integer 1..100, default 50.", row("| `limit` of lists |"), *lines("page of")),
        ("limit-ignored", "ignored", _limit(lambda _: None)),
        ("limit-0", "0 is accepted", _limit(lambda n: "1" if n == "0" else n)),
        ("limit-101", "101 is cut to 100", _limit(lambda n: "100" if n == "101" else n)),
        ("limit-more", "one row more", _limit(lambda n: str(int(n) + 1) if n in "12345" else n)),
        ("limit-text", "text is ignored", _limit(lambda n: n if n.lstrip("-").isdigit() else None)),
        ("limit-100", "100 is refused", _limit(lambda n: "101" if n == "100" else n)),
        ("limit-2", "2 by default", const(call, "DEFAULT_LIMIT", 2)),
        ("limit-20", "20 by default", const(call, "DEFAULT_LIMIT", 20)),
    ),
    *breaks(
        (
            "`next_cursor` is `null` on the last page.",
            "Response shape: `{data: [...], next",
            *lines("page of"),
        ),
        ("last-empty", "empty", _last("")),
        ("last-again", "never", answer(PAGED, put("next_cursor", lambda text: text or "eyJpZCI6MX0"))),
        ("last-false", "false", _last(False)),
    ),
    *breaks(
        (*CURSORS, CODES_400),
        ("cursor-any", "the first page is shown", method(Call, "page", _any_cursor)),
        ("cursor-code", "another code", refused("invalid_cursor", code("validation_error"))),
        ("cursor-404", "status 404", refused("invalid_cursor", status(404))),
    ),
    *breaks(
        CURSORS,
        ("cursor-unbound", "not bound", method(Call, "page", _unbound)),
        ("cursor-direction", "filters are ignored with it", method(Call, "page", _any_cursor)),
        ("cursor-code-400", "a conflict", refused("invalid_cursor", status(409), code("conflict"))),
    ),
    *breaks(
        WALK,
        ("order-old", "oldest first", _page(lambda rows: sorted(rows, key=lambda r: r.seq))),
        ("order-page", "oldest first in a page", answer(PAGED, put("data", lambda rows: rows[::-1]))),
        ("order-shuffled", "by nothing", answer(PAGED, put("data", lambda rows: [*rows[1::2], *rows[::2]]))),
    ),
    *breaks(
        "During one walk there are no duplicates and no gaps.",
        ("walk-twice", "the last row comes again", _boundary(lambda before, rows: [before, *rows])),
        ("walk-gap", "a row is left out", _boundary(lambda before, rows: rows[1:])),
        ("walk-first", "always the first page", asked(PAGED, query("cursor")), *CURSORS, *WALK),
        (
            "walk-short",
            "pages lack their last row",
            answer(PAGED, put("data", lambda rows: rows[:-1] or rows)),
        ),
    ),
    *breaks(
        (row("- Short reference lists"), *lines(r"^\| `GET .*`{data: \[")),
        ("short-list", "a bare list", answer(SHORT, whole(lambda page: page["data"]))),
        ("short-items", "`items`", answer(SHORT, rename("data", "items"))),
        ("short-cut", "cut", answer("GET /keys|GET /servers/{*}/ips", put("data", lambda rows: rows[:1]))),
        (
            "short-cursor",
            "a cursor",
            answer(SHORT, whole(lambda page: page | {"next_cursor": "eyJpZCI6MX0"})),
        ),
    ),
]

MUTANTS = [*BODIES, *VALUES, *HEADERS, *PAGES]
