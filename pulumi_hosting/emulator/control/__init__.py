"""The control interface: what staff, billing, the control panel, the payment gateway and the tests do behind
the API's back.

A Starlette application; ``docs/emulator-control.md`` describes every call.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pulumi_hosting.emulator.browser_requests import Names, refusal
from pulumi_hosting.emulator.control import accounts, observations, outside_changes, switches
from pulumi_hosting.emulator.control.endpoint import answer
from pulumi_hosting.emulator.core import Core

ROUTES = (*switches.ROUTES, *accounts.ROUTES, *outside_changes.ROUTES, *observations.ROUTES)

Run = Callable[..., Awaitable[Any]]


async def run_inline(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a call in this thread: in process nothing else waits for the event loop."""
    return function(*arguments)


async def _refuse(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    path = request.url.path.removeprefix("/_control")
    message = (
        f"{request.method} is not supported here" if status == 405 else f"there is no control call {path}"
    )
    return answer(request.app.state.core, {"error": message}, status)


class _NoOtherPages:
    """Answers 403 to requests that a web page from elsewhere may have sent."""

    def __init__(self, app: ASGIApp, core: Core, names: Names) -> None:
        self._app, self._core, self._names = app, core, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        reason = refusal(headers, self._names)
        app = self._app if reason is None else answer(self._core, {"error": reason}, 403)
        await app(scope, receive, send)


def application(core: Core, run: Run = asyncio.to_thread, names: Names = None) -> Starlette:
    """Calls run in a thread: moving the clock waits for deliveries, and their receivers may call this very
    server. ``names``: the host names that requests may be sent to.
    """
    app = Starlette(
        routes=list(ROUTES),
        middleware=[Middleware(_NoOtherPages, core=core, names=names)],
        exception_handlers={HTTPException: _refuse},
    )
    app.router.redirect_slashes = False
    app.state.core, app.state.run = core, run
    return app
