"""Idempotency and the sandbox."""

from typing import Any

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.emulator import idempotency_store, middleware, price_list, server_lifecycle
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import Answer, Refusal
from tests.certify.mutants.change import (
    Change,
    Test,
    answer,
    around,
    body,
    breaks,
    code,
    columns,
    const,
    drop,
    endpoint,
    lines,
    method,
    of_test_key,
    put,
    refused,
    refuses,
    row,
    status,
    step,
)

KEYED = {operation.id: operation.route for operation in OPERATIONS if operation.is_keyed}
REPLAYED = row("| same key, same endpoint and body, within 7 days |")
CONFLICT = row("| same key, different body or different endpoint |")
MISSING = row("| header missing on such an operation |")
CODES_409, CODES_403, CODES_400 = (row(f"| {number} | `") for number in (409, 403, 400))
KEY_LIMIT = row("| `Idempotency-Key` | 16..128")
REQUIRED = "require header `Idempotency-Key`, 16..128 characters (a UUID is fine):"
OUTCOME = "The outcome of every such request is stored, including 5xx outcomes after a refund, so a retry"


def _recalled(new: Any) -> Change:
    """What is known under the key of a request: ``new`` gets the original, the request and what is known."""

    def recall(original: Any, store: Any, asked: Any) -> Any:
        known = store.by_idempotency_key.get(f"{asked.scope}:{asked.key}")
        return new(lambda: original(store, asked), asked, known) if known else None

    return around(idempotency_store, "recall", recall)


def _forgets(*operations: str, mode: str = "") -> Change:
    """The same request is carried out again."""

    def recall(original: Any, asked: Any, known: Any) -> Any:
        is_one = asked.operation in (operations or KEYED) and asked.scope.endswith(mode)
        return None if is_one and known.asks == asked.asks else original()

    return _recalled(recall)


def _refuses_repeats(original: Any, asked: Any, known: Any) -> Any:
    raise Refusal("idempotency_conflict")


def _with_secrets(original: Any, store: Any, asked: Any, response: Answer, once: Any, request: str) -> Any:
    return original(store, asked, response, (), request)


def _ok(original: Any, *given: Any) -> Answer:
    response: Answer = original(*given)
    response.status = 200 if response.status == 201 else response.status
    return response


def _keyless(*operations: str, when: Test = lambda call: True) -> Change:
    """These operations need no key; one that is sent works as ever."""

    def require(original: Any, call: Call) -> None:
        is_one = call.operation.id in (operations or KEYED) and when(call)
        if call.request.headers.get("idempotency-key") or not is_one:
            original(call)

    return step("require_idempotency_key", require)


def _length(low: int, high: int) -> Change:
    return const(idempotency_store, "KEY_PATTERN", f"^[!-~]{{{low},{high}}}$")


def _has_uuid(call: Call) -> bool:
    return (call.idempotency_key or "").count("-") == 4


IDEMPOTENCY = [
    *breaks(
        (REQUIRED, MISSING, CODES_400),
        *(
            (f"keyless-{id}", f"{route} needs no key", _keyless(id), endpoint(route))
            for id, route in KEYED.items()
        ),
        ("keyless-code", "another code", refused("idempotency_key_required", code("invalid_request"))),
        ("keyless-422", "status 422", refused("idempotency_key_required", status(422))),
    ),
    *breaks(
        (REQUIRED, KEY_LIMIT),
        ("key-15", "15 characters are enough", _length(15, 128)),
        ("key-17", "16 are too few", _length(17, 128)),
        ("key-129", "129 are accepted", _length(16, 129)),
        ("key-127", "128 are too many", _length(16, 127)),
        ("key-uuid", "a UUID is refused", refuses("*", "validation_error", _has_uuid)),
    ),
    *breaks(
        (REPLAYED, OUTCOME),
        ("replay-none", "it is carried out again", _forgets(), *map(endpoint, KEYED.values())),
        ("replay-topup", "a second top-up invoice", _forgets("create_topup")),
        ("replay-server", "a second server", _forgets("create_server")),
        ("replay-renew", "a second renewal", _forgets("renew_server"), endpoint(KEYED["renew_server"])),
        ("replay-ip", "a second address", _forgets("add_server_ip"), endpoint(KEYED["add_server_ip"])),
        ("replay-409", "refused", _recalled(_refuses_repeats), CONFLICT),
        ("replay-200", "201 becomes 200", around(idempotency_store, "replay", _ok)),
        ("replay-password", "the password again", around(idempotency_store, "remember", _with_secrets)),
    ),
    *breaks(
        (CONFLICT, CODES_409),
        ("other-any", "the first answer", _recalled(lambda original, asked, known: known)),
        (
            "other-body",
            "the first answer to another body",
            _recalled(lambda original, asked, known: known if known.path == asked.path else original()),
        ),
        (
            "other-run",
            "another body is carried out",
            _recalled(lambda original, asked, known: original() if known.asks == asked.asks else None),
        ),
        (
            "other-path",
            "it is carried out elsewhere",
            _recalled(lambda original, asked, known: original() if known.path == asked.path else None),
        ),
        ("other-code", "another code", refused("idempotency_conflict", code("conflict"))),
        ("other-422", "status 422", refused("idempotency_conflict", status(422))),
    ),
]


# --- the sandbox ------------------------------------------------------------------------------------------

SIMULATED = (
    "Every mutation is simulated: no money moves, no VM or domain is created, no payment gateway is called."
)
VISIBLE = "It lives 24 hours and is visible in `GET /servers` to that key only."
BOTH = "Sandbox: test keys read real data and simulate every write."
FAKE = "Ordering a server with a test key returns a fake server with `id >= 9000000000`."
NO_INVOICE = "No invoice is created in that case: `invoice_id` and `order_url` are `null`"
MODE_FAKE, FORBIDDEN = row("| `fake` | simulated write"), row("| `forbidden` | `403 sandbox_not")
FIRST_FAKE = 9_000_000_000


def _writes(*operations: str) -> Change:
    """A test key does what a live key does."""

    def simulated(self: Call) -> bool:
        is_fake = self.key.is_test and self.operation.sandbox == "fake"
        return is_fake and self.operation.id not in operations

    return const(Call, "simulated", property(simulated))


def _charges(original: Any, self: Call, type: str, amount: Any, *given: Any, **named: Any) -> Any:
    invoice = original(self, type, amount, *given, **named)
    if self.simulated:
        self.account.balance -= amount
    return invoice


def _without(fake: bool) -> Any:
    """The list of servers for a test key lacks those of the sandbox, or the others."""
    return answer(
        "GET /servers",
        put("data", lambda rows: [one for one in rows if (one["id"] >= FIRST_FAKE) != fake]),
        when=of_test_key,
    )


def _uncounted(original: Any, store: Any, name: str, limit: int, seconds: int) -> Any:
    number = name.partition(":")[0]
    if number.isdigit() and store.keys[int(number)].is_test:
        return limit - 1, int(store.now) + seconds, False
    return original(store, name, limit, seconds)


def _any_image(data: dict[str, Any]) -> None:
    if data.get("os") not in price_list.IMAGES:
        data["os"] = "debian-12"


def _any_months(data: dict[str, Any]) -> None:
    if data.get("months") not in (None, 1, 3, 6, 12):
        data["months"] = 1


def _seen_by_all(original: Any, self: Call, server: Any) -> bool:
    return bool(server.account_id == self.account.id)


SERVER = "/servers/{server_id}"
SANDBOX = [
    *breaks(
        (SIMULATED, BOTH, MODE_FAKE),
        ("live-order", "an order is real", _writes("create_server"), FAKE, NO_INVOICE, VISIBLE),
        ("live-topup", "a top-up is real", _writes("create_topup")),
        ("live-ssh", "an SSH key is kept", _writes("create_ssh_key")),
        ("live-patch", "a server is changed", _writes("update_server")),
        ("live-power", "a server is stopped", _writes("power_server")),
        ("live-renew", "a renewal is real", _writes("renew_server")),
        ("live-delete", "a server is deleted", _writes("delete_server")),
        ("live-money", "simulated purchases are charged", method(Call, "purchase", _charges)),
    ),
    *breaks(
        ("Reads return the real account data.", BOTH, row("| `real` | same as live")),
        ("test-balance", "no balance", answer("GET /balance", put("balance", "0.00"), when=of_test_key)),
        ("test-invoices", "no invoices", answer("GET /invoices", put("data", []), when=of_test_key)),
        ("test-servers", "no real servers", _without(fake=False)),
        ("test-account", "a made-up account", answer("GET /account", put("login", "x"), when=of_test_key)),
        ("test-moves", "no transactions", answer("GET /transactions", put("data", []), when=of_test_key)),
    ),
    *breaks(
        "Idempotency, rate limits and validation work as in live mode, so `402`, `409`, `429` may occur.",
        ("test-forgets", "nothing is replayed", _forgets(mode="test"), REPLAYED, OUTCOME),
        ("test-keyless", "no key is needed", _keyless(when=of_test_key), REQUIRED, MISSING),
        (
            "test-unlimited",
            "nothing is counted",
            around(middleware, "hit", _uncounted),
            *lines("per minute per key"),
        ),
        ("test-image", "any image", body("POST /servers", _any_image, when=of_test_key)),
        ("test-months", "any number of months", body("POST /servers", _any_months, when=of_test_key)),
    ),
    *breaks(
        (FORBIDDEN, "Webhook endpoints are forbidden for test keys.", CODES_403),
        ("test-hooks", "the list is shown", columns("list_webhooks", sandbox_mode="real")),
        ("test-hook", "one is created", columns("create_webhook", sandbox_mode="real")),
        ("test-events", "the events are shown", columns("list_webhook_events", sandbox_mode="real")),
        ("test-hook-code", "another code", refused("sandbox_not_supported", code("insufficient_scope"))),
        ("test-hook-404", "status 404", refused("sandbox_not_supported", status(404), code("not_found"))),
    ),
    *breaks(
        (FAKE, row("| Sandbox server lifetime |")),
        ("fake-3", "ids from 3000000000", const(server_lifecycle, "SANDBOX_SERVER_IDS", 3_000_000_000)),
        ("fake-9", "ids below the first", const(server_lifecycle, "SANDBOX_SERVER_IDS", FIRST_FAKE - 1000)),
        ("fake-text", "a text", answer("POST /servers", put("server.id", str), when=of_test_key)),
    ),
    *breaks(
        ("It lives 24 hours and is visible in `GET /servers` to that key only.", endpoint("GET /servers")),
        ("fake-hidden", "not listed", _without(fake=True)),
        ("fake-shown", "listed to all keys", method(Call, "can_see", _seen_by_all)),
        ("fake-brief", "gone at once", const(server_lifecycle, "SANDBOX_SERVER_SECONDS", 0)),
        ("fake-unread", "404", refuses(f"GET {SERVER}", "not_found", of_test_key), endpoint(f"GET {SERVER}")),
    ),
    *breaks(
        "Status, power, reinstall, IPs and delete can be called on it and are simulated.",
        *(
            (f"fake-no-{name}", "404", refuses(route, "not_found", of_test_key), endpoint(route))
            for name, route in {
                "status": f"GET {SERVER}/status",
                "power": f"POST {SERVER}/actions/power",
                "reinstall": f"POST {SERVER}/actions/reinstall",
                "ips": f"GET {SERVER}/ips",
                "delete": f"DELETE {SERVER}",
            }.items()
        ),
    ),
    *breaks(
        NO_INVOICE,
        ("fake-invoice", "a number", answer("POST /servers", put("invoice_id", 40001), when=of_test_key)),
        ("fake-order", "a path", answer("POST /servers", put("order_url", "/x/1"), when=of_test_key)),
        ("fake-fields", "missing", answer("POST /servers", drop("invoice_id"), when=of_test_key)),
    ),
]

MUTANTS = [*IDEMPOTENCY, *SANDBOX]
