"""Health, the OpenAPI document, and the calling key."""

from functools import cache

from pulumi_hosting.api import operations
from pulumi_hosting.emulator import dialects, serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import View, format_timestamp
from pulumi_hosting.emulator.messages import Answer


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
    return described


def get_openapi(call: Call) -> Answer:
    return Answer(200, _document(call.dialect), {"Cache-Control": "public, max-age=300"})


def get_me(call: Call) -> Answer:
    return Answer(200, serializers.me(call.key, call.store))
