"""The client for asyncio: what a :class:`~pulumi_hosting.client.client.Client` does, awaited.

    async with AsyncClient() as client:                   # HOSTING_API_KEY, HOSTING_BASE_URL
        print((await client.balance.get()).balance)
        async for server in client.servers.list(status="active"):
            print(server.name, server.ip)

What is sent, how an answer is read, and whether it is sent again, a ``Client`` decides, which itself sends
nothing here. Only the loop over the attempts is another, and what it waits for.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self
from uuid import uuid4

from pulumi_hosting.api.models import Me
from pulumi_hosting.api.models.body import RequestModel
from pulumi_hosting.api.operations import Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import absence
from pulumi_hosting.client.async_services import AsyncServices
from pulumi_hosting.client.client import Client, row_of
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.client.polling import Poller
from pulumi_hosting.client.requests import HttpRequest
from pulumi_hosting.client.results import AsyncPages, Items, RawResponse
from pulumi_hosting.client.retry import Attempts, Rng
from pulumi_hosting.client.service_base import AsyncService
from pulumi_hosting.client.settings import check_http_client
from pulumi_hosting.client.transport import AsyncHttpTransport

if TYPE_CHECKING:
    import httpx


class AsyncClient(AsyncServices):
    """A client for one API key, for the tasks of an event loop of asyncio. Its methods are those of a
    ``Client``, awaited; a list with pages is walked with ``async for``, or awaited as a whole.

    Options are those of a ``Client``; ``transport`` is an ``httpx.AsyncBaseTransport``, ``http_client`` an
    ``httpx.AsyncClient``, and ``sleep`` is awaited. Waits for the rate limit and between attempts occupy no
    thread. A task that is cancelled while it waits gives its place back; if its request was sent already, its
    outcome is known to the service only.

    Raises ``ConfigurationError`` for a key, address or option that cannot be used. Errors of calls:
    :mod:`pulumi_hosting.client.exceptions`.
    """

    def __init__(
        self,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        *,
        timeout: float = 30.0,
        deadline: float = 120.0,
        rate_limit_timeout: float = 600.0,
        store: str | Secret | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        read_only: bool = False,
        user_agent: str | None = None,
        transport: "httpx.AsyncBaseTransport | None" = None,
        http_client: "httpx.AsyncClient | None" = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: Rng | None = None,
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        self._core = core = Client(
            api_key,
            base_url,
            timeout=timeout,
            deadline=deadline,
            rate_limit_timeout=rate_limit_timeout,
            store=store,
            ca_file=ca_file,
            read_only=read_only,
            user_agent=user_agent,
            clock=clock,
            wall=wall,
            rng=rng,
            new_id=new_id,
        )
        if http_client is not None:
            check_http_client(http_client, alone=transport is None and ca_file is None, is_async=True)
        self.transport = AsyncHttpTransport(core._settings, clock, transport, http_client)
        """Sends each attempt. May be wrapped, to watch the requests of this client."""
        self._sleep, self._asking = sleep, asyncio.Lock()
        from pulumi_hosting.client.rate_limit.async_limiter import AsyncRateLimiter  # as in Client

        self.rate_limiter = AsyncRateLimiter(core.rate_limiter, sleep)
        """Holds requests up until the rate limit has room; ``on_wait`` may be set, as in ``Client``."""
        super().__init__(self)

    async def call(
        self,
        operation: Operation | str,
        *ids: int | str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | RequestModel | None = None,
        idempotency_key: str | None = None,
        cursor: str | None = None,
        prepared: Callable[[str | None], HttpRequest] | None = None,
    ) -> Any:
        """Calls an operation, given as its row or its id: see ``Client.call``."""
        core = self._core
        row = row_of(operation)
        key = core._admitted(row, idempotency_key)
        request = (
            prepared(key)
            if prepared
            else core._prepare(row, ids, query or {}, body or {}, key=key, cursor=cursor)
        )
        if core._is_view:
            request = core._optioned(request)
        attempts = Attempts(row, key, began=core.monotonic())
        place = self.rate_limiter.place(request.operation, request.query, core.words)
        failure: HostingError | None = None
        while True:
            await place.turn_comes(failure)
            try:
                stop_at = core._attempted(attempts, place)
                try:
                    answer = await self.transport.send(request, attempts.sent_id, stop_at)
                    return core._answered(request, answer, place, attempts)
                except HostingError as error:
                    failure = error
            finally:
                place.lost()
            judged = core._judged(request, failure, await self._owner(request.operation, failure))
            failure, after = core._decided(place, attempts, judged, request)
            if after:
                await self._sleep(after)

    async def _owner(self, operation: Operation, failure: HostingError) -> Callable[[], Me]:
        """What tells the owner of the key, who is asked for now if that decides what the failure is."""
        owner, reason = self._core.key_owner, failure
        if absence.depends_on_owner(failure, operation):
            async with self._asking:
                try:
                    _ = owner.is_known or await self.me()
                except HostingError as error:
                    reason = error

        def ask() -> Me:
            raise reason

        return ask

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        expensive: bool = False,
    ) -> RawResponse:
        """Calls an operation that is newer than this version, by its method and path: see
        ``Client.request``."""
        row, prepared = self._core._raw(method, path, query, body, expensive, idempotency_key is not None)
        found: RawResponse = await self.call(row, idempotency_key=idempotency_key, prepared=prepared)
        return found

    def pages(
        self,
        operation: Operation | str,
        *ids: int | str,
        query: Mapping[str, Any] | None = None,
        max_items: int | None = None,
    ) -> AsyncPages[Any]:
        """A list with cursors. Sends nothing yet, but checks the filters."""
        row, filters, start = self._core._filters(operation, ids, query)
        return AsyncPages(
            row.id, lambda cursor: self.call(row, *ids, query=filters, cursor=cursor), start, max_items
        )

    async def items(
        self, operation: Operation | str, *ids: int | str, query: Mapping[str, Any] | None = None
    ) -> Items[Any]:
        """A short list, whole."""
        name = operation if isinstance(operation, str) else operation.id
        walk: AsyncPages[Any] = AsyncPages(
            name, lambda cursor: self.call(operation, *ids, query=query, cursor=cursor)
        )
        pages = [page async for page in walk.pages()]
        return Items([item for page in pages for item in page.data], pages[-1].meta)

    def poller(self, seconds: float, longest: float = 10.0) -> Poller:
        """As ``Client.poller``; its pauses are awaited with :meth:`sleep`."""
        return self._core.poller(seconds, longest)

    async def sleep(self, seconds: float) -> None:
        """Pause as the client does between attempts."""
        await self._sleep(seconds)

    async def service_now(self) -> datetime:
        """The service's time in UTC, to the second: see ``Client.service_now``."""
        return self._core.known_time or (await self.health()).time

    def with_options(
        self,
        *,
        timeout: float | None = None,
        deadline: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        """This client with other options for some calls: see ``Client.with_options``."""
        view = object.__new__(type(self))
        vars(view).update(
            {name: value for name, value in vars(self).items() if not isinstance(value, AsyncService)}
        )
        view._core = self._core.with_options(timeout=timeout, deadline=deadline, headers=headers)
        AsyncServices.__init__(view, view)
        return view

    @property
    def is_test_key(self) -> bool:
        """Whether the key is a test key (``vk_test_…``)."""
        return self._core.is_test_key

    @property
    def base_url(self) -> str:
        """Where requests go."""
        return self._core.base_url

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._core.read_only

    async def close(self) -> None:
        """Closes the connections. Later calls raise ``ConfigurationError``."""
        self._core._closed.set()
        await self.transport.close()
        await self.rate_limiter.finish()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._core).replace("<Client", "<AsyncClient", 1)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._core.__reduce_ex__(protocol)
