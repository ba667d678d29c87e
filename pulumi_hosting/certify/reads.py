"""What can be read: description, account, money, invoices, catalog, objects; keys and scopes."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from pulumi_hosting.certify import shapes as s
from pulumi_hosting.certify.answers import HttpAnswer
from pulumi_hosting.certify.operations import KEYED, SCOPED, WEBHOOKS, is_expensive
from pulumi_hosting.certify.session import LIMITS, LIVE, NARROW, READER, TEST, Exchanges, Skip

ABSENT = 999_999_999_999
"""The id of an object that no account has."""
_TOO_LONG = "a" * 100


def meta(run: Exchanges) -> None:
    health = run.read("meta.health", "/health", None, shape=s.HEALTH)
    run.same("meta.version", "version of /health", health.body.get("version"), "1", health)
    in_path = run.settings.base_url.rstrip("/").endswith("/v1")
    run.expect("meta.version", in_path, "the base URL does not end in /v1")
    _description(run)
    run.read("meta.me", "/me", shape=s.ME)
    for who, key in run.keys.items():
        if who in (TEST, LIVE):
            run.expect("auth.prefix", key.startswith(f"vk_{who}_"), f"the {who} key starts otherwise")
    _request_ids(run)
    _callers(run)


def _description(run: Exchanges) -> None:
    answer = run.get("/openapi.json", None)
    document = answer.body
    run.status("meta.openapi", answer, 200)
    version = str(document.get("openapi"))
    run.expect("meta.openapi", version.startswith("3.1"), f"openapi is {version}, not 3.1", answer)
    run.expect("meta.openapi", answer.headers.get("cache-control"), "there is no Cache-Control", answer)
    run.same("meta.openapi", "info.version", document.get("info", {}).get("version"), "1.0.0", answer)
    paths = document.get("paths")
    described = {
        f"{method.upper()} {re.sub(r'{[^/]*', '1', path)}": operation
        for path, operations in (paths if isinstance(paths, dict) else {}).items()
        for method, operation in operations.items()
        if isinstance(operation, dict)
    }
    for call, scope in SCOPED.items():
        operation: Mapping[str, Any] = described.get(call, {})
        if not run.expect("meta.metadata", operation, f"{call} is not described"):
            continue
        has = operation.get("x-scopes")
        run.expect("meta.metadata", has == [scope], f"x-scopes of {call} is {has}, not {[scope]}")
        keyed = bool(operation.get("x-idempotent"))
        run.expect("meta.metadata", keyed == (call in KEYED), f"x-idempotent of {call} is {keyed}")
        if (expensive := is_expensive(call)) is not None:
            flag = bool(operation.get("x-expensive"))
            run.expect("meta.metadata", flag == expensive, f"x-expensive of {call} is {flag}")
        mode, wanted = operation.get("x-sandbox"), _mode(call)
        run.expect("meta.metadata", mode == wanted, f"x-sandbox of {call} is {mode}, not {wanted}")


def _mode(call: str) -> str:
    return "forbidden" if "/webhooks" in call else "real" if call.startswith("GET ") else "fake"


def _request_ids(run: Exchanges) -> None:
    check = "http.own-request-id"
    for sent, expected in (
        ("certify_1.a:B-2", "certify_1.a:B-2"),
        ("certify/1 (2)", "certify12"),
        (_TOO_LONG, _TOO_LONG[:64]),
    ):
        answer = run.get("/me", headers={"X-Request-ID": sent})
        run.expect(check, answer.ok, f"answered {answer.short}", answer)
        run.same(check, f"X-Request-ID for {sent!r}", answer.headers.get("x-request-id"), expected, answer)
    answer = run.get("/me", headers={"X-Request-ID": "/// ()"})
    own = answer.headers.get("x-request-id", "")
    run.expect(check, own and "/" not in own, "no X-Request-ID is generated if nothing remains", answer)
    others = {run.get("/me").headers.get("x-request-id") for _ in range(2)}
    run.expect(check, len(others - {own}) == 2, "two answers have the same generated X-Request-ID", answer)


def _callers(run: Exchanges) -> None:
    for path in ("/me", "/account", "/servers"):
        run.status("auth.required", run.get(path, None), 401, code="invalid_token")
    key = run.keys[run.reader]
    for sent in (
        "Bearer vk_live_certify_no_such_key",
        "Bearer vk_test_certify_no_such_key",
        f"Bearer {key[:-3]}{'aaa' if key[-3:] != 'aaa' else 'bbb'}",
        f"Basic {key}",
    ):
        headers = {"Authorization": sent}
        run.refused("auth.required", 401, "GET /me", None, code="invalid_token", headers=headers)
    for path in ("/invoices", "/servers", "/domains", "/orders", "/catalog/tariffs"):
        run.refused("errors.not-found", 404, f"GET {path}/{ABSENT}", code="not_found")
    run.status("errors.not-found", run.get("/certify/no-such-path"), 404)
    run.status("errors.method", run.call("PUT", "/balance", json_body={}), 405)


def account(run: Exchanges) -> None:
    answer = run.read("account.account", "/account", shape=s.ACCOUNT)
    balance = run.read("account.balance", "/balance")
    if run.shape("account.balance", balance.data, s.BALANCE, balance):
        found, due = (Decimal(balance.body[name]) for name in ("balance", "upcoming_7d"))
        low = balance.body["low_balance"]
        run.same("account.low-balance", f"low_balance with {found} and {due} due", low, found < due, balance)
        known = answer.body.get("currency")
        run.same("money.currency", "currency of the balance", balance.body["currency"], known, balance)
    info = run.read("account.topup-info", "/balance/topup-info")
    if run.shape("account.topup-info", info.data, s.TOPUP_INFO, info):
        least, most = Decimal(info.body["min"]), Decimal(info.body["max"])
        run.expect("account.topup-info", least <= most, f"min is {least}, and max {most}", info)
    run.part("invoices.", _invoices, run)


def transactions(run: Exchanges) -> None:
    """Once there are some: what a run with a live key paid is among them."""
    answer = run.read("account.transactions", "/transactions?limit=100", shape=s.PAGE)
    for entry in answer.items:
        run.shape("account.transactions", entry, s.TRANSACTION, answer)
        if entry.get("type") != "adjustment":
            signed = str(entry.get("amount")).startswith("-")
            run.expect("account.transactions", not signed, "the amount of a transaction is signed", answer)
    for direction in ("credit", "debit"):
        found = run.get(f"/transactions?limit=100&direction={direction}")
        wanted = [entry for entry in answer.items if entry.get("direction") == direction]
        same = found.items[: len(wanted)] == wanted
        run.expect("account.transaction-filters", same, "direction does not filter", found)
    times = [str(entry.get("created_at")) for entry in answer.items]
    if times and all(map(s.is_time, times)):
        _times(run, sorted(times, key=moment)[len(times) // 2], answer)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _times(run: Exchanges, text: str, every: HttpAnswer) -> None:
    """``since`` is inclusive; both take ``Z`` or an offset."""
    start = moment(text)
    last = start.replace(microsecond=0)
    elsewhere = timezone(timedelta(hours=3))
    wanted = {entry.get("id") for entry in every.items if start <= moment(entry["created_at"])}
    forms = (text, start.astimezone(elsewhere).isoformat())
    for form in forms:
        found = run.get(f"/transactions?limit=100&since={quote(form)}")
        has_all = wanted <= {*found.ids}
        run.expect("account.transaction-filters", has_all, f"since={form} leaves some out", found)
        early = [entry for entry in found.items if moment(entry["created_at"]) < start]
        run.expect("account.transaction-filters", not early, f"since={form} has earlier ones", found)
    form = last.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = run.get(f"/transactions?limit=100&until={form}")
    late = [entry for entry in found.items if moment(entry["created_at"]) > last]
    run.expect("account.transaction-filters", found.ok and not late, "until has later ones", found)


def _invoices(run: Exchanges) -> None:
    answer = run.read("invoices.list", "/invoices?limit=100", shape=s.PAGE)
    for entry in answer.items:
        invoice(run, entry, answer)
    for name, value in {(name, entry.get(name)) for entry in answer.items for name in ("status", "type")}:
        found = run.get(f"/invoices?limit=100&{name}={value}")
        others = [entry for entry in found.items if entry.get(name) != value]
        run.expect("invoices.filters", found.items and not others, f"{name} does not filter", found)
    for name in ("status", "type"):
        run.status("invoices.filters", run.get(f"/invoices?{name}=certify"), 400)
    if answer.items:
        read_invoice(run, answer.items[0].get("id"), READER)


def invoice(run: Exchanges, value: object, answer: HttpAnswer) -> None:
    run.shape("invoices.shape", value, s.INVOICE, answer)
    if isinstance(value, dict) and value.get("status") in ("paid", "not_paid"):
        paid = value.get("paid_at")
        holds = (paid is not None) == (value["status"] == "paid") and paid != ""
        run.expect("invoices.shape", holds, f"paid_at is {paid!r} of an invoice {value['status']}", answer)


def read_invoice(run: Exchanges, id: object, who: str) -> HttpAnswer:
    """One invoice and its PDF."""
    answer = run.read("invoices.read", f"/invoices/{id}", who)
    invoice(run, answer.data, answer)
    run.has("invoices.read", answer, id=id)
    run.expect("invoices.read", answer.body.get("pdf_url"), "there is no pdf_url", answer)
    pdf = run.get(f"/invoices/{id}/pdf", who)
    kind, shown = pdf.headers.get("content-type", ""), pdf.headers.get("content-disposition", "")
    is_pdf = pdf.status == 200 and kind.startswith("application/pdf") and pdf.content.startswith(b"%PDF")
    run.expect("invoices.pdf", is_pdf, f"no PDF but {kind}", pdf)
    run.expect("invoices.pdf", shown.startswith("attachment"), f"Content-Disposition is {shown!r}", pdf)
    return answer


# --- catalog ------------------------------------------------------------------------------------------------


def catalog(run: Exchanges) -> None:
    tariffs = whole(run, "/catalog/tariffs")
    run.each("catalog.tariffs", tariffs, s.TARIFF)
    if not tariffs.items:
        raise Skip("the catalog has no tariffs")
    run.sold_out = [entry for entry in tariffs.items if entry.get("in_stock") is False]
    first = tariffs.items[0]
    run.read("catalog.tariffs", f"/catalog/tariffs/{first['id']}", shape=s.TARIFF)
    location_id = first["location"].get("id")
    if isinstance(location_id, int):
        found = run.get(f"/catalog/tariffs?location_id={location_id}")
        wanted = {entry["id"] for entry in tariffs.items if entry["location"].get("id") == location_id}
        run.same("catalog.tariff-filter", "tariffs of a location", {*found.ids}, wanted, found)
    run.status("catalog.tariff-filter", run.get("/catalog/tariffs?location_id=0"), 400)
    locations = whole(run, "/catalog/locations")
    codes = {entry.get("code") for entry in locations.items}
    known = {entry["location"]["code"] for entry in tariffs.items}
    run.expect("catalog.locations", known <= codes, f"the codes are {codes}, not {known}", locations)
    run.part("catalog.os", _images, run, tariffs)
    run.part("catalog.zones", _zones, run)
    run.part("catalog.quote", _quotes, run, tariffs.items)


def _zones(run: Exchanges) -> None:
    zones = whole(run, "/catalog/zones")
    for entry in zones.items:
        run.shape("catalog.zones", entry, s.ZONE, zones)
        years = entry.get("min_years", 1), entry.get("max_years", 1)
        run.expect("catalog.zones", 1 <= years[0] <= years[1], f"years are {years}", zones)


def whole(run: Exchanges, path: str, who: str = READER) -> HttpAnswer:
    """A short list, which comes whole."""
    answer = run.read("pages.whole", path, who)
    is_list = isinstance(answer.body.get("data"), list)
    run.expect("pages.whole", is_list and not answer.body.get("next_cursor"), "it is not whole", answer)
    return answer


def _images(run: Exchanges, tariffs: HttpAnswer) -> None:
    images = whole(run, "/catalog/os")
    slugs = {entry.get("slug") for entry in images.items}
    run.expect("catalog.os", slugs and all(slugs), "an image has no slug", images)
    for entry in tariffs.items:
        if entry.get("excluded_os") or entry is tariffs.items[0]:
            found = run.get(f"/catalog/os?tariff_id={entry['id']}")
            wanted = slugs - set(entry.get("excluded_os") or ())
            left = {image.get("slug") for image in found.items}
            run.same("catalog.os-filter", f"images of tariff {entry['id']}", left, wanted, found)
    run.status("catalog.os-filter", run.get("/catalog/os?tariff_id=0"), 400)


def _quotes(run: Exchanges, tariffs: list[dict[str, Any]]) -> None:
    balance = Decimal(run.get("/balance").body.get("balance", "0"))
    tariff = tariffs[0]
    for months in (1, 12):
        answer = run.read("catalog.quote", f"/catalog/quote?tariff_id={tariff['id']}&months={months}")
        if run.shape("catalog.quote", answer.data, s.QUOTE, answer):
            total, short = Decimal(answer.body["total"]), Decimal(answer.body["shortfall"])
            enough = answer.body["balance_sufficient"]
            run.same("catalog.quote-balance", "balance_sufficient", enough, balance >= total, answer)
            run.same("catalog.quote-balance", "shortfall", short, max(Decimal(0), total - balance), answer)
            most = Decimal(tariff["price_monthly"]) * months
            fits = 0 < total <= most
            run.expect("catalog.quote", fits, f"{months} months cost {total}, a month {most}", answer)
    for entry in [entry for entry in tariffs if entry.get("hourly_available")][:1]:
        by_hours = f"/catalog/quote?tariff_id={entry['id']}&hours="
        run.status("catalog.quote", run.get(f"{by_hours}720"), 200)
        for hours in (0, 2161):
            run.status("catalog.quote-bounds", run.get(f"{by_hours}{hours}"), 400)
    base = f"/catalog/quote?tariff_id={tariff['id']}"
    brief, long = (run.get(f"{base}&months=1&promo_code={'A' * size}") for size in (5, 64))
    run.same("catalog.quote-bounds", "the answer to 64 characters", long.short, brief.short, long)
    for bad in (
        f"{base}&months=2",
        f"{base}&months=1&hours=1",
        f"{base}&months=1&promo_code={'A' * 65}",
        "/catalog/quote?months=1",
        "/catalog/quote?tariff_id=0&months=1",
    ):
        run.status("catalog.quote-bounds", run.get(bad), 400)
    absent = f"GET /catalog/quote?tariff_id={ABSENT}&months=1"
    run.refused("catalog.quote-unknown", 404, absent, code="not_found")


# --- objects ------------------------------------------------------------------------------------------------


def objects(run: Exchanges) -> None:
    servers = run.read("servers.list", "/servers?limit=100", shape=s.PAGE)
    run.each("servers.shape", servers, s.SERVER)
    run.status("servers.filters", run.get("/servers?status=certify"), 400)
    for length, status in ((46, 400), (45, 200)):
        address = "0000:0000:0000:0000:0000:ffff:192.168.100.2281"[:length]
        run.status("servers.filters", run.get(f"/servers?ip={address}"), status)
    orders = run.read("orders.list", "/orders", shape=s.PAGE)
    run.each("orders.list", orders, s.ORDER)
    keys = whole(run, "/ssh-keys")
    run.each("ssh-keys.shape", keys, s.SSH_KEY)
    domains = run.read("domains.list", "/domains?limit=100", shape=s.PAGE)
    for entry in domains.items:
        run.shape("domains.shape", entry, s.DOMAIN, domains)
        run.status("domains.read", run.get(f"/domains/{entry['id']}"), 200)
    run.status("domains.list", run.get("/domains?status=certify"), 400)
    run.part("domains.availability", _availability, run)
    if TEST in run.keys:
        for call in WEBHOOKS:
            body: object = None if call.startswith("GET") else {}
            run.refused("sandbox.webhooks", 403, call, code="sandbox_not_supported", json_body=body)


def _availability(run: Exchanges) -> None:
    zones = run.get("/catalog/zones").items
    if not zones:
        raise Skip("the catalog has no zones")
    zone = zones[0]
    name = f"certify-{run.id}.{zone['tld'].strip('.')}"
    answer = run.read("domains.availability", f"/domains/availability?name={name}")
    if run.shape("domains.availability", answer.data, s.AVAILABILITY, answer):
        run.expect("domains.availability", answer.body["available"], "a free name is not available", answer)
        price = zone.get("price_register")
        run.same("domains.availability", "price_register", answer.body["price_register"], price, answer)
    for wrong, reason in (
        (f"certify-{run.id}.nosuchzone", "unsupported_tld"),
        (f"-.{zone['tld'].strip('.')}", "invalid"),
    ):
        answer = run.get(f"/domains/availability?name={wrong}")
        if answer.status != 400:
            run.shape("domains.availability", answer.data, s.AVAILABILITY, answer)
            run.same("domains.availability", f"reason of {wrong}", answer.body.get("reason"), reason, answer)
    run.status("domains.availability", run.get("/domains/availability"), 400)
    forms = [f"bücher-{run.id}.{zone['tld'].strip('.')}"]
    forms.append(forms[0].encode("idna").decode())
    both = [run.get(f"/domains/availability?name={quote(form)}") for form in forms]
    same = both[0].status == both[1].status and both[0].body.get("available") == both[1].body.get("available")
    run.expect("domains.availability-idn", same, "Unicode and punycode are answered differently", both[0])


def api_keys(run: Exchanges) -> None:
    keys = whole(run, "/keys")
    run.status("keys.list", keys, 200)
    run.each("keys.list", keys, s.KEY)
    for who in run.keys:
        me = run.get("/me", who)
        own = me.body.get("key", {}).get("id")
        listed = [entry for entry in keys.items if entry.get("id") == own]
        run.expect("keys.list", listed, f"the {who} key is not in the list", keys)
        for entry in listed:
            if isinstance(wanted := entry.get("scopes"), list):
                run.same("meta.me", "scopes", sorted(me.body.get("scopes") or []), sorted(wanted), me)
            is_live, mode = run.keys[who].startswith("vk_live_"), entry.get("mode")
            if mode in ("live", "test"):
                run.same("meta.me", "livemode", me.body.get("livemode", is_live), mode == "live", me)
        answer = run.get(f"/keys/{own}", who)
        is_refused = answer.status == 403 or answer.code == "insufficient_scope"
        if who != NARROW or not is_refused:  # a deployment may ask for a scope
            run.status("keys.read", answer, 200)
            run.has("keys.read", answer, id=own)
        for is_expensive_bucket, name in ((False, "rate_per_minute"), (True, "rate_expensive_per_minute")):
            limit = answer.body.get(name)
            usual = LIMITS[is_expensive_bucket]
            run.limits[who, is_expensive_bucket] = limit if isinstance(limit, int) else usual


def scopes(run: Exchanges) -> None:
    """Every operation whose scope the narrow key lacks."""
    if NARROW not in run.keys:
        raise Skip("no key that lacks scopes was given (--narrow-key-file)")
    me = run.read("scopes.any-key", "/me", NARROW)
    tariffs = run.get("/catalog/tariffs", NARROW)
    quote = f"quote?tariff_id={tariffs.items[0].get('id')}&months=1" if tariffs.items else "locations"
    for answer in (tariffs, *(run.get(f"/catalog/{path}", NARROW) for path in ("os", "zones", quote))):
        run.status("scopes.any-key", answer, 200)
    has = me.body.get("scopes") or []
    is_live = run.keys[NARROW].startswith("vk_live_")
    for call, scope in SCOPED.items():
        if call in WEBHOOKS and not is_live:
            continue
        if scope in has:
            if call in ("GET /account", "GET /balance", "GET /servers", "GET /domains", "GET /keys"):
                run.read("scopes.any-key", call.removeprefix("GET "), NARROW)
            continue
        check, code = f"scopes.{scope.replace(':', '-')}", "insufficient_scope"
        options: dict[str, Any] = {} if call.startswith(("GET", "DELETE")) else {"json_body": {}}
        absent, step = call.replace("/1", f"/{ABSENT}"), f"scope {call}"
        answer = run.refused(check, 403, absent, NARROW, code=code, step=step, **options)
        required = answer.details.get("required")
        words = f"details.required is {required}, not {[scope]}"
        run.expect("scopes.required", required == [scope], words, answer)
