"""Additional addresses of a server, and reverse DNS."""

from decimal import Decimal

from pulumi_hosting.api import models as m
from pulumi_hosting.emulator import dialects, periods, pricing
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import format_money
from pulumi_hosting.emulator.messages import Answer, Refusal
from pulumi_hosting.emulator.rows import LIVING, AddressRow, ServerRow


def list_server_ips(call: Call) -> Answer:
    return call.listing(call.addresses(call.server()))


def _extra(call: Call, server: ServerRow) -> int:
    """The number of bought addresses, those being assigned included."""
    return len(pricing.bought_addresses(call.store, server)) + server.addresses_coming


def _price_now(call: Call, server: ServerRow) -> tuple[Decimal, int]:
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
        m.IpQuote,
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


def _address(call: Call, server: ServerRow) -> AddressRow:
    address = call.store.addresses.get(call.ids["ip_id"])
    if address is None or address.server_id != server.id:
        raise Refusal("not_found")
    return address


def delete_server_ip(call: Call) -> Answer:
    server = call.changeable(*LIVING)
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
    server = call.changeable(*LIVING)
    address = _address(call, server)
    if address.version == 6:
        raise Refusal("upstream_rejected", "reverse DNS is not enabled for this address")
    ptr = (call.body.domain or "").rstrip(".") or None
    if call.changes(server):
        address.ptr = ptr
    return Answer(200, {"id": address.id, "ptr": ptr})
