"""Servers: list, order, read, edit, delete, live status, refund quote, renewal, power, reinstallation,
password; their orders and addresses. The list of orders has those in progress, a read works for finished
ones too.
"""

import ipaddress
from decimal import Decimal

from pulumi_hosting.emulator import (
    dialects,
    ledger,
    periods,
    pricing,
    serializers,
    server_lifecycle,
)
from pulumi_hosting.emulator import rows as r
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import View, format_money
from pulumi_hosting.emulator.messages import Answer, Refusal, invalid
from pulumi_hosting.emulator.rate_limits import hit_within, too_many
from pulumi_hosting.emulator.validation import invalid_period

# A renewal may end at most 100 years ahead.
MOST_AHEAD_SECONDS = 100 * 366 * 86400


def _parsed(text: str | None) -> object:
    """An IP address, normalized; any other text is returned as it is and matches nothing."""
    try:
        return None if text is None else ipaddress.ip_address(text)
    except ValueError:
        return text


def list_servers(call: Call) -> Answer:
    status, ip = call.query.status, _parsed(call.query.ip)
    hide_gone = call.store.service.readings["deleted_servers"] == "gone"
    rows = (
        row
        for row in call.store.newest(r.ServerRow, call.account.id)
        if call.can_see(row)
        and (status is None or row.status == status)
        # Deleted servers are listed only with a status filter and the variant `deleted_servers: listed`.
        and not (row.is_gone and (hide_gone or status is None))
        and (ip is None or any(_parsed(address.address) == ip for address in call.addresses(row)))
    )
    return call.page(rows)


# --- ordering ---------------------------------------------------------------------------------------------


def _check_image(call: Call, tariff: r.TariffRow, slug: str) -> None:
    if call.store.image(slug) is None or slug in tariff.excluded_os:
        raise Refusal("os_not_allowed", details={"fields": {"os": "os_not_allowed"}})


def _check_ssh_keys(call: Call, ids: list[int] | None) -> list[int]:
    """Keys of the account. A simulation accepts any id, since a simulated key does not exist."""
    if ids and not call.simulated and not set(ids) <= call.store.of(r.SshKeyRow, call.account.id).keys():
        raise invalid(ssh_key_ids="unknown")
    return list(ids or ())


def _password(call: Call) -> str:
    """The root password that the body gives, or a new one."""
    return call.body.password.reveal() if call.body.password else call.store.password()


def create_server(call: Call) -> Answer:
    store, body, account = call.store, call.body, call.account
    tariff = store.tariffs.get(body.tariff_id)
    if tariff is None:
        raise invalid(tariff_id="unknown")
    if tariff.disabled:
        raise Refusal("tariff_unavailable")
    _check_image(call, tariff, body.os)
    months, hours = pricing.period_of(body)
    if hours and (tariff.price_hourly is None or hours not in dialects.ORDER_HOURS(call.dialect)):
        raise invalid_period("hours")
    ssh_key_ids = _check_ssh_keys(call, body.ssh_key_ids)
    call.check_promo(body.promo_code)
    if not tariff.in_stock:
        raise Refusal("no_capacity")
    price = pricing.price(store, account, tariff, months=months, hours=hours, promo=body.promo_code)
    name = body.name or f"{tariff.name.lower()}-{store.token('name', 6)}"
    until = periods.end(call.now, months=months, hours=hours)
    password = _password(call)
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
        view = call.view(order)
        del view["server_name"], view["tariff_name"]  # which only reads have
        return Answer(202, view)
    server = server_lifecycle.add_server(store, id, plan)
    view = {  # by hand, since orders are measured
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


def _live(call: Call, server: r.ServerRow) -> View:
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
    server = call.draft(call.changeable(*r.LIVING))
    call.assign(server)
    if call.body.name is not None:
        server.hostname = server.name
    return Answer(200, call.view(server))


def delete_server(call: Call) -> Answer:
    store = call.store
    server = call.changeable(*r.LIVING, gone=True)
    quote = pricing.refund(store, server)
    withdrawn = server.is_leaving
    quote_view = pricing.refund_view(store, server, quote)
    if not call.simulated or server.is_sandbox:
        server_lifecycle.end(store, server)
    if not call.simulated:
        for invoice, part in quote.parts:
            ledger.credit_back(store, invoice, part, call.cause, object_id=server.id)
        if reward := quote.referral_adjustment:
            words, bought = "Referral reward taken back", server.id
            ledger.move(store, call.account, -reward, "referral", words, call.cause, object_id=bought)
    answer = call.answer(
        200,
        server_id=server.id,
        status="cancelled",
        refund=quote.amount,
        balance_after=call.balance_after(-quote.amount),
        refund_quote=quote_view,
        cancel_request_withdrawn=withdrawn,
    )
    if dialects.REFUND(call.dialect) == "object":
        answer.body["refund"] = {"amount": answer.body["refund"], "currency": call.account.currency}
    if not dialects.WITHDRAWN_FLAG(call.dialect):
        del answer.body["cancel_request_withdrawn"]
    return answer


def renew_server(call: Call) -> Answer:
    store, body = call.store, call.body
    server = call.server()
    if server.is_leaving:
        raise Refusal("cancel_pending")
    resumes = store.service.readings["suspended_renewal"] == "allowed"
    server = call.changeable("active", "stopped", *(("suspended",) if resumes else ()))
    call.check_not_early(server.next_due_at)
    unit = "hours" if body.hours is not None else "months"
    if (body.hours is not None) != (server.cycle == "hourly"):
        raise invalid_period(unit)
    if body.hours is not None and body.hours not in dialects.RENEW_HOURS(call.dialect):
        raise invalid_period("hours")
    amount = pricing.renewal(store, server, body.months, body.hours)
    period = server_lifecycle.next_period(store, server, months=body.months, hours=body.hours)
    if period[1] > call.now + MOST_AHEAD_SECONDS:
        raise invalid_period(unit)
    words = f"Renewal of {server.name}"
    invoice = call.purchase("vds_renewal", amount, words, server_id=server.id, period=period)
    renewed = call.draft(server)
    if not call.simulated:
        server_lifecycle.cancel_unpaid_invoices(store, server)
        server_lifecycle.extend(store, server, period[1])
    else:
        renewed.next_due_at = period[1]
    answer = call.answer(
        200,
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


# --- power, reinstallation, password ----------------------------------------------------------------------


def power_server(call: Call) -> Answer:
    """Start and stop change the status between active and stopped, unless a cancellation is pending."""
    server = call.draft(call.changeable("active", "stopped", "pending_cancel"))
    action = call.body.action
    running = action != "stop"
    if running and (server.power != "running" or action == "restart"):
        server.power_since = call.now
    server.power = "running" if running else "stopped"
    if server.status != "pending_cancel":
        server.status = "active" if running else "stopped"
    word = {"start": "starting", "stop": "stopping", "restart": "restarting"}[action]
    return call.answer(
        202, server_id=server.id, action=action, status="accepted", message=f"The server is {word}."
    )


def reinstall_server(call: Call) -> Answer:
    """Takes the provisioning delay; until then the server is busy and has its old image."""
    server = call.changeable("active", "stopped")
    _check_image(call, call.store.tariffs[server.tariff_id], call.body.os)
    ssh_key_ids = _check_ssh_keys(call, call.body.ssh_key_ids)
    password = _password(call)
    row = call.draft(server)
    row.ssh_key_ids = ssh_key_ids
    if row is server:
        server.busy = "reinstall"
        done = call.now + call.store.provisioning_delay
        call.store.schedule(done, "finish_reinstall", server.id, call.body.os)
    shown = None if call.body.password else password
    return call.answer(202, server_id=server.id, status="reinstalling", os=call.body.os, root_password=shown)


def reset_server_password(call: Call) -> Answer:
    server = call.changeable("active", "stopped", "pending_cancel")
    if server.synthetic:
        raise Refusal("service_state", "there is no panel record", details={"status": server.status})
    for limit in call.operation.limits:
        name = f"{call.operation.id}:{call.key.mode}:{call.ids[limit.per]}"
        reset, over = hit_within(call.store, name, limit.calls, limit.seconds)
        if over:
            raise too_many(call.store, "normal", limit.calls, reset)
    return Answer(200, {"server_id": server.id, "password": call.store.password()})


# --- orders -----------------------------------------------------------------------------------------------

UNFINISHED = ("provisioning", "processing", "invoice_created")


def list_orders(call: Call) -> Answer:
    wanted = UNFINISHED if call.query.status is None else (call.query.status,)
    rows = (row for row in call.store.newest(r.OrderRow, call.account.id) if row.status in wanted)
    return call.page(rows)


def get_order(call: Call) -> Answer:
    """An order that finished at once has no row; it is derived from its invoice."""
    id = call.ids["invoice_id"]
    order = call.store.orders.get(id)
    if order is not None and order.account_id == call.account.id:
        return Answer(200, call.view(order))
    invoice = call.own(r.InvoiceRow, id)
    if invoice.type != "vds_purchase" or invoice.server_id is None:
        raise Refusal("not_found")
    return Answer(200, call.view(_finished(invoice, call.store.servers.get(invoice.server_id))))


def _finished(invoice: r.InvoiceRow, server: r.ServerRow | None) -> r.OrderRow:
    updated_at = invoice.paid_at or invoice.created_at
    if server is None:
        # Charged and credited back without a server: the order was cancelled.
        plan = {"tariff_id": None, "name": invoice.description}
        return server_lifecycle.order_of(invoice, plan, "cancelled", updated_at)
    order = server_lifecycle.order_of(invoice, server.columns(), "active", updated_at)
    order.server_id = server.id
    return order


# --- additional addresses, reverse DNS --------------------------------------------------------------------


def list_server_ips(call: Call) -> Answer:
    return call.listing(call.addresses(call.server()))


def _extra(call: Call, server: r.ServerRow) -> int:
    """The number of bought addresses, those being assigned included."""
    return len(pricing.bought_addresses(call.store, server)) + server.addresses_coming


def _price_now(call: Call, server: r.ServerRow) -> tuple[Decimal, int]:
    """The price until the next due date, at least a cent, and the number of started days.

    Whole calendar months cost the monthly price, the rest its share of started days.
    """
    monthly, due = call.store.tariffs[server.tariff_id].extra_ip_price, max(server.next_due_at, call.now)
    months = periods.whole_months(call.now, due)
    rest, following = periods.months_after(call.now, months), periods.months_after(call.now, months + 1)
    part = Decimal(periods.started_days(rest, due)) / periods.started_days(rest, following)
    price = max(pricing.cents(monthly * (months + part)), Decimal("0.01"))
    return price, max(1, periods.started_days(call.now, due))


def get_server_ip_quote(call: Call) -> Answer:
    server = call.server()
    tariff = call.store.tariffs[server.tariff_id]
    now, _ = _price_now(call, server)
    return call.answer(
        200,
        server,
        server_id=server.id,
        price_monthly=tariff.extra_ip_price,
        prorated_now=now,
        extra_ips=_extra(call, server),
        max_extra_ips=tariff.max_extra_ips,
        balance_sufficient=call.account.balance >= now,
    )


def add_server_ip(call: Call) -> Answer:
    server = call.changeable("active", "stopped")
    if _extra(call, server) >= call.store.tariffs[server.tariff_id].max_extra_ips:
        raise Refusal("ip_limit_reached")
    price, days = _price_now(call, server)
    period = (call.now, max(server.next_due_at, call.now + 86400))
    words = f"Address for {server.name}"
    invoice = call.purchase("ip_purchase", price, words, server_id=server.id, period=period)
    if call.changes(server):
        server.addresses_coming += 1
        if "ip" not in call.fault:
            if call.store.ip_delay:
                server.busy = "an address change"
            note = str(invoice.id) if invoice else ""
            call.store.schedule(call.now + call.store.ip_delay, "assign_address", server.id, note)
    status = dialects.ADDRESS_ORDER_STATUS(call.dialect)
    paid = {"charged": format_money(price), "currency": call.account.currency, "days": days}
    return Answer(status, {"success": True, "server_id": server.id, **paid})


def _address(call: Call, server: r.ServerRow) -> r.AddressRow:
    address = call.store.addresses.get(call.ids["ip_id"])
    if address is None or address.server_id != server.id:
        raise Refusal("not_found")
    return address


def delete_server_ip(call: Call) -> Answer:
    server = call.changeable(*r.LIVING)
    address = _address(call, server)
    if not address.bought:
        words = "the primary address cannot be released"
        raise Refusal("conflict", words if address.primary else "the address belongs to the server")
    if call.changes(server):
        if address.invoice_id is not None:
            call.store.invoices[address.invoice_id].refundable = False
        call.store.remove(address)
    return Answer(200, {"status": "deleted", "server_id": server.id, "ip_id": address.id})


def set_server_ip_ptr(call: Call) -> Answer:
    server = call.changeable(*r.LIVING)
    address = _address(call, server)
    if address.version == 6:
        raise Refusal("upstream_rejected", "reverse DNS is not enabled for this address")
    ptr = (call.body.domain or "").rstrip(".") or None
    if call.changes(server):
        address.ptr = ptr
    return Answer(200, {"id": address.id, "ptr": ptr})
