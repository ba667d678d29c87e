"""Health, the description of the API, and who is calling."""

from functools import cache
from typing import Any

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.emulator import dialects, views
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.wire import Answer, stamp


def get_health(call: Call) -> Answer:
    status = "ok" if call.world.service.api_enabled else "disabled"
    return Answer(200, {"status": status, "time": stamp(call.now), "version": "1"})


@cache
def _document(dialect: str) -> dict[str, Any]:
    # Made once and only when asked for: building it needs every schema, and most runs never look at it.
    from pulumi_hosting.api.openapi import document

    described = document()
    if dialects.ADDRESS_READS_EXPENSIVE(dialect):
        for operation in OPERATIONS:
            if operation.live_expensive:
                described["paths"][operation.path][operation.method.lower()]["x-expensive"] = True
    return described


def get_openapi(call: Call) -> Answer:
    return Answer(200, _document(call.dialect), {"Cache-Control": "public, max-age=300"})


def get_me(call: Call) -> Answer:
    return Answer(200, views.me(call.key, call.world))
