"""What arrived, what was charged, what exists: reads for tests and account checks, secrets masked."""

from pydantic import BaseModel, Field

from pulumi_hosting.emulator import log_redaction, serializers
from pulumi_hosting.emulator.control.endpoint import Route
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import View, format_money, format_timestamp
from pulumi_hosting.emulator.rows import AddressRow, DomainRow, Row, ServerRow
from pulumi_hosting.emulator.store import Store

APART_FROM_LEDGER = ("seq", "gateway", "description")
HIDDEN_KINDS = ("stored", "tasks", "faults", "movements", "requests")


class RequestsQuery(BaseModel):
    """Unknown parameters are ignored."""

    since: int = Field(0, ge=0)
    last: int | None = Field(None, ge=1)


def list_requests(core: Core, query: RequestsQuery) -> object:
    """What arrived under /v1, oldest first; ``last``: at most so many, the newest."""
    rows = [row for row in core.store.requests.values() if row.id > query.since]
    return [log_redaction.logged_request(row) for row in (rows[-query.last :] if query.last else rows)]


def list_movements(core: Core) -> object:
    """Every movement of money."""
    return [
        {name: value for name, value in row.columns().items() if name not in APART_FROM_LEDGER}
        | {"at": format_timestamp(row.at), "amount": format_money(row.amount)}
        for row in core.store.movements.values()
    ]


def list_objects(core: Core) -> object:
    """Everything that exists, by kind, with what an account check needs. Deleted servers are not listed."""
    return {
        kind: [
            {"kind": kind, **log_redaction.masked(row.columns()), **_api_view(row, core.store)}
            for row in table.values()
            if not (isinstance(row, ServerRow) and row.is_gone)
        ]
        for kind, table in core.store.tables.items()
        if kind not in HIDDEN_KINDS
    }


def _api_view(row: Row, store: Store) -> View:
    """What an account check needs besides the columns: cost, currency, account."""
    if isinstance(row, ServerRow):
        view = serializers.server(row, store)
        cost = {name: view["billing"][name] for name in ("price_monthly", "currency")}
        return {**view, **cost, "is_sandbox": row.is_sandbox}
    if isinstance(row, AddressRow):
        server = store.servers[row.server_id]
        return {"account_id": server.account_id, "currency": store.accounts[server.account_id].currency}
    if isinstance(row, DomainRow):
        view = serializers.domain(row, store)
        return {"price_renew": view["price_renew"], "currency": view["currency"]}
    return {}


ROUTES = (
    Route("GET", "/requests", list_requests),
    Route("GET", "/ledger", list_movements),
    Route("GET", "/objects", list_objects),
)
