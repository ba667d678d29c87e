"""The emulator in the process of its caller: an ``httpx`` transport without a socket, the fast way to test a
client, synchronous or not.

    core = Core(clock=Clock(manual=True))
    httpx.Client(transport=Transport(core), base_url="http://emulator/v1")
    httpx.AsyncClient(transport=Transport(core), base_url="http://emulator/v1")

A dropped connection or a truncated body raises ``httpx.RemoteProtocolError``.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import httpx

from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.messages import Answer, ApiRequest
from pulumi_hosting.emulator.site import api_response, other_response, request_of


class _TruncatedBody(httpx.SyncByteStream, httpx.AsyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self:
            yield part


class Transport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """``sleep`` waits for delayed responses, ``async_sleep`` in an event loop; ``client`` is the address that
    requests come from."""

    def __init__(
        self,
        core: Core,
        *,
        client: str = "127.0.0.1",
        sleep: Callable[[float], None] = time.sleep,
        async_sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._core = core
        self._client = client
        self._sleep, self._async_sleep = sleep, async_sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked, is_api = self._asked(request, request.read())
        if not is_api:
            return self._answer(request, other_response(self._core, asked))
        response = self._core.handle(asked)
        try:
            if response.delay:
                self._sleep(response.delay)
        finally:
            self._core.finish(response)
        return self._answer(request, response)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        asked, is_api = self._asked(request, await request.aread())
        if is_api:
            return self._answer(request, await api_response(self._core, asked, self._async_sleep))
        return self._answer(request, await asyncio.to_thread(other_response, self._core, asked))

    def _asked(self, request: httpx.Request, body: bytes) -> tuple[ApiRequest, bool]:
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        headers = {name.lower(): value for name, value in request.headers.items()}
        return request_of(request.method, path, query, headers, body, self._client)

    def _answer(self, request: httpx.Request, response: Answer) -> httpx.Response:
        if response.drop:
            raise httpx.RemoteProtocolError(
                "Server disconnected without sending a response.", request=request
            )
        headers = response.headers_to_send(self._core.clock.now())
        if response.truncate is not None and response.truncate < len(response.content):
            stream = _TruncatedBody(response.content[: response.truncate])
            return httpx.Response(response.status, headers=headers, stream=stream, request=request)
        return httpx.Response(response.status, headers=headers, content=response.content, request=request)
