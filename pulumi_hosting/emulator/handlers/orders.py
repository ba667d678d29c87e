"""Server orders: the list shows those still being created, a single read answers ever after."""

from pulumi_hosting.emulator import views
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.wire import Answer, Refusal
from pulumi_hosting.emulator.world import Invoice, Order, Server

UNFINISHED = ("provisioning", "processing", "invoice_created")


def list_orders(call: Call) -> Answer:
    wanted = UNFINISHED if call.query.status is None else (call.query.status,)
    rows = (row for row in call.world.newest(Order, call.account.id) if row.status in wanted)
    return call.page(rows, lambda row: views.order(row, call.world, read=True))


def get_order(call: Call) -> Answer:
    """An order that finished at once has no row of its own: its invoice carries the state."""
    id = call.ids["invoice_id"]
    order = call.world.orders.get(id)
    if order is not None and order.account_id == call.account.id:
        return Answer(200, views.order(order, call.world, read=True))
    invoice = call.own(Invoice, id)
    if invoice.type != "vds_purchase" or invoice.server_id is None:
        raise Refusal("not_found")
    return Answer(200, views.order(_finished(invoice, call.world.servers.get(invoice.server_id)), call.world, read=True))


def _finished(invoice: Invoice, server: Server | None) -> Order:
    # A charge credited back before there was a server is an order that was called off.
    return Order(
        id=invoice.id,
        seq=invoice.seq,
        account_id=invoice.account_id,
        status="active" if server else "cancelled",
        outcome="active",
        tariff_id=server.tariff_id if server else None,
        server_name=server.name if server else invoice.description,
        amount=invoice.amount,
        created_at=invoice.created_at,
        updated_at=invoice.paid_at or invoice.created_at,
        plan={},
        server_id=server.id if server else None,
    )
