"""The in-process skin: an ``httpx`` transport over the same core, without a socket.

A dropped connection is ``httpx.RemoteProtocolError``, a truncated body too; a delay is slept by the function handed in.
"""

import time
from collections.abc import Callable, Iterator

import httpx
from pydantic_core import to_json

from pulumi_hosting.emulator import control
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import format_http_date
from pulumi_hosting.emulator.messages import Request


class _Short(httpx.SyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")


class Transport(httpx.BaseTransport):
    """``httpx.Client(transport=Transport(core), base_url="http://emulator/v1")``."""

    def __init__(self, core: Core, *, client: str = "127.0.0.1", sleep: Callable[[float], None] = time.sleep) -> None:
        self._core = core
        self._client = client
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        if path.startswith("/_control"):
            status, view = control.handle(self._core, request.method, path.removeprefix("/_control"), query, request.read())
            headers = {"Content-Type": "application/json", "Date": format_http_date(self._core.clock.now())}
            return httpx.Response(status, headers=headers, content=to_json(view), request=request)
        response = self._core.handle(
            Request(
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
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.", request=request)
        headers = response.headers_to_send(self._core.clock.now())
        if response.truncate is not None and response.truncate < len(response.content):
            return httpx.Response(response.status, headers=headers, stream=_Short(response.content[: response.truncate]), request=request)
        return httpx.Response(response.status, headers=headers, content=response.content, request=request)
