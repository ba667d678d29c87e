"""Server orders: the list has those in progress, a read works for finished ones too."""

from pulumi_hosting.emulator import serializers, server_lifecycle
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import Answer, Refusal
from pulumi_hosting.emulator.rows import InvoiceRow, OrderRow, ServerRow

UNFINISHED = ("provisioning", "processing", "invoice_created")


def list_orders(call: Call) -> Answer:
    wanted = UNFINISHED if call.query.status is None else (call.query.status,)
    rows = (row for row in call.store.newest(OrderRow, call.account.id) if row.status in wanted)
    return call.page(rows, lambda row: serializers.order(row, call.store, read=True))


def get_order(call: Call) -> Answer:
    """An order that finished at once has no row; it is derived from its invoice."""
    id = call.ids["invoice_id"]
    order = call.store.orders.get(id)
    if order is not None and order.account_id == call.account.id:
        return Answer(200, serializers.order(order, call.store, read=True))
    invoice = call.own(InvoiceRow, id)
    if invoice.type != "vds_purchase" or invoice.server_id is None:
        raise Refusal("not_found")
    order = _finished(invoice, call.store.servers.get(invoice.server_id))
    return Answer(200, serializers.order(order, call.store, read=True))


def _finished(invoice: InvoiceRow, server: ServerRow | None) -> OrderRow:
    updated_at = invoice.paid_at or invoice.created_at
    if server is None:
        # Charged and credited back without a server: the order was cancelled.
        plan = {"tariff_id": None, "name": invoice.description}
        return server_lifecycle.order_of(invoice, plan, "cancelled", updated_at)
    order = server_lifecycle.order_of(invoice, server.columns(), "active", updated_at)
    order.server_id = server.id
    return order
