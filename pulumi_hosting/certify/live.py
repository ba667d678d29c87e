"""What a live key orders, renews and deletes. Each charge against quote, balance, invoice and ledger."""

from decimal import Decimal
from functools import partial
from typing import Any

from pulumi_hosting.certify import sandbox
from pulumi_hosting.certify import shapes as s
from pulumi_hosting.certify.answers import HttpAnswer
from pulumi_hosting.certify.reads import moment, read_invoice
from pulumi_hosting.certify.session import LIVE, Exchanges, Skip
from pulumi_hosting.certify.staging import StagingAccount, need_live_key
from pulumi_hosting.certify.webhooks import Webhooks


def orders_and_money(run: Exchanges) -> None:
    account = need_live_key(run)
    tariff, image = sandbox.choose(run)
    hooks = run.hooks = Webhooks.subscribe(run, account.call)
    key = _ssh_key(account)
    try:
        run.part("account.topup invoices.", _topup, account, hooks)
        ordered = _order(account, tariff, image, key)
        if ordered is None:
            return
        id, body = ordered
        try:
            run.part("servers.", sandbox.detail, run, account.get(f"/servers/{id}"), id, body, LIVE)
            run.part("servers. addresses.", _changes, account, id)
            run.part("servers.renew money.renewal", _renewal, account, id)
            run.part("addresses.", _address, account, id)
            run.part("servers.reinstall", _reinstall, account, id, image)
            run.part("sandbox.real-reads", account.compare_reads)
            run.part("sandbox.", account.try_with_test_key, id)
        finally:
            run.part("servers.delete money.refund", _delete, account, id)
    finally:
        if key is not None:
            _remove_key(account, key)


def _ssh_key(account: StagingAccount) -> int | None:
    run = account.run
    body = {"name": f"certify-{run.id}", "public_key": f"{sandbox.PUBLIC_KEY} certify"}
    made = account.call("POST", "/ssh-keys", json_body=body)
    if made.is_(409, "conflict"):  # ours, if its creation was not answered before a kill
        own = [entry["id"] for entry in account.get("/ssh-keys").items if entry.get("name") == body["name"]]
        for id in own:
            run.made(f"SSH key {id}", "DELETE", f"/ssh-keys/{id}", LIVE)
        return own[0] if own else None
    run.status("ssh-keys.create", made, 200, 201, shape=s.SSH_KEY)
    if not isinstance(id := made.body.get("id"), int):
        return None
    run.made(f"SSH key {id}", "DELETE", f"/ssh-keys/{id}", LIVE)
    is_whole = str(made.body.get("public_key")).startswith(sandbox.PUBLIC_KEY)
    run.expect("ssh-keys.create", is_whole, "public_key is not the one that was sent", made)
    listed = account.get("/ssh-keys")
    run.expect("ssh-keys.create", id in listed.ids, "the created key is not listed", listed)
    run.each("ssh-keys.shape", listed, s.SSH_KEY)
    again = account.call("POST", "/ssh-keys", json_body={**body, "name": f"certify-{run.id}-2"})
    run.reading("duplicate_ssh_key", "second" if again.ok else "conflict")
    if again.ok and again.body.get("id") != id:
        account.call("DELETE", f"/ssh-keys/{again.body.get('id')}")
    return id


def _remove_key(account: StagingAccount, id: int) -> None:
    account.run.needs_scope("servers:manage", "DELETE", f"/ssh-keys/{id}")
    answer = account.call("DELETE", f"/ssh-keys/{id}")
    if answer.ok:
        account.run.removed(f"/ssh-keys/{id}")


def _topup(account: StagingAccount, hooks: Webhooks | None) -> None:
    """A top-up is an unpaid invoice; the balance stays."""
    run, before = account.run, account.balance
    body = sandbox.topup_body(run, LIVE, kept=True)
    amount, gateway = body["amount"], body["gateway"]
    if hooks is not None:
        hooks.receiver.answer = 500  # the first delivery fails, so that a retry can be seen
    made = account.call("POST", "/balance/topup", json_body=body, step="topup")
    run.status("account.topup", made, 201, shape=s.TOPUP_RESULT)
    id = made.body.get("invoice_id")
    if not made.ok or not id:
        raise Skip("there is no top-up invoice")
    again = account.call("POST", "/balance/topup", json_body=body, step="topup", stored=True)
    run.same(
        "idempotency.replay", "the invoice of a repeated top-up", again.body.get("invoice_id"), id, again
    )
    run.left_behind(f"unpaid top-up invoice {id}")
    read = read_invoice(run, id, LIVE)
    run.has("account.topup-invoice", read, type="topup", status="not_paid", amount=amount)
    run.same("account.topup-invoice", "the balance after a top-up", account.balance, before, made)
    link = account.call("POST", f"/invoices/{id}/payment-link", json_body={"gateway": gateway})
    run.status("invoices.payment-link", link, 200, shape=s.PAYMENT_LINK)
    sandbox.bad_links(run, f"/invoices/{id}/payment-link", LIVE)
    for who, expected in (("status", "not_paid"), ("type", "topup")):
        found = account.get(f"/invoices?limit=100&{who}={expected}")
        others = [entry for entry in found.items if entry.get(who) != expected]
        has_only_it = id in found.ids and not others
        run.expect("invoices.filters", has_only_it, f"{who} does not filter", found)
    if hooks is not None:
        hooks.retried("invoice.created", s.INVOICE)


def _order(
    account: StagingAccount, tariff: dict[str, Any], image: str, key: int | None
) -> tuple[int, dict[str, Any]] | None:
    run = account.run
    quoted = account.get(f"/catalog/quote?tariff_id={tariff['id']}&months=1")
    total = Decimal(quoted.body.get("total", tariff["price_monthly"]))
    run.may_spend(total, "an order")
    body = {"tariff_id": tariff["id"], "os": image, "name": f"certify-{run.id}", "months": 1}
    if key is not None:
        body["ssh_key_ids"] = [key]
    before = account.balance
    run.made(f"a server named {body['name']}", "", "/servers", LIVE)
    step = "order"
    answer = account.call("POST", "/servers", json_body=body, step=step)
    if key is not None and answer.status == 400:
        words = f"an order with the new key answered {answer.short}"
        del body["ssh_key_ids"]
        step = "order without a key"
        answer = account.call("POST", "/servers", json_body=body, step=step)
        run.expect("ssh-keys.create", not answer.ok, words, answer)
    if not answer.ok:
        run.removed("/servers")
        run.status("servers.order", answer, 201, 202)
        return None
    after = account.balance
    if answer.is_(202):
        run.shape("orders.read", answer.data, s.ORDER, answer)
        run.charged += before - after
        id = _await_order(account, answer.body.get("invoice_id"))
    else:
        run.status("servers.order", answer, 201)
        run.shape("servers.created", answer.data, s.SERVER_CREATED, answer)
        amount = account.charged("an order", before, answer, after)
        run.same("money.quote-is-charged", "charged", amount, total, answer)
        id = int(answer.body.get("server", {}).get("id") or 0)
        if not id:
            run.left_behind(f"a server named {body['name']}")
            return None
        invoice_id = answer.body.get("invoice_id")
        account.ledger("an order", "debit", amount, invoice_id)
        if invoice_id:
            account.paid_invoice("an order", invoice_id, amount, ("vds_purchase",))
        order = account.read("orders.read", f"/orders/{invoice_id}", shape=s.ORDER)
        run.has("orders.read", order, server_id=id, status="active", invoice_id=invoice_id)
    run.ordered = True
    run.removed("/servers")
    run.made(f"server {id}", "DELETE", f"/servers/{id}", LIVE)
    again = account.call("POST", "/servers", json_body=body, step=step, stored=True)
    same = again.status == answer.status and again.body.get("invoice_id") == answer.body.get("invoice_id")
    run.expect("idempotency.replay", same, f"a repeated order answered {again.short}", again)
    run.same("idempotency.no-second-charge", "the balance after a repetition", account.balance, after, again)
    run.expect("idempotency.blanked", not again.body.get("root_password"), "the password is shown", again)
    other = account.call("POST", "/servers", json_body={**body, "months": 3}, step=step)
    run.status("idempotency.conflict", other, 409, code="idempotency_conflict")
    run.same("idempotency.no-second-charge", "the balance after a conflict", account.balance, after, other)
    return id, body


def _await_order(account: StagingAccount, invoice_id: object) -> int:
    run = account.run
    ended = ("cancelled", "failed")
    order = account.until(
        f"/orders/{invoice_id}",
        lambda order: order.body.get("server_id") or order.body.get("status") in ended,
    )
    run.status("orders.read", order, 200)
    if order.body.get("server_id"):
        run.has("orders.read", order, status="active")
        return int(order.body["server_id"])
    if order.body.get("status") in ended:
        raise Skip("the order did not become a server")
    run.left_behind(f"order {invoice_id}, still {order.body.get('status')}")
    raise Skip("the order was not finished in 10 minutes")


def _changes(account: StagingAccount, id: int) -> None:
    run, path = account.run, f"/servers/{id}"
    change = {"notes": f"certify {run.id} changed", "name": f"certify-{run.id}-b", "auto_renew": False}
    run.status("servers.patch", account.call("PATCH", path, json_body=change), 200, shape=s.SERVER)
    read = account.get(path)
    shown = {**read.body, "auto_renew": read.body.get("billing", {}).get("auto_renew")}
    for name, wanted in change.items():
        run.same("servers.patch", f"{name} after a PATCH", shown.get(name), wanted, read)
    for action, status in (("stop", "stopped"), ("start", "active")):
        answer = account.call("POST", f"{path}/actions/power", json_body={"action": action})
        run.status("servers.power", answer, 202, shape=s.POWER)
        read = account.until(path, partial(_has_status, status))
        run.same("servers.power-status", f"the status after {action}", read.body.get("status"), status, read)
    for entry in account.get(f"{path}/ips").items:
        if entry.get("primary"):
            sandbox.ptr(run, f"{path}/ips/{entry['id']}", LIVE)
            name = f"{run.id}.certify.example.org"
            account.call("PUT", f"{path}/ips/{entry['id']}/ptr", json_body={"domain": name})
            listed = account.get(f"{path}/ips")
            now = [other.get("ptr") for other in listed.items if other["id"] == entry["id"]]
            run.same("addresses.ptr", "ptr in the list", now, [name], listed)
    account.read("servers.live", f"{path}/status", shape=s.LIVE)


def _has_status(status: str, read: HttpAnswer) -> bool:
    return bool(read.body.get("status") == status)


def _renewal(account: StagingAccount, id: int) -> None:
    run, path = account.run, f"/servers/{id}"
    server = account.get(path)
    due = server.body["billing"]["next_due_at"]
    price = Decimal(server.body["billing"]["recurring_amount"])
    run.may_spend(price, "a renewal")
    before = account.balance
    answer = account.call("POST", f"{path}/renew", json_body={"months": 1}, step="renewal")
    if answer.is_(409, "conflict"):
        run.reading("early_renewal", "last_day")
        return
    run.reading("early_renewal", "any_time")
    run.status("servers.renew", answer, 200, shape=s.RENEWED)
    amount = account.charged("a renewal", before, answer, account.balance)
    run.same("money.renewal", "charged", amount, price, answer)
    account.ledger("a renewal", "debit", amount)
    after = account.balance
    months = {"months": 1}
    account.repeated("renewal", answer, after, "POST", f"{path}/renew", json_body=months, step="renewal")
    read = account.get(path)
    now = read.body["billing"]["next_due_at"]
    run.same("servers.renew", "next_due_at", now, answer.body.get("next_due_at"), read)
    days = (moment(now) - moment(due)).days
    run.expect("servers.renew", 27 <= days <= 32, f"next_due_at was {due} and is {now}", read)


def _address(account: StagingAccount, id: int) -> None:
    run, path = account.run, f"/servers/{id}"
    quoted = account.read("addresses.quote", f"{path}/ips/quote", shape=s.ADDRESS_QUOTE)
    if (quoted.body.get("max_extra_ips") or 0) <= (quoted.body.get("extra_ips") or 0):
        return
    price = Decimal(quoted.body.get("prorated_now", "0"))
    run.may_spend(price, "an address")
    known = {*account.get(f"{path}/ips").ids}
    recurring = Decimal(account.get(path).body["billing"]["recurring_amount"])
    before = account.balance
    answer = account.call("POST", f"{path}/ips", step="address")
    sandbox.bought_address(run, answer, quoted)
    if not answer.ok:
        return
    account.ledger("an address", "debit", account.charged("an address", before, answer, account.balance))
    after = account.balance
    account.repeated("purchase of an address", answer, after, "POST", f"{path}/ips", step="address")
    listed = account.until(f"{path}/ips", lambda listed: {*listed.ids} - known)
    new = [entry for entry in listed.items if entry["id"] not in known]
    shown = account.get(path).body.get("ips")
    if not new and isinstance(shown, list) and len(shown) > len(listed.items):
        run.expect("pages.whole", False, "the list lacks addresses that the server shows", listed)
        return
    run.same("addresses.assigned", "the number of new addresses", len(new), 1, listed)
    read = account.get(path)
    now = Decimal(read.body["billing"]["recurring_amount"])
    run.expect("addresses.recurring", now > recurring, f"recurring_amount is {now} after {recurring}", read)
    for entry in new:
        run.shape("addresses.shape", entry, s.ADDRESS, listed)
        released = account.call("DELETE", f"{path}/ips/{entry['id']}")
        was_sent = run.resumed and released.status == 404  # before the kill, and not answered
        run.expect("addresses.release", released.ok or was_sent, f"answered {released.short}", released)
        run.same("addresses.release", "the balance after a release", account.balance, after, released)
        left = account.get(f"{path}/ips")
        is_gone = entry["id"] not in left.ids
        run.expect("addresses.release", is_gone, "the address is still listed", left)


def _reinstall(account: StagingAccount, id: int, image: str) -> None:
    run = account.run
    answer = account.call("POST", f"/servers/{id}/actions/reinstall", json_body={"os": image})
    run.status("servers.reinstall", answer, 202, shape=s.REINSTALL)
    if run.hooks is not None:
        run.hooks.expect("server.reinstalled", s.SERVER, id)


def _delete(account: StagingAccount, id: int) -> None:
    run, path = account.run, f"/servers/{id}"
    quoted = account.get(f"{path}/refund-quote")
    before = account.balance
    answer = account.call("DELETE", path, step="deletion")
    refund = sandbox.deleted(run, answer)
    if not answer.ok:
        return
    run.removed(path)
    after = account.balance
    said = answer.body.get("balance_after")
    run.same("money.refund", "the balance after the refund", after, before + (refund or 0), answer)
    run.same("money.balance-after", "balance_after of a deletion", Decimal(said or 0), after, answer)
    close = abs(Decimal(quoted.body.get("amount", "0")) - (refund or 0)) <= Decimal("0.10")
    run.expect("money.refund-quote", close, f"refund {refund}, quoted {quoted.body.get('amount')}", answer)
    if refund:
        account.ledger_of_refunds(refund)
    account.repeated("deletion", answer, after, "DELETE", path, step="deletion")
    sandbox.gone(run, path, LIVE)
    second = account.call("DELETE", path, step="second deletion")
    if not second.is_(404):
        sandbox.twice(run, second)


def events(run: Exchanges) -> None:
    """What the receiver got from the order, the deletion and the registration; then the subscription ends."""
    if run.hooks is None:
        raise Skip("no receiver was given (--webhook-url), or nothing was ordered")
    run.hooks.finish()
