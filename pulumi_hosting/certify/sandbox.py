"""What a test key simulates: a server from its order to its deletion, other writes, and refused requests."""

import json
from decimal import Decimal
from typing import Any

from pulumi_hosting.certify import shapes as s
from pulumi_hosting.certify.answers import HttpAnswer
from pulumi_hosting.certify.reads import ABSENT, whole
from pulumi_hosting.certify.session import LIMITS, LIVE, READER, SANDBOX_IDS, TEST, Exchanges, Skip

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsfB1y0fXZ0m0oH0w5nq3t3v9f2dN8mQK4h1XW0qEpR"


def need_test_key(run: Exchanges) -> None:
    if TEST not in run.keys:
        raise Skip("no test key was given")


def choose(run: Exchanges) -> tuple[dict[str, Any], str]:
    """The cheapest tariff that can be ordered and refunded, and an image for it."""
    tariffs = run.get("/catalog/tariffs").items
    sold = [entry for entry in tariffs if entry.get("in_stock") and not entry.get("non_refundable")]
    if not sold:
        raise Skip("no tariff is in stock")
    tariff = min(sold, key=lambda entry: Decimal(entry["price_monthly"]))
    images = run.get(f"/catalog/os?tariff_id={tariff['id']}").items
    if not images:
        raise Skip(f"there is no image for tariff {tariff['id']}")
    linux = [image for image in images if image.get("family") in (None, "linux")]
    return tariff, (linux or images)[0]["slug"]


def topup_body(run: Exchanges, who: str = READER, **options: Any) -> dict[str, Any]:
    """The smallest top-up that is allowed."""
    info = run.get("/balance/topup-info", who, **options).body
    gateway = (info.get("gateways") or [""])[0]
    return {"amount": f"{Decimal(info.get('min', '10.00')):.2f}", "gateway": gateway}


def balance(run: Exchanges) -> Decimal:
    return Decimal(run.get("/balance").body["balance"])


def simulated_order(run: Exchanges) -> None:
    need_test_key(run)
    tariff, image = choose(run)
    before = balance(run)
    invoices = run.get("/invoices?limit=100").ids
    body = {"tariff_id": tariff["id"], "os": image, "name": f"certify-{run.id}", "months": 1}
    quoted = run.get(f"/catalog/quote?tariff_id={tariff['id']}&months=1")
    answer = run.call("POST", "/servers", TEST, json_body=body, step="sandbox order")
    if answer.is_(402):
        raise Skip("the balance of the account does not cover a simulated order")
    if run.status("servers.order", answer, 201):
        run.shape("servers.created", answer.data, s.SIMULATED_SERVER, answer)
    id = answer.body.get("server", {}).get("id")
    if not answer.ok or not id:
        raise Skip("there is no simulated server")
    run.made(f"sandbox server {id}", "DELETE", f"/servers/{id}", TEST)
    words = f"the id {id!r} is not a number from {SANDBOX_IDS}"
    if not run.expect("sandbox.server-id", run.is_fake(id), words, answer) and not isinstance(id, int):
        raise Skip("the id of the simulated server is no number")
    for name in ("invoice_id", "order_url"):
        run.same("sandbox.no-invoice", name, answer.body.get(name, "missing"), None, answer)
    charged, total = answer.body.get("charged"), quoted.body.get("total")
    run.same("money.quote-is-charged", "charged", charged, total, answer)
    try:
        run.part("idempotency.", _replays, run, body, answer)
        if run.get(f"/servers/{id}").is_(404):
            run.expect("sandbox.visible", False, "the sandbox server is not there", answer)
            raise Skip("the sandbox server is not there")
        run.part("servers. sandbox.visible", _visible, run, id, body)
        run.part("servers.", _actions, run, id, image)
        run.part("addresses.", _addresses, run, id)
        run.part("servers.renew", _renewal, run, id)
    finally:
        run.part("servers.delete", _delete, run, id)
    run.same("sandbox.nothing-charged", "the balance after simulations", balance(run), before, answer)
    listed = run.get("/invoices?limit=100")
    run.same("sandbox.nothing-charged", "invoices after simulations", listed.ids, invoices, listed)


def _replays(run: Exchanges, body: dict[str, Any], first: HttpAnswer) -> None:
    """The same Idempotency-Key again, in each situation of the table."""
    again = run.call("POST", "/servers", TEST, json_body=body, step="sandbox order", stored=True)
    ids = [answer.body.get("server", {}).get("id") for answer in (first, again)]
    run.same("idempotency.replay", "the status of a repeated order", again.status, first.status, again)
    run.same("idempotency.replay", "the server of a repeated order", ids[1], ids[0], again)
    for name in ("charged", "balance_after", "invoice_id", "order_url"):
        found, wanted = again.body.get(name), first.body.get(name)
        run.same("idempotency.replay", f"{name} of a repeated order", found, wanted, again)
    shown = again.body.get("root_password")
    run.expect("idempotency.blanked", not shown, "the replay shows root_password", again)
    run.expect("servers.created", first.body.get("root_password"), "root_password is empty", first)
    check, code, step = "idempotency.conflict", "idempotency_conflict", "sandbox order"
    longer, topup = {**body, "months": 3}, {"amount": "50.00", "gateway": "certify"}
    run.refused(check, 409, "POST /servers", code=code, json_body=longer, step=step)
    run.refused(check, 409, "POST /balance/topup", code=code, json_body=topup, step=step)
    spaced = json.dumps(body, indent=1).encode()
    form = {"Content-Type": "application/json"}
    answer = run.call(
        "POST", "/servers", TEST, content=spaced, headers=form, step="sandbox order", stored=True
    )
    run.reading("body_comparison", "parsed" if answer.status == first.status else "bytes")


def _visible(run: Exchanges, id: int, body: dict[str, Any]) -> None:
    listed = run.get("/servers?limit=100")
    run.expect("sandbox.visible", id in listed.ids, "the sandbox server is not in the list", listed)
    run.each("servers.shape", listed, s.SERVER)
    if LIVE in run.keys:
        other = run.get("/servers?limit=100", LIVE)
        run.expect("sandbox.visible", id not in other.ids, "a live key sees the sandbox server", other)
        run.refused("sandbox.visible", 404, f"GET /servers/{id}", LIVE, code="not_found")
    server = run.get(f"/servers/{id}")
    detail(run, server, id, body)
    found = run.get("/servers?limit=100&status=active")
    wrong = [entry for entry in found.items if entry.get("status") != "active"]
    run.expect("servers.filters", id in found.ids and not wrong, "status does not filter", found)
    found = run.get("/servers?limit=100&status=terminated")
    run.expect("servers.filters", id not in found.ids, "status does not filter", found)
    address = server.body.get("ip") or server.body.get("primary_ip")
    if address:
        found = run.get(f"/servers?ip={address}")
        run.expect("servers.filters", id in found.ids, "ip does not find the server", found)
        found = run.get("/servers?ip=192.0.2.123")
        run.expect("servers.filters", id not in found.ids, "ip does not filter", found)
    live = run.read("servers.live", f"/servers/{id}?include=live")
    parts = live.body.get("live")
    run.expect("servers.live", parts or "power" in live.body, "include=live adds nothing", live)
    run.read("servers.live", f"/servers/{id}/status", shape=s.LIVE)


def detail(run: Exchanges, answer: HttpAnswer, id: int, body: dict[str, Any], who: str = TEST) -> None:
    """The read of one server, as ordered, and its quote of a refund."""
    run.status("servers.read", answer, 200)
    run.shape("servers.shape", answer.data, s.SERVER_DETAIL, answer)
    run.has("servers.read", answer, id=id, status="active")
    run.has("servers.order", answer, name=body["name"])
    refund = run.read(
        "servers.refund-quote", f"/servers/{id}/refund-quote", who, kept=who == LIVE, shape=s.REFUND_QUOTE
    )
    has_reason = refund.body.get("excluded_reason") is not None
    words = f"refundable is {refund.body.get('refundable')}, and excluded_reason says otherwise"
    run.expect("servers.refund-quote", refund.body.get("refundable") is not has_reason, words, refund)


def _actions(run: Exchanges, id: int, image: str) -> None:
    path = f"/servers/{id}"
    note = f"certify {run.id}"
    patched = run.call("PATCH", path, TEST, json_body={"notes": note, "auto_renew": True})
    run.status("servers.patch", patched, 200, shape=s.SERVER)
    run.has("servers.patch", patched, notes=note)
    renews = patched.body.get("billing", {}).get("auto_renew")
    run.same("servers.patch", "billing.auto_renew", renews, True, patched)
    shown = run.get(path).body.get("notes") == note
    run.reading("sandbox_echo", "server" if shown else "none")
    for action in ("stop", "start", "restart"):
        answer = run.call("POST", f"{path}/actions/power", TEST, json_body={"action": action})
        run.status("servers.power", answer, 202, shape=s.POWER)
        run.has("servers.power", answer, action=action)
    for bad in ({"action": "certify"}, {"action": "START"}):
        call = f"POST {path}/actions/power"
        run.refused("servers.power-unknown", 400, call, code="invalid_action", json_body=bad)
    own = run.call(
        "POST", f"{path}/actions/reinstall", TEST, json_body={"os": image, "password": "Certify-2026x"}
    )
    run.status("servers.reinstall", own, 202, shape=s.REINSTALL)
    made = run.call("POST", f"{path}/actions/reinstall", TEST, json_body={"os": image})
    if not made.is_(409):  # the first one may still run
        run.status("servers.reinstall", made, 202, shape=s.REINSTALL)
        run.has("servers.reinstall", made, os=image)
        run.expect("servers.reinstall", made.body.get("root_password"), "root_password is empty", made)
    call, body = f"POST {path}/actions/reinstall", {"os": "certify"}
    run.refused("servers.os-not-allowed", 400, call, code="os_not_allowed", json_body=body)
    _password_resets(run, path)


def _password_resets(run: Exchanges, path: str) -> None:
    """Five within five minutes are answered, the sixth is not."""
    seen = set()
    for _ in range(5):
        answer = run.call("POST", f"{path}/actions/reset-password", TEST, wait=False)
        if answer.is_(429) and answer.details.get("limit") == run.limits.get((TEST, False), LIMITS[False]):
            raise Skip("the normal limit was reached by other requests of this key")
        run.status("servers.reset-password", answer, 200)
        run.expect("servers.reset-password", answer.body.get("password"), "there is no password", answer)
        seen.add(answer.body.get("password"))
    run.expect("servers.reset-password", len(seen) == 5, "two resets gave the same password", answer)
    call = f"POST {path}/actions/reset-password"
    run.refused("servers.reset-limit", 429, call, code="rate_limited", wait=False)


def _addresses(run: Exchanges, id: int) -> None:
    path = f"/servers/{id}/ips"
    listed = whole(run, path, TEST)
    run.each("addresses.shape", listed, s.ADDRESS)
    quoted = run.read("addresses.quote", f"{path}/quote", shape=s.ADDRESS_QUOTE)
    bought = run.call("POST", path, TEST, step="sandbox address")
    if bought.is_(409, "ip_limit_reached"):
        has, most = quoted.body.get("extra_ips"), quoted.body.get("max_extra_ips")
        run.same("addresses.limit", "extra_ips", has, most, quoted)
    elif not bought.is_(402):
        bought_address(run, bought, quoted)
        again = run.call("POST", path, TEST, step="sandbox address", stored=True)
        run.same("idempotency.replay", "a repeated purchase of an address", again.data, bought.data, again)
    primary = [entry for entry in listed.items if entry.get("primary")]
    run.same("addresses.shape", "the number of primary addresses", len(primary), 1, listed)
    if primary:
        ptr(run, f"{path}/{primary[0]['id']}", TEST)
        run.refused("addresses.primary-stays", 409, f"DELETE {path}/{primary[0]['id']}", code="conflict")
    call, body = f"PUT {path}/{ABSENT}/ptr", {"domain": "host.example.org"}
    run.refused("errors.not-found", 404, call, code="not_found", json_body=body)


def bought_address(run: Exchanges, answer: HttpAnswer, quoted: HttpAnswer) -> None:
    run.status("addresses.buy", answer, 200, 201, shape=s.ADDRESS_BOUGHT)
    run.has("money.address", answer, charged=quoted.body.get("prorated_now"))


def ptr(run: Exchanges, path: str, who: str) -> None:
    """Sets and removes the record of an address; refuses what is no host name."""
    kept = who == LIVE
    name = "host.certify.example.org"
    answer = run.call("PUT", f"{path}/ptr", who, json_body={"domain": name}, kept=kept)
    run.status("addresses.ptr", answer, 200)
    run.has("addresses.ptr", answer, ptr=name)
    for bad in ({"ptr": name}, {"domain": "nodots"}, {"domain": "under score.example.org"}):
        run.refused("addresses.ptr-refusals", 400, f"PUT {path}/ptr", who, json_body=bad, kept=kept)
    for empty in ("", None):
        answer = run.call("PUT", f"{path}/ptr", who, json_body={"domain": empty}, kept=kept)
        run.status("addresses.ptr", answer, 200)
        run.expect("addresses.ptr", not answer.body.get("ptr"), "the record stays", answer)


def _renewal(run: Exchanges, id: int) -> None:
    server = run.get(f"/servers/{id}")
    due, price = server.body["billing"]["next_due_at"], server.body["billing"]["recurring_amount"]
    answer = run.call("POST", f"/servers/{id}/renew", TEST, json_body={"months": 1}, step="sandbox renewal")
    if answer.is_(409, "conflict"):
        run.reading("early_renewal", "last_day")
        run.skip("this deployment renews only shortly before the end", "servers.renew")
    elif not answer.is_(402):
        run.reading("early_renewal", "any_time")
        run.status("servers.renew", answer, 200, shape=s.RENEWED)
        run.has("money.renewal", answer, charged=price)
        later = str(answer.body.get("next_due_at")) > str(due)
        run.expect("servers.renew", later, f"next_due_at was {due} and is not later", answer)
    for months in (3, 12):
        step = f"sandbox renewal {months}"
        answer = run.call("POST", f"/servers/{id}/renew", TEST, json_body={"months": months}, step=step)
        is_allowed = answer.ok or answer.is_(402) or answer.is_(409, "conflict")
        run.expect("servers.renew", is_allowed, f"{months} months: answered {answer.short}", answer)
    for number, bad in enumerate(({"months": 2}, {"hours": 1}, {"months": 1, "hours": 1}, {})):
        step = f"sandbox bad renewal {number}"
        answer = run.call("POST", f"/servers/{id}/renew", TEST, json_body=bad, step=step)
        run.expect(
            "servers.renew-bounds",
            answer.status == 400 or answer.is_(409, "conflict"),
            f"answered {answer.short}, not 400",
            answer,
        )


def _delete(run: Exchanges, id: int) -> None:
    path = f"/servers/{id}"
    run.refused("idempotency.required", 400, f"DELETE {path}", code="idempotency_key_required")
    answer = run.call("DELETE", path, TEST, step="sandbox deletion")
    deleted(run, answer)
    again = run.call("DELETE", path, TEST, step="sandbox deletion", stored=True)
    run.same("idempotency.replay", "a repeated deletion", again.data, answer.data, again)
    gone(run, path, TEST)
    run.removed(path)
    second = run.call("DELETE", path, TEST, step="sandbox second deletion")
    if not second.is_(404):  # a deployment may forget a deleted server
        twice(run, second)


def twice(run: Exchanges, second: HttpAnswer) -> None:
    """A server that is gone, and listed, cannot be deleted."""
    run.status("servers.delete-twice", second, 409, code="service_state")
    run.expect("servers.delete-twice", second.details.get("status"), "details.status is missing", second)


def gone(run: Exchanges, path: str, who: str) -> None:
    """After a deletion: absent, or listed as cancelled."""
    read = run.get(path, who, kept=who == LIVE)
    holds = read.is_(404) or read.code == "not_found" or read.body.get("status") == "cancelled"
    run.expect("servers.deleted", holds, f"answered {read.short} after the deletion", read)
    run.reading("deleted_servers", "gone" if read.is_(404) else "listed")


def deleted(run: Exchanges, answer: HttpAnswer) -> Decimal | None:
    """The result of a deletion, in either form. The refund."""
    run.status("servers.delete", answer, 200, shape=s.DELETED)
    refund = answer.body.get("refund")
    is_object = isinstance(refund, dict)
    run.report.profile.setdefault("dialect", "spec" if is_object else "live")
    amount = refund.get("amount") if isinstance(refund, dict) else refund
    run.expect("servers.delete", s.fits(amount, "money"), f"refund is {refund!r}", answer)
    if is_object:
        has = "cancel_request_withdrawn" in answer.body
        run.expect("servers.delete", has, "cancel_request_withdrawn is missing", answer)
    return Decimal(str(amount)) if s.fits(amount, "money") else None


# --- other writes -------------------------------------------------------------------------------------------


def simulated_writes(run: Exchanges) -> None:
    need_test_key(run)
    before, invoices = balance(run), run.get("/invoices?limit=100").ids
    body = topup_body(run)
    amount, gateway = body["amount"], body["gateway"]
    topup = run.call("POST", "/balance/topup", TEST, json_body=body, step="sandbox topup")
    run.status("account.topup", topup, 201, shape=s.TOPUP_RESULT)
    run.has("account.topup", topup, gateway=gateway)
    for bare in (float(amount) + 0.5, int(Decimal(amount)) + 1):
        body = {"amount": bare, "gateway": gateway}
        number = run.call("POST", "/balance/topup", TEST, json_body=body, step=f"sandbox topup {bare}")
        run.status("money.numbers", number, topup.status)
    good, numbers, refusals = (
        {"amount": amount, "gateway": gateway},
        "money.numbers",
        "account.topup-refusals",
    )
    for name, check, bad, code in (
        ("three digits", numbers, {**good, "amount": f"{amount}1"}, None),
        ("three digits of a number", numbers, {**good, "amount": float(amount) + 0.125}, None),
        ("bad return_url", refusals, {**good, "return_url": "https://example.org"}, "validation_error"),
        ("bad gateway", refusals, {**good, "gateway": "certify"}, "validation_error"),
        ("bad none", refusals, {"amount": amount}, "validation_error"),
    ):
        step = f"sandbox topup {name}"
        run.refused(check, 400, "POST /balance/topup", code=code, json_body=bad, step=step)
    key = {"name": f"certify-{run.id}", "public_key": f"{PUBLIC_KEY} certify"}
    made = run.call("POST", "/ssh-keys", TEST, json_body=key)
    if not made.is_(409):
        run.status("ssh-keys.create", made, 200, 201, shape=s.SSH_KEY)
        names = [entry.get("name") for entry in run.get("/ssh-keys").items]
        is_new = key["name"] in names
        run.expect("sandbox.nothing-charged", not is_new, "a simulated SSH key is listed", made)
    run.same("sandbox.nothing-charged", "the balance after simulations", balance(run), before, topup)
    listed = run.get("/invoices?limit=100")
    run.same("sandbox.nothing-charged", "invoices after simulations", listed.ids, invoices, listed)
    unpaid = [entry for entry in listed.items if entry.get("status") == "not_paid"]
    _payments(run, unpaid, before)
    if unpaid:
        id = unpaid[0]["id"]
        link = run.call("POST", f"/invoices/{id}/payment-link", TEST, json_body={})
        run.status("invoices.payment-link", link, 200, shape=s.PAYMENT_LINK)
        bad_links(run, f"/invoices/{id}/payment-link", TEST)


def bad_links(run: Exchanges, path: str, who: str) -> None:
    """No body is needed for a payment link; unknown fields and gateways are refused."""
    run.status("invoices.payment-link", run.call("POST", path, who), 200)
    for bad in ({"certify": 1}, {"gateway": "certify"}):
        run.refused("invoices.payment-link", 400, f"POST {path}", who, json_body=bad)


def _payments(run: Exchanges, unpaid: list[dict[str, Any]], available: Decimal) -> None:
    """Simulated payments of invoices from the balance; a top-up is paid through its gateway."""
    for entry in [entry for entry in unpaid if entry.get("type") != "topup"][:3]:
        id, amount = entry["id"], Decimal(entry["amount"])
        answer = run.call("POST", f"/invoices/{id}/pay", TEST, step=f"sandbox payment {id}")
        if amount > available:
            insufficient(run, "invoices.pay-refused", answer, amount, available)
        else:
            run.status("invoices.pay", answer, 200, shape=s.PAID)
            run.has("invoices.pay", answer, amount=entry["amount"])
            after = Decimal(answer.body.get("balance_after", "0"))
            run.same("invoices.pay", "balance_after", after, available - amount, answer)
    run.skip("the account has no unpaid invoice for this", "invoices.pay", "invoices.pay-refused")


def insufficient(run: Exchanges, check: str, answer: HttpAnswer, price: Decimal, available: Decimal) -> None:
    """402, with what is missing."""
    run.status(check, answer, 402, code="insufficient_funds")
    details = answer.details
    for name, wanted in (("required", price), ("balance", available), ("shortfall", price - available)):
        run.same(check, f"details.{name}", details.get(name), f"{wanted:.2f}", answer)
    run.expect(check, details.get("currency"), "details.currency is missing", answer)


def too_expensive(run: Exchanges) -> None:
    """An order that the balance does not cover."""
    available = balance(run)
    tariffs = [entry for entry in run.get("/catalog/tariffs").items if entry.get("in_stock")]
    for tariff in sorted(tariffs, key=lambda entry: Decimal(entry["price_monthly"]), reverse=True)[:1]:
        quoted = run.get(f"/catalog/quote?tariff_id={tariff['id']}&months=12")
        images = run.get(f"/catalog/os?tariff_id={tariff['id']}").items
        total = Decimal(quoted.body.get("total", "0"))
        if total > available and images:
            body = {"tariff_id": tariff["id"], "os": images[0]["slug"], "months": 12}
            answer = run.call("POST", "/servers", TEST, json_body=body, step="too expensive")
            insufficient(run, "servers.insufficient-funds", answer, total, available)
            return
    run.skip("the balance covers every order", "servers.insufficient-funds")
