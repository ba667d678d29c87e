"""The control interface: what staff, billing, the control panel, the payment gateway and the tests do behind
the API's back. ``docs/emulator-control.md`` describes every call.
"""

from pulumi_hosting.emulator.browser_requests import Names, refusal
from pulumi_hosting.emulator.control import accounts, made_by_hand, outside_changes, switches
from pulumi_hosting.emulator.control.endpoint import Route
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.messages import Answer, ApiRequest, Refusal
from pulumi_hosting.emulator.middleware import Router
from pulumi_hosting.emulator.validation import path_ids

ROUTES: tuple[Route, ...] = (
    *switches.ROUTES,
    *accounts.ROUTES,
    *made_by_hand.ROUTES,
    *outside_changes.ROUTES,
)

_route = Router({f"{route.method} {route.path}": route for route in ROUTES})


def control_response(core: Core, request: ApiRequest, names: Names) -> Answer:
    """The answer to a request whose path is below ``/_control``. Requests that a web page from elsewhere may
    have sent get a 403. ``names``: the host names that requests may be sent to.

    It may take long: moving the clock waits for deliveries, and their receivers may call this very server.
    """
    if (reason := refusal(request.headers, names)) is not None:
        return Answer(403, {"error": reason})
    try:
        route, ids = _route("GET" if request.method == "HEAD" else request.method, request.path)
        return route.answer(core, path_ids(ids), request)
    except Refusal as error:
        words = {405: f"{request.method} is not supported here"}
        message = words.get(error.status, f"there is no control call {request.path}")
        return Answer(error.status, {"error": message})
