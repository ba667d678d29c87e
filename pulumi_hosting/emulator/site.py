"""What is served beside the API: the control interface, the console, and the answer to any other path."""

from dataclasses import replace

from pulumi_hosting.emulator.browser_requests import Names
from pulumi_hosting.emulator.console import PATH, console_response
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.messages import Answer, ApiRequest

API = "/v1/"
"""How paths of the API begin."""
CONTROL = "/_control"


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
    return response
