"""The emulator in the process of its caller: an ``httpx`` transport without a socket, the fast way to test a
client.

    core = Core(clock=Clock(manual=True))
    httpx.Client(transport=Transport(core), base_url="http://emulator/v1")

A dropped connection or a truncated body raises ``httpx.RemoteProtocolError``.
"""

import time
from collections.abc import Callable, Iterator

import httpx

from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.messages import Answer, ApiRequest
from pulumi_hosting.emulator.site import API, other_response


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

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        is_api = path.startswith(API)
        asked = ApiRequest(
            method=request.method,
            path=path.removeprefix("/v1") if is_api else path,
            query=query,
            headers={name.lower(): value for name, value in request.headers.items()},
            body=request.read(),
            client=self._client,
        )
        if not is_api:
            return self._answer(request, other_response(self._core, asked))
        response = self._core.handle(asked)
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
