"""Server orders: the list has those in progress, a read works for finished ones too."""

from pulumi_hosting.emulator import serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import ApiError, Response
from pulumi_hosting.emulator.rows import Invoice, Order, Server

UNFINISHED = ("provisioning", "processing", "invoice_created")


def list_orders(call: Call) -> Response:
    wanted = UNFINISHED if call.query.status is None else (call.query.status,)
    rows = (row for row in call.store.newest(Order, call.account.id) if row.status in wanted)
    return call.page(rows, lambda row: serializers.order(row, call.store, read=True))


def get_order(call: Call) -> Response:
    """An order that finished at once has no row; it is derived from its invoice."""
    id = call.ids["invoice_id"]
    order = call.store.orders.get(id)
    if order is not None and order.account_id == call.account.id:
        return Response(200, serializers.order(order, call.store, read=True))
    invoice = call.own(Invoice, id)
    if invoice.type != "vds_purchase" or invoice.server_id is None:
        raise ApiError("not_found")
    return Response(
        200,
        serializers.order(
            _finished(invoice, call.store.servers.get(invoice.server_id)), call.store, read=True
        ),
    )


def _finished(invoice: Invoice, server: Server | None) -> Order:
    # Charged and credited back without a server: the order was cancelled.
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
