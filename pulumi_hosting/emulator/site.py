"""What is served: the API, the control interface, the console, and the answer to any other path."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from pulumi_hosting.emulator.browser_requests import Names
from pulumi_hosting.emulator.console import PATH, console_response
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.messages import Answer, ApiRequest
from pulumi_hosting.emulator.webhook_delivery import Outbound

API = "/v1/"
"""How paths of the API begin."""
CONTROL = "/_control"


def request_of(
    method: str, raw_path: str, query: str, headers: dict[str, str], body: bytes, client: str
) -> tuple[ApiRequest, bool]:
    """The request, and whether it is one of the API. ``raw_path`` is not decoded: an escaped slash is part of
    a segment, not a separator. ``headers`` are in lower case.
    """
    is_api = raw_path.startswith(API)
    path = raw_path.removeprefix("/v1") if is_api else raw_path
    return ApiRequest(method, path, query, headers, body, client), is_api


async def api_response(
    core: Core, request: ApiRequest, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> Answer:
    """The answer of the API in an event loop, after its delay."""
    step = core.begin(request)
    if isinstance(step, Outbound):
        # The only calls that use the network before they are answered.
        step = step.then(await asyncio.to_thread(core.try_send, step.attempt))
    try:
        if step.delay:
            await sleep(step.delay)
    finally:
        core.finish(step)
    return step


def other_response(core: Core, request: ApiRequest, names: Names = None) -> Answer:
    """The answer to a request whose path, given in full, does not begin with :data:`API`. ``names``: the host
    names that requests may be sent to; None: any.
    """
    if request.path in (PATH, f"{PATH}/"):
        return console_response(request.method, request.headers.get("host", ""), names)
    if f"{request.path}/".startswith(f"{CONTROL}/"):
        from pulumi_hosting.emulator.control import control_response  # would be a tenth of the start

        path = request.path.removeprefix(CONTROL) or "/"
        response = control_response(core, replace(request, path=path), names)
    else:
        error = {"code": "not_found", "message": "the API is under /v1", "request_id": "none"}
        response = Answer(404, {"error": error})
        response.encode()
        if request.path != "/favicon.ico":  # which browsers ask for
            core.log_stray(request, response)
    response.encode()
    response.seal()
    return response
