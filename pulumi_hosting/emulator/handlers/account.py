"""Health, the OpenAPI document, the calling key, the account, its balance, movements and API keys."""

import re
from functools import cache

from pulumi_hosting.api import operations
from pulumi_hosting.emulator import dialects, events, pricing, serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import View, format_timestamp
from pulumi_hosting.emulator.messages import Answer, Refusal
from pulumi_hosting.emulator.rows import KeyRow, MovementRow


def get_health(call: Call) -> Answer:
    status = "ok" if call.store.service.api_enabled else "disabled"
    return Answer(200, {"status": status, "time": format_timestamp(call.now), "version": "1"})


@cache
def _document(dialect: str) -> View:
    # Built once, on demand: it needs every schema, and most runs never read it.
    from pulumi_hosting.api.openapi import document

    described = document()
    if dialects.ADDRESS_READS_EXPENSIVE(dialect):
        for operation in operations.OPERATIONS:
            if operation.live_expensive:
                described["paths"][operation.path][operation.method.lower()]["x-expensive"] = True
    bodies = {
        name: schema.get("properties", {}) for name, schema in described["components"]["schemas"].items()
    }
    for model, hours in (("ServerCreate", dialects.ORDER_HOURS), ("RenewRequest", dialects.RENEW_HOURS)):
        allowed = hours(dialect)
        bodies[model]["hours"] |= {"minimum": allowed[0], "maximum": allowed[-1]}
    count = dialects.NAMESERVER_COUNT(dialect)
    for model in ("DomainRegister", "NameserversUpdate", "DomainTransfer"):
        bodies[model]["nameservers"] |= {"minItems": count[0], "maxItems": count[-1]}
    if not dialects.AUTO_RENEW_AT_REGISTRATION(dialect):
        del bodies["DomainRegister"]["auto_renew"]
    return described


def get_openapi(call: Call) -> Answer:
    headers = {"Cache-Control": "public, max-age=300", "Vary": "Accept-Encoding"}
    accepted = call.request.headers.get("accept-encoding", "")
    packed = re.search(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", accepted) is not None
    return Answer(200, _document(call.dialect), headers, packed=packed)


def get_me(call: Call) -> Answer:
    return Answer(200, serializers.me(call.key, call.store))


def get_account(call: Call) -> Answer:
    return Answer(200, call.view(call.account))


def get_balance(call: Call) -> Answer:
    return Answer(200, pricing.balance_view(call.store, call.account))


def list_transactions(call: Call) -> Answer:
    direction = call.query.direction
    since, until = (moment and moment.timestamp() for moment in (call.query.since, call.query.until))
    rows = (
        row
        for row in call.store.newest(MovementRow, call.account.id)
        if (direction is None or row.direction == direction)
        and (since is None or row.at >= since)
        # `until` is inclusive, as `since` is; the document does not say.
        and (until is None or row.at <= until)
    )
    return call.page(rows)


def list_api_keys(call: Call) -> Answer:
    return call.listing(call.store.of(KeyRow, call.account.id).values(), next_cursor=None)


def get_api_key(call: Call) -> Answer:
    return Answer(200, call.view(call.own(KeyRow, call.ids["key_id"])))


def revoke_api_key(call: Call) -> Answer:
    """Only the calling key can be revoked; for a key that is revoked already the answer is ``conflict``."""
    key = call.own(KeyRow, call.ids["key_id"])
    if key.revoked_at is not None:
        raise Refusal("conflict", "the key is already revoked")
    if key.id != call.key.id:
        raise Refusal("insufficient_scope", details={"required": ["self"]})
    events.revoke(call.store, key, "revoked via API")
    return Answer(200, {"status": "revoked", "key": call.view(key)})
