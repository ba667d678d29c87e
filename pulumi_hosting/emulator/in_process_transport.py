"""The emulator in the process of its caller: an ``httpx`` transport without a socket, the fast way to test a
client.

    core = Core(clock=Clock(manual=True))
    httpx.Client(transport=Transport(core), base_url="http://emulator/v1")

A dropped connection or a truncated body raises ``httpx.RemoteProtocolError``.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from starlette.types import Message

from pulumi_hosting.emulator import control
from pulumi_hosting.emulator.console import console_response, is_console
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.messages import Answer, ApiRequest, outside_the_api


class _TruncatedBody(httpx.SyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")


class Transport(httpx.BaseTransport):
    """``sleep`` waits for delayed responses; ``client`` is the address that requests come from."""

    def __init__(
        self, core: Core, *, client: str = "127.0.0.1", sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._core = core
        self._client = client
        self._sleep = sleep
        self._control = control.application(core, run=control.run_inline)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        if path == "/_control" or path.startswith("/_control/"):
            return self._control_call(request, path.removeprefix("/_control") or "/", query)
        if is_console(path):
            return self._answer(request, console_response(request.method, request.headers["Host"], None))
        if not f"{path}/".startswith("/v1/"):
            return self._answer(request, outside_the_api())
        response = self._core.handle(
            ApiRequest(
                method=request.method,
                path=path.removeprefix("/v1"),
                query=query,
                headers={name.lower(): value for name, value in request.headers.items()},
                body=request.read(),
                client=self._client,
            )
        )
        try:
            if response.delay:
                self._sleep(response.delay)
        finally:
            self._core.finish(response)
        if response.drop:
            raise httpx.RemoteProtocolError(
                "Server disconnected without sending a response.", request=request
            )
        return self._answer(request, response)

    def _answer(self, request: httpx.Request, response: Answer) -> httpx.Response:
        headers = response.headers_to_send(self._core.clock.now())
        if response.truncate is not None and response.truncate < len(response.content):
            stream = _TruncatedBody(response.content[: response.truncate])
            return httpx.Response(response.status, headers=headers, stream=stream, request=request)
        return httpx.Response(response.status, headers=headers, content=response.content, request=request)

    def _control_call(self, request: httpx.Request, path: str, query: str) -> httpx.Response:
        """Run the control application to its end. It never waits here, so it needs no event loop."""
        sent: list[Message] = []
        body = request.read()

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        scope: dict[str, Any] = {
            "type": "http",
            "method": request.method,
            "path": path,
            "root_path": "",
            "query_string": query.encode("ascii"),
            "headers": request.headers.raw,
        }
        running = self._control(scope, receive, send)
        try:
            running.send(None)
        except StopIteration:
            start, content = sent
            return httpx.Response(
                start["status"], headers=start["headers"], content=content["body"], request=request
            )
        running.close()
        raise RuntimeError("the control interface waited for an event loop")
