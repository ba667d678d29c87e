"""Servers: list, order, read, edit, delete, live status, refund quote, renewal."""

import ipaddress
from decimal import Decimal

from pulumi_hosting.api import models as m
from pulumi_hosting.emulator import (
    dialects,
    ledger,
    periods,
    price_list,
    pricing,
    serializers,
    server_lifecycle,
)
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import View, format_money
from pulumi_hosting.emulator.messages import Answer, Refusal, invalid
from pulumi_hosting.emulator.rows import LIVING, ServerRow, TariffRow
from pulumi_hosting.emulator.validation import invalid_period

# A renewal may end at most 100 years ahead.
MOST_AHEAD_SECONDS = 100 * 366 * 86400


def _address(text: str | None) -> object:
    """An IP address, normalized; any other text is returned as it is and matches nothing."""
    try:
        return None if text is None else ipaddress.ip_address(text)
    except ValueError:
        return text


def list_servers(call: Call) -> Answer:
    status, ip = call.query.status, _address(call.query.ip)
    hide_gone = call.store.service.readings["deleted_servers"] == "gone"
    rows = (
        row
        for row in call.store.newest(ServerRow, call.account.id)
        if call.can_see(row)
        and (status is None or row.status == status)
        # Deleted servers are listed only with a status filter and the variant `deleted_servers: listed`.
        and not (row.is_gone and (hide_gone or status is None))
        and (ip is None or any(_address(address.address) == ip for address in call.addresses(row)))
    )
    return call.page(rows)


# --- ordering ---------------------------------------------------------------------------------------------


def _period(call: Call, tariff: TariffRow) -> tuple[int | None, int | None]:
    """Months or hours of an order."""
    body = call.body
    if body.hours is None and body.billing_cycle != "hourly":
        return body.months or 1, None
    hours = body.hours or 1
    if tariff.price_hourly is None or hours not in dialects.ORDER_HOURS(call.dialect):
        raise invalid_period("hours")
    return None, hours


def _check_image(call: Call, tariff: TariffRow, slug: str) -> None:
    if slug not in price_list.IMAGES or slug in tariff.excluded_os:
        raise Refusal("os_not_allowed", details={"fields": {"os": "os_not_allowed"}})


def _check_ssh_keys(call: Call, ids: list[int] | None) -> list[int]:
    """Keys of the account. A simulation accepts any id, since a simulated key does not exist."""
    if ids is not None and not call.simulated:
        for id in ids:
            key = call.store.ssh_keys.get(id)
            if key is None or key.account_id != call.account.id:
                raise invalid(ssh_key_ids="unknown")
    return list(ids or ())


def create_server(call: Call) -> Answer:
    store, body, account = call.store, call.body, call.account
    tariff = store.tariffs.get(body.tariff_id)
    if tariff is None:
        raise invalid(tariff_id="unknown")
    if tariff.disabled:
        raise Refusal("tariff_unavailable")
    _check_image(call, tariff, body.os)
    months, hours = _period(call, tariff)
    ssh_key_ids = _check_ssh_keys(call, body.ssh_key_ids)
    call.check_promo(body.promo_code)
    if not tariff.in_stock:
        raise Refusal("no_capacity")
    price = pricing.price(store, account, tariff, months=months, hours=hours, promo=body.promo_code)
    name = body.name or server_lifecycle.generated_name(store, tariff)
    until = periods.end(call.now, months=months, hours=hours)
    given = body.password.reveal() if body.password is not None else None
    password = given or store.password()
    plan = server_lifecycle.plan(account.id, name, tariff, body.os, until) | {
        "cycle": "monthly" if hours is None else "hourly",
        "months": months or 1,
        "promo_code": body.promo_code,
        "owner_key_id": call.key.id if call.simulated else None,
        "ssh_key_ids": ssh_key_ids,
        "custom_fields": body.custom_fields or {},
    }
    id = server_lifecycle.new_server_id(store, sandbox=call.simulated)
    slow = "panel_timeout" in call.fault and not call.simulated
    bought, period = None if slow else id, (call.now, until)
    invoice = call.purchase("vds_purchase", price.total, f"Server {name}", server_id=bought, period=period)
    call.use_promo(body.promo_code)
    if slow and invoice is not None:
        # The panel timed out: the charge stays until the server is provisioned or the order refunded.
        outcome = call.fault["panel_timeout"]
        order = store.add(server_lifecycle.order_of(invoice, plan, "provisioning", call.now, outcome=outcome))
        done = call.now + store.provisioning_delay
        store.schedule(done, "finish_order", order.id, call.idempotency_key or "")
        return Answer(202, serializers.order(order, store))
    server = server_lifecycle.add_server(store, id, plan)
    view = {
        "server": serializers.server(server, store),
        "root_password": password,
        "invoice_id": invoice.id if invoice else None,
        "charged": format_money(price.total),
        "balance_after": format_money(call.balance_after(price.total)),
        "currency": account.currency,
        "order_url": f"{serializers.API}/orders/{invoice.id}" if invoice else None,
    }
    return Answer(201, view)


# --- one server -------------------------------------------------------------------------------------------


def _live(call: Call, server: ServerRow) -> View:
    if server.synthetic or server.is_gone:
        raise Refusal("service_state", "there is no panel record", details={"status": server.status})
    return serializers.live_status(server, call.store)


def get_server(call: Call) -> Answer:
    server = call.server()
    view = call.view(server)
    view["refund_quote"] = pricing.refund_view(call.store, server)
    if call.query.include == "live":
        view["live"] = _live(call, server)
    return Answer(200, view)


def get_server_status(call: Call) -> Answer:
    return Answer(200, _live(call, call.server()))


def get_server_refund_quote(call: Call) -> Answer:
    return Answer(200, pricing.refund_view(call.store, call.server()))


def update_server(call: Call) -> Answer:
    server = call.draft(call.changeable(*LIVING))
    call.assign(server)
    server.hostname = server.name
    return Answer(200, call.view(server))


def delete_server(call: Call) -> Answer:
    store, account = call.store, call.account
    server = call.changeable(*LIVING, gone=True)
    quote = pricing.refund(store, server)
    withdrawn = server.status == "pending_cancel"
    quote_view = pricing.refund_view(store, server, quote)
    after = account.balance + quote.amount
    if not call.simulated:
        server_lifecycle.end(store, server)
        for invoice, part in quote.parts if quote.refundable else ():
            ledger.credit_back(store, invoice, part, call.cause, object_id=server.id)
        after = account.balance
    elif server.is_sandbox:
        server_lifecycle.end(store, server)
    view = {
        "server_id": server.id,
        "status": "cancelled",
        "refund": dialects.refund(quote.amount, account.currency, call.dialect),
        "currency": account.currency,
        "balance_after": format_money(after),
        "refund_quote": quote_view,
    }
    if dialects.WITHDRAWN_FLAG(call.dialect):
        view["cancel_request_withdrawn"] = withdrawn
    return Answer(200, view)


def renew_server(call: Call) -> Answer:
    store, body = call.store, call.body
    server = call.server()
    if server.status == "pending_cancel":
        raise Refusal("cancel_pending")
    server = call.changeable("active", "stopped", "suspended")
    unit = "hours" if body.hours is not None else "months"
    if (body.hours is not None) != (server.cycle == "hourly"):
        raise invalid_period(unit)
    if body.hours is not None and body.hours not in dialects.RENEW_HOURS(call.dialect):
        raise invalid_period("hours")
    extra = sum((address.price_monthly for address in pricing.bought_addresses(store, server)), Decimal(0))
    amount = pricing.renewal(store, server, extra, body.months, body.hours)
    period = server_lifecycle.next_period(store, server, months=body.months, hours=body.hours)
    if period[1] > call.now + MOST_AHEAD_SECONDS:
        raise invalid_period(unit)
    words = f"Renewal of {server.name}"
    invoice = call.purchase("vds_renewal", amount, words, server_id=server.id, period=period)
    renewed = call.draft(server)
    if renewed is server and not call.simulated:
        server_lifecycle.cancel_unpaid_invoices(store, server)
        server_lifecycle.extend(store, server, period[1])
    else:
        renewed.next_due_at = period[1]
    answer = call.answer(
        200,
        m.RenewResult,
        server=call.view(renewed),
        invoice_id=invoice.id if invoice else None,
        charged=amount,
        balance_after=call.balance_after(amount),
        next_due_at=renewed.next_due_at,
        months=body.months,
        hours=body.hours,
    )
    del answer.body["months" if body.hours is not None else "hours"]
    return answer
