"""Authentication, scopes, errors, limits and versions."""

from typing import Any

from pulumi_hosting.api.error_codes import CODES as ALL_CODES
from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.emulator import middleware
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.rows import KeyRow
from pulumi_hosting.emulator.store import Store
from tests.certify.mutants.change import (
    ERRORS,
    answer,
    around,
    asked,
    breaks,
    code,
    columns,
    const,
    drop,
    endpoint,
    header,
    lines,
    method,
    put,
    refused,
    rename,
    row,
    sent,
    status,
    step,
    whole,
)

CODES_401, CODES_403, CODES_429 = (row(f"| {number} | `") for number in (401, 403, 429))
BEARER = (
    "Every request except `GET /health` and `GET /openapi.json` carries `Authorization: Bearer <API_KEY>`."
)
SCOPE = "A missing scope gives `403 insufficient_scope` with `details.required` (array of missing scopes)."
CODES = lines(r"`(\d{3} )?(" + "|".join(ALL_CODES) + r")`|^\| `\w+:\w+` |request_id|per 5? ?minutes?| 404")
"""Every line that speaks of errors: what breaks all errors breaks each of them."""
ENVELOPE = "{error: {code: string, message: string, request_id: string, details?: object}}"
EVERY = "One envelope for every error status, including application-level 404, 405, 413, 500:"


def _any_scheme(text: str) -> str:
    return text if text.lower().startswith("bearer ") or not text else f"Bearer {text.split()[-1]}"


def _anonymous(original: Any, call: Call) -> None:
    """Without a key the first live key is used."""
    if "authorization" not in call.request.headers:
        token = next(key.token for key in call.store.tables[KeyRow.kind].values() if not key.is_test)
        call.request.headers = {**call.request.headers, "authorization": f"Bearer {token}"}
    original(call)


def _prefix(original: Any, call: Call) -> KeyRow | None:
    """The first 20 characters of a key are enough."""
    token = call.request.headers.get("authorization", "").partition(" ")[2]
    return next(
        (key for text, key in call.store.by_token.items() if len(token) > 20 and text[:20] == token[:20]),
        None,
    )


def _keys(old: str, new: str) -> Any:
    """The tokens of new keys begin otherwise."""

    def add(original: Any, store: Store, row: Any) -> Any:
        if isinstance(row, KeyRow):
            row.token = row.token.replace(old, new, 1)
        return original(store, row)

    return method(Store, "add", add)


READ = ("servers:read",)
AUTHENTICATION = [
    *breaks(
        (BEARER, CODES_401),
        ("auth-none", "no key is needed", step("authenticate", _anonymous)),
        ("auth-400", "status 400", refused("invalid_token", status(400))),
        ("auth-403", "status 403", refused("invalid_token", status(403))),
        ("auth-code", "another code", refused("invalid_token", code("unauthorized"))),
        ("auth-basic", "any scheme", asked("*", sent("authorization", _any_scheme))),
        ("auth-prefix", "the beginning of a key", around(middleware, "presented_key", _prefix)),
        ("auth-200", "200 with an error", refused("invalid_token", status(200))),
    ),
    *breaks(
        ("A live key starts with `vk_live_`, a test key with `vk_test_`.", "Test keys (prefix `vk_test_`)"),
        ("prefix-sk", "`sk_`", _keys("vk_", "sk_")),
        ("prefix-live", "`vk_prod_`", _keys("vk_live_", "vk_prod_")),
        ("prefix-test", "upper case", _keys("vk_test_", "VK_TEST_")),
    ),
    *breaks(
        (SCOPE, CODES_403, row("- Missing scope: `403 insufficient_scope`."), *lines(r"^\| `\w+:\w+` ")),
        ("scope-401", "status 401", refused("insufficient_scope", status(401))),
        ("scope-code", "another code", refused("insufficient_scope", code("forbidden"))),
        ("scope-details", "no `required`", refused("insufficient_scope", drop("error.details"))),
        ("scope-text", "a text", refused("insufficient_scope", put("error.details.required", "a, b"))),
    ),
    *(
        one
        for operation in OPERATIONS
        for one in breaks(
            ("Each operation requires all scopes listed for it.", SCOPE, *map(endpoint, operation.scopes)),
            (f"scope-{operation.id}", "not checked", columns(operation.id, scopes=())),
        )
        if operation.scopes
    ),
    *breaks(
        ("An empty list means any valid key (catalog, `/me`).", BEARER),
        ("scope-me", "one is needed", columns("get_me", scopes=("account:read",)), endpoint("GET /me")),
        (
            "scope-tariffs",
            "one is needed",
            columns("list_tariffs", scopes=READ),
            endpoint("GET /catalog/tariffs"),
        ),
        ("scope-quote", "one is needed", columns("get_quote", scopes=READ), endpoint("GET /catalog/quote")),
        ("scope-os", "one is needed", columns("list_os_images", scopes=READ), endpoint("GET /catalog/os")),
    ),
    *breaks(
        (
            "Invalid-key requests are limited to 30 per minute per IP.",
            row("| Invalid-key requests |"),
            CODES_429,
        ),
        ("invalid-10", "10", const(middleware, "INVALID_KEYS_PER_WINDOW", 10)),
        ("invalid-60", "60", const(middleware, "INVALID_KEYS_PER_WINDOW", 60)),
        ("invalid-any", "no limit", const(middleware, "INVALID_KEYS_PER_WINDOW", 10**6)),
    ),
]


ERROR = [
    *breaks(
        (EVERY, ENVELOPE, *CODES),
        ("error-flat", "no envelope", answer("*", whole(lambda b: b["error"]), on=ERRORS)),
        ("error-list", "a list", answer("*", whole(lambda b: {"errors": [b["error"]]}), on=ERRORS)),
        ("error-text", "a text", answer("*", put("error", lambda e: e["code"]), on=ERRORS)),
        ("error-html", "HTML", answer("*", whole(lambda _: b"<h1>error</h1>"), on=ERRORS)),
        ("error-404", "no JSON of other paths", answer("* /*", whole(lambda _: b"404"), on=range(404, 405))),
        ("error-code", "no `code`", answer("*", drop("error.code"), on=ERRORS)),
        ("error-message", "no `message`", answer("*", drop("error.message"), on=ERRORS)),
        ("error-number", "a number", answer("*", put("error.code", 7), on=ERRORS)),
    ),
    *breaks(
        ("- `request_id`: equals the `X-Request-ID` header.", ENVELOPE),
        ("error-id", "missing", answer("*", drop("error.request_id"), on=ERRORS)),
        ("error-other-id", "another one", answer("*", put("error.request_id", "x"), on=ERRORS)),
        ("error-camel", "`requestId`", answer("*", rename("error.request_id", "requestId"), on=ERRORS)),
    ),
    *breaks(
        (row("- `details`: depends on code"), *lines("`400 validation_error`|`validation_error`")),
        ("fields-none", "no `fields`", refused("validation_error", drop("error.details"))),
        ("fields-text", "a text", refused("validation_error", put("error.details", "wrong"))),
        ("fields-422", "status 422", refused("validation_error", status(422))),
    ),
    *breaks(
        (row("- `code`: machine code from the closed lists"), *CODES),
        ("code-upper", "upper case", answer("*", put("error.code", str.upper), on=ERRORS)),
        ("code-words", "words", answer("*", put("error.code", lambda c: c.replace("_", " ")), on=ERRORS)),
        ("code-status", "the status", answer("*", put("error.code", lambda c: f"error_{c}"), on=ERRORS)),
    ),
]


# --- limits -----------------------------------------------------------------------------------------------

ONE = endpoint("GET /servers/{server_id}")
EXPENSIVE = row("Expensive (`x-expensive`) operations:")
WINDOW = row("| Window | fixed, 60 seconds")
HEADERS = row("Response headers: `X-RateLimit-Limit`")
DETAILS = row("- `details`: depends on code")


def _one_bucket(original: Any, store: Any, name: str, *given: Any) -> Any:
    return original(store, name.replace(":expensive", ":normal"), *given)


def _window(seconds: int) -> Any:
    return const(middleware, "WINDOW_SECONDS", seconds)


def _shared(original: Any, store: Any, name: str, *given: Any) -> Any:
    return original(store, name.partition(":")[2] if name[0].isdigit() else name, *given)


LIMITS = [
    *breaks(
        (row("| Normal bucket |"), HEADERS),
        ("normal-60", "60", const(middleware, "NORMAL_PER_WINDOW", 60)),
        ("normal-1000", "1000", const(middleware, "NORMAL_PER_WINDOW", 1000)),
        ("normal-121", "121", const(middleware, "NORMAL_PER_WINDOW", 121)),
    ),
    *breaks(
        (row("| Expensive bucket |"), HEADERS),
        ("expensive-10", "10", const(middleware, "EXPENSIVE_PER_WINDOW", 10)),
        ("expensive-40", "40", const(middleware, "EXPENSIVE_PER_WINDOW", 40)),
        ("expensive-one", "one bucket", around(middleware, "hit", _one_bucket)),
    ),
    *breaks(
        (WINDOW, HEADERS),
        ("window-600", "10 minutes", _window(600)),
        ("window-10", "10 seconds", _window(10)),
        ("window-shared", "keys share it", around(middleware, "hit", _shared)),
    ),
    *breaks(
        EXPENSIVE,
        *(
            (
                f"cheap-{operation.id}",
                f"{operation.route} is cheap",
                columns(operation.id, expensive=False),
                endpoint(operation.route.replace("{webhook_id}", "{id}")),
                HEADERS,
            )
            for operation in OPERATIONS
            if operation.expensive
        ),
        ("cheap-live", "`include=live` is cheap", columns("get_server", expensive_when={}), HEADERS, ONE),
        (
            "costly-servers",
            "lists are expensive",
            columns("list_servers", expensive=True),
            HEADERS,
            endpoint("GET /servers"),
        ),
        ("costly-server", "a server is always", columns("get_server", expensive=True), HEADERS, ONE),
    ),
    *breaks(
        (CODES_429, HEADERS, DETAILS, *lines(r"per minute|per 5 minutes")),
        ("429-retry", "no Retry-After", answer("*", header("Retry-After"), on=range(429, 430))),
        ("429-date", "a word", answer("*", header("Retry-After", lambda _: "soon"), on=range(429, 430))),
        ("429-503", "status 503", refused("rate_limited", status(503))),
        ("429-code", "another code", refused("rate_limited", code("too_many_requests"))),
        ("429-bucket", "no `bucket`", refused("rate_limited", drop("error.details.bucket"))),
        ("429-limit", "a text", refused("rate_limited", put("error.details.limit", str))),
    ),
]


# --- versions ---------------------------------------------------------------------------------------------

DESCRIBED = "It uses operation metadata `x-scopes`, `x-idempotent`, `x-expensive`, `x-expensive-when`"
VERSION = "Current API version string is `1`; the machine-readable description reports `1.0.0`."


def _described(*edits: Any) -> Any:
    return answer("GET /openapi.json", *edits)


VERSIONS = [
    *breaks(
        VERSION,
        (
            "version-1.0",
            "`1.0`",
            answer("GET /health", put("version", "1.0")),
            "`GET /health` returns `version`;",
        ),
        (
            "version-v1",
            "`v1`",
            answer("GET /health", put("version", "v1")),
            "`GET /health` returns `version`;",
        ),
        ("described-1", "`1`", _described(put("info.version", "1"))),
        ("described-2", "`2.0.0`", _described(put("info.version", "2.0.0"))),
    ),
    *breaks(
        (DESCRIBED, endpoint("GET /openapi.json")),
        ("no-x-scopes", "no `x-scopes`", _described(drop("paths.*.*.x-scopes"))),
        ("no-x-idempotent", "no `x-idempotent`", _described(drop("paths.*.*.x-idempotent"))),
        ("no-x-expensive", "no `x-expensive`", _described(drop("paths.*.*.x-expensive"))),
        ("no-x-sandbox", "no `x-sandbox`", _described(drop("paths.*.*.x-sandbox"))),
        ("no-paths", "no paths", _described(drop("paths"))),
    ),
]

MUTANTS = [*AUTHENTICATION, *ERROR, *LIMITS, *VERSIONS]
