"""Endpoints: statuses, effects, money, filters and bounds."""

import re
from datetime import timedelta
from typing import Any

from pulumi_hosting.emulator import pricing
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import CENT
from pulumi_hosting.emulator.messages import Answer
from tests.certify.mutants.change import (
    ERRORS,
    Change,
    Mutant,
    answer,
    around,
    asked,
    breaks,
    code,
    endpoint,
    handler,
    header,
    lines,
    put,
    query,
    refused,
    refuses,
    row,
    status,
    whole,
)

SERVER = "/servers/{server_id}"
SERVED = "The OpenAPI 3.1 description is served without a key at `GET /openapi.json`."
CODES_404 = row("| 404 | `")


def _of(route: str, *mutants: tuple[Any, ...], also: tuple[str, ...] = ()) -> list[Mutant]:
    """Mutants of one endpoint, whose row of the document they break."""
    return breaks((endpoint(route), *also), *mutants)


def _statuses(**routes: tuple[str, int, int]) -> list[Mutant]:
    """Successes with another status."""
    return [
        one
        for name, (route, own, other) in routes.items()
        for one in _of(
            route,
            (
                f"status-{name}",
                f"{route} answers {other}",
                answer(route.replace("{id}", "{webhook_id}"), status(other), on=range(own, own + 1)),
                *lines(re.escape(f"`{route}`") + r"( answers|\))"),
            ),
        )
    ]


STATUSES = _statuses(
    me=("GET /me", 200, 203),
    topup=("POST /balance/topup", 201, 200),
    order=("POST /servers", 201, 200),
    patch=(f"PATCH {SERVER}", 200, 202),
    delete=(f"DELETE {SERVER}", 200, 204),
    power=(f"POST {SERVER}/actions/power", 202, 200),
    reinstall=(f"POST {SERVER}/actions/reinstall", 202, 201),
    renew=(f"POST {SERVER}/renew", 200, 201),
    ptr=(f"PUT {SERVER}/ips/{{ip_id}}/ptr", 200, 204),
    link=("POST /invoices/{invoice_id}/payment-link", 200, 201),
    nameservers=("PUT /domains/{domain_id}/nameservers", 200, 202),
    domain=("POST /domains", 201, 200),
)


def _ignores(route: str, *names: str) -> list[Mutant]:
    """Filters that filter nothing."""
    return _of(
        route,
        *(
            (f"filter-{route[5:].replace('/', '-')}-{name}", f"{name} is ignored", asked(route, query(name)))
            for name in names
        ),
    )


def _not_since(original: Any, call: Call) -> Answer:
    if call.query.since is not None:
        later = call.query.since + timedelta(milliseconds=1)
        call.query = call.query.model_copy(update={"since": later})
    return original(call)  # type: ignore[no-any-return]  # of an untyped original


READS = [
    *_ignores("GET /transactions", "direction", "since", "until"),
    *_ignores("GET /invoices", "status", "type"),
    *_ignores("GET /servers", "status", "ip"),
    *_ignores("GET /catalog/tariffs", "location_id"),
    *_ignores("GET /catalog/os", "tariff_id"),
    *_of(
        "GET /transactions", ("since-later", "`since` is exclusive", handler("list_transactions", _not_since))
    ),
    *_of(
        "GET /invoices/{invoice_id}/pdf",
        ("pdf-type", "another type", answer("GET *pdf", header("Content-Type", lambda _: "text/plain"))),
        ("pdf-inline", "inline", answer("GET *pdf", header("Content-Disposition", lambda _: "inline"))),
        ("pdf-none", "no header", answer("GET *pdf", header("Content-Disposition"))),
        ("pdf-html", "no PDF", answer("GET *pdf", whole(lambda _: b"<html></html>"))),
    ),
    *_of(
        "GET /openapi.json",
        ("openapi-cache", "no Cache-Control", answer("GET /openapi.json", header("Cache-Control"))),
        ("openapi-30", "OpenAPI 3.0", answer("GET /openapi.json", put("openapi", "3.0.3")), SERVED),
        ("openapi-key", "a key is needed", refuses("GET /openapi.json", "invalid_token"), SERVED),
        ("openapi-404", "there is none", refuses("GET /openapi.json", "not_found"), SERVED),
    ),
    *_of(
        "GET /health",
        ("health-503", "503", answer("GET /health", status(503)), "always 200"),
        (
            "health-key",
            "a key is needed",
            refuses("GET /health", "invalid_token"),
            "Every request except `GET",
        ),
        ("health-list", "a list", answer("GET /health", whole(lambda one: [one]))),
    ),
    *breaks(
        (CODES_404, "Objects of another account answer `404 not_found`, never 403.", *lines(r"^\| `.* 404")),
        ("absent-403", "403 for what is not there", refused("not_found", status(403))),
        ("absent-400", "400", refused("not_found", status(400))),
        ("absent-code", "another code", refused("not_found", code("no_such_object"))),
        ("absent-200", "null", refused("not_found", status(200), whole(lambda _: None))),
    ),
]


# --- the catalog ------------------------------------------------------------------------------------------


def _price(new: Any, name: str = "price") -> Change:
    """Quotes, but not orders, have another price."""

    def quote(original: Any, call: Call) -> Answer:
        with around(pricing, name, lambda original, *given, **named: new(original(*given, **named)))():
            return original(call)  # type: ignore[no-any-return]  # of an untyped original

    return handler("get_quote", quote)


def _bounded(name: str, most: int) -> Any:
    """Numbers above ``most`` are refused."""
    return query(name, lambda text: text if not text.isdigit() or int(text) <= most else "-1")


def _one_period(call: Call) -> None:
    if "months=" in call.request.query and "hours=" in call.request.query:
        query("hours")(call)


def _some_tariff(call: Call) -> None:
    if "tariff_id" not in call.request.query:
        call.request.query += "&tariff_id=1"


CATALOG = [
    *_of(
        "GET /catalog/quote",
        (
            "quote-total",
            "a cent more than the order",
            _price(lambda p: p._replace(total=p.total + CENT)),
        ),
        ("quote-base", "without discounts", _price(lambda p: p._replace(total=p.base, discounts=()))),
        (
            "quote-month",
            "one month for all",
            asked("GET */quote", query("months", lambda n: "1" if n > "1" else n)),
        ),
        ("quote-2", "2 months", asked("GET */quote", query("months", lambda n: "3" if n == "2" else n))),
        ("quote-both", "months and hours", asked("GET */quote", _one_period)),
        (
            "quote-unknown",
            "any tariff",
            asked("GET */quote", query("tariff_id", lambda n: n if n < "7" else "1")),
        ),
        ("quote-none", "no tariff", asked("GET /catalog/quote", _some_tariff)),
        also=(endpoint("POST /servers"), row("**ServerCreated**")),
    ),
    *breaks(
        (row("| `promo_code` (quote) |"), endpoint("GET /catalog/quote")),
        ("promo-65", "65 characters", asked("GET */quote", query("promo_code", lambda t: t[:64]))),
        (
            "promo-64",
            "64 are too many",
            asked("GET */quote", query("promo_code", lambda t: t if len(t) < 64 else "x" * 65)),
        ),
        (
            "promo-10",
            "10 are too many",
            asked("GET */quote", query("promo_code", lambda t: t if len(t) < 9 else "x" * 65)),
        ),
    ),
    *breaks(
        (row("| Quote/order `hours` |"), endpoint("GET /catalog/quote")),
        ("hours-0", "0", asked("GET */quote", query("hours", lambda n: "1" if n == "0" else n))),
        ("hours-24", "at most 24", asked("GET */quote", _bounded("hours", 24))),
        ("hours-2161", "2161", asked("GET */quote", query("hours", lambda n: "2160" if n == "2161" else n))),
    ),
    *breaks(
        (row("| `ip` filter |"), endpoint("GET /servers")),
        ("ip-46", "46 characters", asked("GET /servers", query("ip", lambda t: t[:45]))),
        (
            "ip-39",
            "40 are too many",
            asked("GET /servers", query("ip", lambda t: t if len(t) < 40 else t * 9)),
        ),
        (
            "ip-500",
            "a server error",
            answer("GET /servers", status(500), on=ERRORS, when=lambda c: "ip=" in c.request.query),
        ),
    ),
]


MUTANTS = [*STATUSES, *READS, *CATALOG]
