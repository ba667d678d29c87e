"""Writes of servers, addresses, keys and invoices: what they do, charge and refuse."""

import copy
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pulumi_hosting.api.operations import ExtraLimit
from pulumi_hosting.emulator import fulfilment, ledger, price_list, pricing, server_lifecycle
from pulumi_hosting.emulator import rows as r
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import CENT
from pulumi_hosting.emulator.handlers import servers
from pulumi_hosting.emulator.messages import Answer
from tests.certify.mutants.change import (
    Change,
    answer,
    around,
    body,
    breaks,
    code,
    columns,
    const,
    drop,
    endpoint,
    handler,
    method,
    only,
    put,
    refused,
    refuses,
    rename,
    row,
    status,
    whole,
)

SERVER = "/servers/{server_id}"
TOPUP, LINK = "POST /balance/topup", "POST /invoices/{invoice_id}/payment-link"
ORDER, PATCH, DELETE, RENEW = "POST /servers", f"PATCH {SERVER}", f"DELETE {SERVER}", f"POST {SERVER}/renew"
POWER, REINSTALL = f"POST {SERVER}/actions/power", f"POST {SERVER}/actions/reinstall"
PASSWORD = f"POST {SERVER}/actions/reset-password"
BUY, RELEASE = f"POST {SERVER}/ips", f"DELETE {SERVER}/ips/{{ip_id}}"
PTR = f"PUT {SERVER}/ips/{{ip_id}}/ptr"
CODES_400, CODES_402, CODES_409 = (row(f"| {number} | `") for number in (400, 402, 409))
FUNDS = row("- Balance below required price on order")
DETAILS = row("- `details`: depends on code")
PERIODS = (endpoint(RENEW), endpoint("GET /catalog/quote"), row("| Renewal `months` |"))
MONTHS, HOURS = row("| Renewal `months` |"), row("| Quote/order `hours` |")
CREATED, INVOICE = row("**ServerCreated**"), row("**Invoice**: `id`")
CHARGED = "so a retry never charges twice"
LISTED = (endpoint("GET /transactions"), row("**Transaction**: `amount` (absolute"))


def _of(route: str, *mutants: tuple[Any, ...]) -> list[Any]:
    return breaks(endpoint(route), *mutants)


def _nothing(original: Any, *given: Any, **named: Any) -> None:
    """What should happen does not."""


def _afterwards(operation: str, new: Any) -> Change:
    """``new`` happens after a success of the operation; it gets the call and its answer."""

    def handle(original: Any, call: Call) -> Answer:
        response: Answer = original(call)
        new(call, response)
        return response

    return handler(operation, handle)


def _live_only(new: Any) -> Any:
    return lambda call, response: None if call.simulated else new(call, response)


def _unsaved(*operations: str) -> Change:
    """The answer is right, and nothing is kept."""

    def draft(original: Any, self: Call, row: Any) -> Any:
        return copy.copy(row) if self.operation.id in operations else original(self, row)

    return method(Call, "draft", draft)


def _ignored(name: str) -> Change:
    """A field of a change is ignored."""

    def assign(original: Any, self: Call, row: Any) -> None:
        old = getattr(row, name, None)
        original(self, row)
        if hasattr(row, name):
            setattr(row, name, old)

    return method(Call, "assign", assign)


def _set(routes: str, name: str, new: Any) -> Change:
    """A field of the body is rewritten, if it is there."""

    def edit(data: dict[str, Any]) -> None:
        if name in data:
            data[name] = new(data[name])

    return body(routes, edit)


def _known(names: Any, other: object) -> Any:
    return lambda value: value if value in names else other


def _newest_invoice(call: Call) -> Any:
    return next(call.store.newest(r.InvoiceRow, call.account.id))


def _has(*names: str) -> Any:
    return lambda call: any(name in (call.data or {}) for name in names)


def _bodiless(call: Call) -> bool:
    return call.data is None


INVOICES = [
    *_of(
        TOPUP,
        ("topup-extra", "other fields are ignored", body(TOPUP, only("amount", "gateway"))),
        ("topup-any", "any gateway", _set(TOPUP, "gateway", _known(price_list.GATEWAYS, "card"))),
        (
            "topup-paid",
            "it is paid at once",
            _afterwards(
                "create_topup", _live_only(lambda c, _: fulfilment.confirm(c.store, _newest_invoice(c)))
            ),
        ),
        (
            "topup-none",
            "there is no invoice",
            _afterwards("create_topup", _live_only(lambda c, _: c.store.remove(_newest_invoice(c)))),
        ),
        (
            "topup-other",
            "the invoice has another type",
            _afterwards(
                "create_topup", _live_only(lambda c, _: setattr(_newest_invoice(c), "type", "other"))
            ),
        ),
    ),
    *_of(
        LINK,
        ("link-extra", "other fields are ignored", body(LINK, only("gateway"))),
        ("link-body", "a body is needed", refuses(LINK, "validation_error", _bodiless)),
        ("link-any", "any gateway", _set(LINK, "gateway", _known(price_list.GATEWAYS, "card"))),
        ("link-gateway", "`gateway` is refused", refuses(LINK, "validation_error", _has("gateway"))),
    ),
]


# --- orders -----------------------------------------------------------------------------------------------


def _raised(original: Any, *given: Any, **named: Any) -> Any:
    price = original(*given, **named)
    return price._replace(total=price.total + 1)


def _order_price(original: Any, call: Call) -> Answer:
    with around(pricing, "price", _raised)():
        return original(call)  # type: ignore[no-any-return]  # of an untyped original


def _twice(original: Any, store: Any, invoice: Any, cause: Any) -> None:
    original(store, invoice, cause)
    store.accounts[invoice.account_id].balance -= invoice.amount


def _in_stock(original: Any, call: Call) -> Answer:
    for tariff in call.store.tariffs.values():
        tariff.in_stock = True
    return original(call)  # type: ignore[no-any-return]  # of an untyped original


def _hidden_invoice(call: Call, response: Answer) -> None:
    call.store.remove(_newest_invoice(call))


def _server_anyway(original: Any, account: Any, amount: Any) -> None:
    if account.balance < amount:
        account.balance -= Decimal("0.01")
    original(account, amount)


ORDERS = [
    *breaks(
        (endpoint(ORDER), CODES_400),
        ("order-os", "any image", _set(ORDER, "os", _known(price_list.IMAGES, "debian-12"))),
        ("order-os-code", "another code", refused("os_not_allowed", code("validation_error"))),
        ("order-2", "2 months", _set(ORDER, "months", _known((1, 3, 6, 12), 1))),
        (
            "order-period",
            "another code",
            refused("invalid_period", code("validation_error")),
            endpoint(RENEW),
        ),
        ("order-extra", "no `os` is needed", body(ORDER, lambda data: data.setdefault("os", "debian-12"))),
        ("order-name", "the name is ignored", body(ORDER, lambda data: data.pop("name", None))),
    ),
    *breaks(
        (HOURS, endpoint(ORDER)),
        ("order-0", "0 hours", _set(ORDER, "hours", lambda n: n or 1)),
        ("order-721", "721 hours", _set(ORDER, "hours", lambda n: min(n, 720) if isinstance(n, int) else n)),
        ("order-hours", "no hours", refuses(ORDER, "invalid_period", _has("hours"))),
    ),
    *breaks(
        (
            endpoint(ORDER),
            endpoint("GET /catalog/quote"),
            endpoint("GET /balance"),
            CREATED,
            INVOICE,
            CHARGED,
            *LISTED,
        ),
        ("order-more", "more than quoted", handler("create_server", _order_price)),
        ("order-twice", "charged twice", around(ledger, "pay", _twice), endpoint(RENEW), endpoint(BUY)),
        (
            "order-free",
            "not charged",
            around(ledger, "pay", lambda original, store, invoice, cause: ledger.mark_paid(store, invoice)),
            endpoint(RENEW),
            endpoint(BUY),
        ),
        (
            "order-no-invoice",
            "no invoice",
            _afterwards("create_server", _live_only(_hidden_invoice)),
            endpoint("GET /invoices"),
        ),
    ),
    *breaks(
        (endpoint(ORDER), CODES_409),
        ("order-stock", "what is sold out is sold", handler("create_server", _in_stock)),
        ("order-stock-code", "another code", refused("no_capacity", code("conflict"))),
        ("order-stock-400", "status 400", refused("no_capacity", status(400))),
    ),
    *breaks(
        (CODES_402, FUNDS, endpoint(ORDER)),
        ("funds-debt", "a debt", around(ledger, "require", _nothing)),
        ("funds-400", "status 400", refused("insufficient_funds", status(400))),
        ("funds-code", "another code", refused("insufficient_funds", code("payment_required"))),
        ("funds-cent", "a cent is charged", around(ledger, "require", _server_anyway)),
    ),
    *breaks(
        (DETAILS, CODES_402),
        ("funds-details", "no details", refused("insufficient_funds", drop("error.details"))),
        ("funds-shortfall", "no shortfall", refused("insufficient_funds", drop("error.details.shortfall"))),
        ("funds-float", "floats", refused("insufficient_funds", put("error.details.required", float))),
        ("funds-currency", "no currency", refused("insufficient_funds", drop("error.details.currency"))),
    ),
    *breaks(
        endpoint("GET /orders/{invoice_id}"),
        ("orders-404", "not found", refuses("GET /orders/{invoice_id}", "not_found")),
        ("orders-null", "no server", answer("GET /orders/{*}", put("server_id", None))),
        ("orders-done", "another status", answer("GET /orders/{*}", put("status", "done"))),
    ),
]


# --- one server -------------------------------------------------------------------------------------------


def _half(original: Any, store: Any, invoice: Any, amount: Decimal, *given: Any, **named: Any) -> None:
    original(store, invoice, (amount / 2).quantize(CENT), *given, **named)


def _from_now(original: Any, store: Any, server: Any, **named: Any) -> Any:
    return original(store, replace(server, next_due_at=store.now), **named)


def _hours_as_month(data: dict[str, Any]) -> None:
    if data.pop("hours", None):
        data["months"] = 1


GONE = row("| Server | `cancelled` or `terminated` | `DELETE")
DELETED = row("| Server | any not `cancelled`/`terminated`")
SERVERS = [
    *_of(
        PATCH,
        ("patch-name", "`name` is ignored", _ignored("name")),
        ("patch-notes", "`notes` are ignored", _ignored("notes")),
        (
            "patch-renew",
            "`auto_renew` is ignored",
            _ignored("auto_renew"),
            endpoint("PATCH /domains/{domain_id}"),
        ),
        ("patch-unsaved", "nothing is kept", _unsaved("update_server")),
    ),
    *breaks(
        (DELETED, endpoint(DELETE), row("**DeleteResult**"), *LISTED),
        ("delete-kept", "the server is still there", around(server_lifecycle, "end", _nothing)),
        ("delete-keep", "nothing is credited", around(ledger, "credit_back", _nothing)),
        ("delete-half", "half is credited", around(ledger, "credit_back", _half)),
        ("delete-forbidden", "refused", refuses(DELETE, "service_state"), GONE),
    ),
    *breaks(
        (GONE, endpoint(DELETE), CODES_409),
        (
            "gone-200",
            "deleted again",
            refused("service_state", status(200), whole(lambda _: {"status": "cancelled"})),
        ),
        ("gone-code", "another code", refused("service_state", code("conflict"))),
        ("gone-400", "status 400", refused("service_state", status(400))),
        ("gone-details", "no `status`", refused("service_state", drop("error.details")), DETAILS),
    ),
    *_of(
        POWER,
        ("power-any", "any action", _set(POWER, "action", _known(("start", "stop", "restart"), "start"))),
        ("power-code", "another code", refused("invalid_action", code("validation_error")), CODES_400),
        ("power-ok", "another status", answer(POWER, put("status", "ok"))),
        ("power-action", "no action", answer(POWER, drop("action"))),
        ("power-id", "no id", answer(POWER, drop("server_id"))),
        (
            "power-restart",
            "no restart",
            refuses(POWER, "invalid_action", lambda c: c.body.action == "restart"),
        ),
    ),
    *breaks(
        (endpoint(REINSTALL), row("| Server | `active`, `stopped` | `POST .../actions/reinstall`")),
        (
            "reinstall-os",
            "any image",
            _set(REINSTALL, "os", _known(price_list.IMAGES, "debian-12")),
            CODES_400,
        ),
        ("reinstall-word", "another status", answer(REINSTALL, put("status", "accepted"))),
        ("reinstall-password", "no password", answer(REINSTALL, drop("root_password"))),
        ("reinstall-null", "none is made", answer(REINSTALL, put("root_password", None))),
        ("reinstall-no-os", "no image", answer(REINSTALL, drop("os"))),
    ),
    *breaks(
        (endpoint(PASSWORD), row(f"| `{PASSWORD}` | 5 calls")),
        ("reset-name", "`root_password`", answer(PASSWORD, rename("password", "root_password"))),
        ("reset-empty", "empty", answer(PASSWORD, put("password", ""))),
        ("reset-3", "3 calls", columns("reset_server_password", limits=(ExtraLimit(3, 300, "server_id"),))),
        ("reset-6", "6 calls", columns("reset_server_password", limits=(ExtraLimit(6, 300, "server_id"),))),
        ("reset-any", "no limit", columns("reset_server_password", limits=())),
    ),
    *_of(
        RENEW,
        ("renew-charged", "no `charged`", answer(RENEW, drop("charged"))),
        ("renew-balance", "no `balance_after`", answer(RENEW, drop("balance_after"))),
        ("renew-due", "no `next_due_at`", answer(RENEW, drop("next_due_at"))),
        ("renew-now", "counted from now", around(server_lifecycle, "next_period", _from_now)),
        ("renew-same", "nothing is added", around(server_lifecycle, "extend", _nothing)),
        ("renew-2", "2 months", _set(RENEW, "months", _known((1, 3, 6, 12), 1)), MONTHS),
        ("renew-12", "not 12", refuses(RENEW, "invalid_period", lambda c: c.body.months == 12), MONTHS),
        ("renew-3", "not 3", refuses(RENEW, "invalid_period", lambda c: c.body.months == 3), MONTHS),
        ("renew-hours", "hours of a monthly server", body(RENEW, _hours_as_month)),
        ("renew-more", "a cent more", answer(RENEW, put("charged", lambda m: f"{float(m) + 0.01:.2f}"))),
    ),
]


# --- addresses and SSH keys -------------------------------------------------------------------------------


def _no_address(call: Call, response: Answer) -> None:
    call.store.drop_tasks(call.ids["server_id"], "assign_address")


def _bought(original: Any, call: Call) -> Answer:
    call.store.addresses[call.ids["ip_id"]].bought = True
    return original(call)  # type: ignore[no-any-return]  # of an untyped original


def _not_released(original: Any, call: Call) -> Answer:
    kept = call.store.addresses.get(call.ids["ip_id"])
    response: Answer = original(call)
    if kept is not None and not call.simulated:
        call.store.add(kept)
    return response


def _credited(call: Call, response: Answer) -> None:
    call.account.balance += Decimal("1.00")


def _ptr_field(data: dict[str, Any]) -> None:
    if "ptr" in data:
        data["domain"] = data.pop("ptr")


def _ip_price(original: Any, call: Call) -> Answer:
    with around(servers, "_price_now", lambda original, *given: (original(*given)[0] + 1, 30))():
        return original(call)  # type: ignore[no-any-return]  # of an untyped original


def _same_ptr(call: Call, response: Answer) -> None:
    call.store.addresses[call.ids["ip_id"]].ptr = None


ADDRESSES = [
    *_of(
        BUY,
        ("ip-success", "no `success`", answer(BUY, drop("success"))),
        ("ip-charged", "no `charged`", answer(BUY, drop("charged"))),
        ("ip-days", "no `days`", answer(BUY, drop("days"))),
        (
            "ip-more",
            "more than quoted",
            handler("add_server_ip", _ip_price),
            endpoint(f"GET {SERVER}/ips/quote"),
        ),
        (
            "ip-never",
            "it never comes",
            _afterwards("add_server_ip", _live_only(_no_address)),
            endpoint(f"GET {SERVER}/ips"),
        ),
        ("ip-recurring", "not in the renewal", const(pricing, "bought_addresses", lambda *given: [])),
        (
            "ip-limit",
            "no limit",
            handler("add_server_ip", lambda original, call: _unlimited(original, call)),
            CODES_409,
        ),
    ),
    *_of(
        RELEASE,
        ("release-primary", "the primary too", handler("delete_server_ip", _bought)),
        ("release-code", "another code", refused("conflict", code("invalid_request")), CODES_409),
        ("release-400", "status 400", refused("conflict", status(400)), CODES_409),
        ("release-kept", "it is still there", handler("delete_server_ip", _not_released)),
        ("release-refund", "something is refunded", _afterwards("delete_server_ip", _live_only(_credited))),
    ),
    *_of(
        PTR,
        ("ptr-field", "`ptr` too", body(PTR, _ptr_field)),
        (
            "ptr-label",
            "one label",
            _set(PTR, "domain", lambda d: f"{d}.example" if d and "." not in d else d),
        ),
        ("ptr-null", "null is refused", refuses(PTR, "validation_error", lambda c: c.body.domain is None)),
        (
            "ptr-empty",
            "empty text is refused",
            refuses(PTR, "validation_error", lambda c: c.body.domain == ""),
        ),
        ("ptr-domain", "another field", answer(PTR, rename("ptr", "domain"))),
        ("ptr-lost", "nothing is kept", _afterwards("set_server_ip_ptr", _live_only(_same_ptr))),
        ("ptr-stays", "it is not removed", answer(PTR, put("ptr", lambda name: name or "a.example"))),
    ),
    *breaks(
        (endpoint("POST /ssh-keys"), endpoint("GET /ssh-keys"), row("**SSH key**")),
        ("ssh-lost", "not listed", answer("GET /ssh-keys", put("data", lambda rows: rows[:-1]))),
        ("ssh-202", "nothing is answered", answer("POST /ssh-keys", status(204), whole(lambda _: None))),
        ("ssh-same", "the id of all", answer("*/ssh-keys", put("**.id", 1))),
        ("ssh-refused", "refused", refuses("POST /ssh-keys", "validation_error")),
    ),
]


def _unlimited(original: Any, call: Call) -> Answer:
    call.store.tariffs[call.server().tariff_id].max_extra_ips = 99
    return original(call)  # type: ignore[no-any-return]  # of an untyped original


MUTANTS = [*INVOICES, *ORDERS, *SERVERS, *ADDRESSES]
