"""The client of the API: one method for every operation of the table, grouped as the API is.

    with Client() as client:                              # HOSTING_API_KEY, HOSTING_BASE_URL
        print(client.balance.get().balance)
        for server in client.servers.list(status="active"):
            print(server.name, server.ip)

Every method follows its row of :mod:`~pulumi_hosting.api.operations`, which defines the models of query, body
and response, and whether a call may be retried. A call checks its arguments, prepares the bytes once, sends
them until there is a response or the deadline is near, and reads the response.
"""

import copy
import logging
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self
from uuid import uuid4

from pulumi_hosting.api import operations
from pulumi_hosting.api.error_codes import KEY_REFUSED
from pulumi_hosting.api.metadata import Meta
from pulumi_hosting.api.models.body import RequestModel
from pulumi_hosting.api.operations import Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import absence, debug_log, responses
from pulumi_hosting.client.exceptions import (
    ApiError,
    ConfigurationError,
    HostingError,
    InvalidInput,
    WriteRefused,
)
from pulumi_hosting.client.key_owner import KeyOwner
from pulumi_hosting.client.polling import Poller
from pulumi_hosting.client.redis_store import store_at
from pulumi_hosting.client.requests import HttpRequest, checked_key, prepare
from pulumi_hosting.client.results import Items, Pages, RawResponse, given
from pulumi_hosting.client.retry import Attempts, Rng, Stop, decide, parse_http_date
from pulumi_hosting.client.service_base import Service
from pulumi_hosting.client.services import Services
from pulumi_hosting.client.settings import check_http_client, checked_headers, settings, with_limits
from pulumi_hosting.client.shared_store import LeaseLost, SharedStore, time_to_write
from pulumi_hosting.client.transport import HttpTransport
from pulumi_hosting.client.words import PYTHON

if TYPE_CHECKING:
    import httpx

    from pulumi_hosting.client.rate_limit.limiter import Place

log = logging.getLogger("pulumi_hosting")

WALK_LIMIT = 100
# How long the Date of a response may be extended by the local monotonic clock before the service is asked
# again.
SERVICE_TIME_SECONDS = 60.0
_SHORTEST_WRITE = 30.0  # seconds that a write under a lease has, if ``timeout`` allows as many


class Client(Services):
    """A client for one API key. Cheap to make (nothing is opened before the first call), safe to share
    between threads.

    - ``api_key``: ``vk_live_…`` or ``vk_test_…``, text or ``Secret``; default ``HOSTING_API_KEY``.
    - ``base_url``: https, ending in ``/v1``; http only to this machine; default ``HOSTING_BASE_URL``.
    - ``timeout``: seconds that one attempt may take, from connecting to the last byte; ``deadline``: seconds
      for a call with all its attempts and the pauses between them. Both hold however the service behaves.
      ``deadline`` does not count what a call waits for the rate limit.
    - ``rate_limit_timeout``: seconds that a call may wait for the rate limit of its key, which all processes
      of this user on this machine share.
    - ``store``: ``redis://…`` or ``rediss://…``: the store in which machines share rate limit, locks and
      notes; default ``HOSTING_STORE``, without it the files of this machine. It needs the extra ``redis``.
    - ``ca_file``: certificates to trust instead of the usual ones, PEM.
    - ``read_only``: refuse everything that is not a GET with ``WriteRefused``, before anything is sent.
    - ``user_agent``: words added to the client's identification.
    - ``transport``: an httpx transport to send through instead of the network.
    - ``http_client``: an ``httpx.Client`` of your own to send through: its proxies, certificates,
      limits, headers and event hooks are used; its timeouts, cookies, parameters, authentication and base URL
      are not. It stays open when this client is closed. Not together with ``transport`` or ``ca_file``.
    - ``clock``, ``wall``, ``sleep``, ``rng``, ``new_id``: time, randomness and ids.

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
        transport: "httpx.BaseTransport | None" = None,
        http_client: "httpx.Client | None" = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        rng: Rng | None = None,
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        debug_log.follow_environment()
        self._settings = settings(
            api_key,
            base_url,
            timeout=timeout,
            deadline=deadline,
            rate_limit_timeout=rate_limit_timeout,
            store=store,
            ca_file=ca_file,
            user_agent=user_agent,
        )
        if http_client is not None:
            check_http_client(http_client, alone=transport is None and ca_file is None)
        self._read_only, self._closed = read_only, Event()
        self._headers = dict[str, str]()  # of with_options
        self.transport = HttpTransport(self._settings, clock, transport, http_client)
        """Sends each attempt. May be wrapped, to watch the requests of this client."""
        self.observer: Callable[[HttpRequest, object], None] | None = None
        """Called after each attempt of a write, and each read of one object, with the request and its result
        or its error."""
        self._clock, self._wall, self._sleep = clock, wall, sleep
        self.store: SharedStore = store_at(self._settings.store)
        """What this client shares with other processes: rate limit, locks and notes."""
        self._rng: Rng = rng or random.Random()  # noqa: S311  # jitter, not a secret
        # Who makes no client need not wait for it.
        from pulumi_hosting.client.rate_limit.limiter import RateLimiter

        self.rate_limiter = RateLimiter(
            self._settings.api_key,
            self._settings.base_url,
            timeout=self._settings.rate_limit_timeout,
            clock=clock,
            sleep=sleep,
            wall=wall,
            rng=self._rng,
            on_wait=log.warning,
            values=self.store,
        )
        """Holds requests up until the rate limit has room. A long wait is a warning of the logger
        ``pulumi_hosting``; ``on_wait`` may be set, to tell the user in another way."""
        self.keeps_refusal = False
        """Whether a run ends with its key: once the service has refused the key, whatever it was asked, later
        calls raise that error again and send nothing. For processes that live as long as one run."""
        self.refusal: ApiError | None = None
        """With ``keeps_refusal``: the error by which the service refused the key."""
        self.words = PYTHON
        """In whose words errors say what to do next. Each frontend sets its own."""
        self._new_id = new_id
        # When, by the monotonic clock, the latest response came, and its Date header as sent.
        self._latest_date: tuple[float, str] | None = None
        self.key_owner = KeyOwner(lambda: self.me())
        """Whose key it is. What shows that the API answers at the base URL, so that a 404 is believed."""
        self._sender: dict[str, Any] = {"base_url": self.base_url, "api_key": self._settings.api_key}
        self._prepare: Callable[..., HttpRequest] = partial(prepare, **self._sender)
        super().__init__(self)

    @property
    def is_test_key(self) -> bool:
        """Whether the key is a test key (``vk_test_…``): reads are real, writes are simulated. (API document,
        "Sandbox")
        """
        return self._settings.is_test_key

    def service_now(self) -> datetime:
        """The service's time in UTC, to the second: compare ages of objects with this, never with the local
        clock, which may be wrong.

        It is the ``Date`` of this client's latest response plus the time since, if that response is at most
        60 seconds old; else the ``time`` of ``GET /health``. Raises what ``health()`` raises.
        """
        return self.known_time or self.health().time

    @property
    def known_time(self) -> datetime | None:
        """What ``service_now()`` says without a request; None if no response of the last 60 seconds said
        it."""
        if self._latest_date is not None:
            received, text = self._latest_date
            age = self._clock() - received
            moment = parse_http_date(text)
            if moment is not None and 0 <= age <= SERVICE_TIME_SECONDS:
                return moment + timedelta(seconds=age)
        return None

    # --- what every method calls

    def call(
        self,
        operation: Operation | str,
        *ids: int | str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | RequestModel | None = None,
        idempotency_key: str | None = None,
        cursor: str | None = None,
        prepared: Callable[[str | None], HttpRequest] | None = None,
    ) -> Any:
        """Calls an operation, given as its row or its id: ``ids`` fill its path in order, ``query`` and
        ``body`` (or its model) hold its fields; one that is ``UNSET`` is not sent. A list comes as one page,
        the one at ``cursor``. ``prepared`` makes the request for a key in another way (:meth:`request`).
        Raises ``InvalidInput`` and ``WriteRefused`` before anything is sent, then the error of the response.
        """
        row = row_of(operation)
        key = self._admitted(row, idempotency_key)
        request_of = prepared or partial(self._prepare, row, ids, query or {}, body or {}, cursor=cursor)
        request, attempts = request_of(key), Attempts(row, key, began=self._clock())
        place = self.rate_limiter.place(request.operation, request.query, self.words)
        failure: HostingError | None = None
        while True:
            place.wait(failure)
            stop_at = self._attempted(attempts, place)
            try:
                answer = self.transport.send(request, attempts.sent_id, stop_at)
                place.answered(answer.status, answer.headers)
                meta = self._noted(request, answer.status, answer.headers, attempts)
                found = responses.read(request, answer, meta, self._wall())
                if observer := self._observer(request.operation):
                    observer(request, found)
                return found
            except HostingError as error:
                failure = error
            finally:
                place.lost()
            failure, after = self._decided(place, attempts, self._judged(request, failure), request)
            if after:
                self._sleep(after)

    def _optioned(self, request: HttpRequest) -> HttpRequest:
        """With the options of this view. The headers get no name: they hold the key, and tracebacks may show
        variables."""
        return replace(request, headers={**self._headers, **request.headers}, timeout=self._settings.timeout)

    def _attempted(self, attempts: Attempts, place: "Place") -> float:
        """One more attempt begins: when to give it up. A write ends before a lease does under which it is
        sent."""
        attempts.begin(self._new_id(), self._clock())
        stop_at = attempts.began + place.waited + self._settings.retry_policy.deadline
        if attempts.operation.is_write:
            try:
                left = time_to_write(min(self._settings.timeout, _SHORTEST_WRITE))
            except LeaseLost:
                place.leave()
                raise
            stop_at = min(stop_at, self._clock() + left)
        return stop_at

    def _admitted(self, row: Operation, idempotency_key: str | None) -> str | None:
        """The key with which the operation is sent. Raises if it must not be sent at all."""
        if self._closed.is_set():
            raise ConfigurationError("this client is closed; nothing was sent. Next: make a new Client")
        if self._read_only and row.is_write:
            raise WriteRefused(f"this client only reads, and {row.id} would change something")
        if self.refusal is not None:
            raise copy.copy(self.refusal)  # an error of its own for each caller: they are raised in threads
        return checked_key(row, idempotency_key, self._new_id)

    def _noted(
        self, request: HttpRequest, status: int, headers: Mapping[str, str], attempts: Attempts
    ) -> Meta:
        """What the headers of an answer say, for this call and for later ones."""
        self._latest_date = (self._clock(), headers.get("Date", ""))
        meta = responses.metadata(request, status, headers, attempts)
        self._log(request, str(status), attempts, meta.request_id)
        return meta

    def _observer(self, row: Operation) -> Callable[[HttpRequest, object], None] | None:
        """Who is told what came of a request."""
        if row.id == absence.ME:
            return self.key_owner.observe
        return self.observer if row.is_write or row.path.endswith("}") else None

    def _judged(self, request: HttpRequest, failure: HostingError) -> HostingError:
        """What a failure is, if it is a 404. Asks for the owner of the key if that decides."""
        if not isinstance(failure, ApiError) or failure.status != 404:
            return failure
        row, owner, reason = request.operation, self.key_owner, None
        if absence.depends_on_owner(failure, row):
            try:
                self.key_owner.get()
            except HostingError as error:
                reason = error
        return absence.judged(failure, row, self.base_url, is_known=owner.is_known, reason=reason)

    def _decided(
        self, place: "Place", attempts: Attempts, failure: HostingError, request: HttpRequest
    ) -> tuple[HostingError, float]:
        """The failure, if the request may be sent again, and after how many seconds; else it is raised. Not
        in the except block: the context of an error must not grow with the attempts."""
        if observer := self._observer(request.operation):
            observer(request, failure)
        failure = attempts.failed(failure, attempts.sent_id)
        failure._words, failure._key_source = self.words, self._settings.key_source
        failure.subject = failure.subject or request.subject
        if place.is_refused(request.operation):
            self._log(request, "no room in the rate limit", attempts, attempts.sent_id)
            return failure, 0.0
        decision = decide(
            request.operation,
            failure,
            attempt=attempts.count - place.refusals,
            elapsed=self._clock() - attempts.began - place.waited,
            retry_policy=self._settings.retry_policy,
            rng=self._rng,
        )
        self._log(request, f"{type(failure).__name__}, {decision}", attempts, attempts.sent_id)
        if isinstance(decision, Stop):
            if self.keeps_refusal and isinstance(failure, ApiError) and failure.code in KEY_REFUSED:
                # What is known of the outcome of this call is not that of later ones, which send nothing.
                self.refusal = copy.copy(failure)
                self.refusal.sent_as()
            raise failure
        return failure, decision.after

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        expensive: bool = False,
    ) -> RawResponse:
        """Calls an operation that is newer than this version, by its method and path. For all others the
        methods of the services are better: they check arguments and have types.

            found = client.request("GET", "/snapshots", query={"limit": 10})
            for snapshot in found.data["data"]:
                print(snapshot["id"])

        A GET is retried like all reads. A write is sent once, unless it has an ``idempotency_key``: give one
        only if the API document says that the operation takes one. What the table of this version has is
        retried, counted and keyed as it says there. Rate limit, deadline, ``read_only`` and redaction are
        those of every call.

        Raises ``InvalidInput`` and ``WriteRefused`` before anything is sent, then the error of the response;
        ``InvalidResponse`` for an answer that is neither JSON nor a PDF.

        :param method: ``GET``, ``POST``, ``PUT``, ``PATCH`` or ``DELETE``.
        :param path: Path below the base URL, such as ``/servers/5``; special characters percent-encoded.
        :param query: Parameters: texts, whole numbers, true and false; those that are ``None`` are left out.
        :param body: What JSON has; ``Secret`` and texts under names such as ``password`` are redacted from
            errors and logs.
        :param idempotency_key: 16 to 128 printable characters.
        :param expensive: Whether the operation counts in the expensive bucket of the rate limit.
        """
        row, prepared = self._raw(method, path, query, body, expensive, idempotency_key is not None)
        found: RawResponse = self.call(row, idempotency_key=idempotency_key, prepared=prepared)
        return found

    def _raw(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: Any, expensive: bool, keyed: bool
    ) -> tuple[Operation, Callable[[str | None], HttpRequest]]:
        from pulumi_hosting.client import raw_request  # most programs never need it

        row = raw_request.row(method, path, expensive=expensive, keyed=keyed)
        return row, lambda key: self._optioned(
            raw_request.prepare(row, query or {}, body, key=key, **self._sender)
        )

    def pages(
        self,
        operation: Operation | str,
        *ids: int | str,
        query: Mapping[str, Any] | None = None,
        max_items: int | None = None,
    ) -> Pages[Any]:
        """A list with cursors, with the same filters for each page, of at most ``max_items``. Sends nothing
        yet, but checks the filters.
        """
        row, filters, start = self._filters(operation, ids, query)
        return Pages(
            row.id, lambda cursor: self.call(row, *ids, query=filters, cursor=cursor), start, max_items
        )

    def _filters(
        self, operation: Operation | str, ids: Sequence[int | str], query: Mapping[str, Any] | None
    ) -> tuple[Operation, dict[str, Any], str | None]:
        """The filters of a list, checked, and the cursor of its first page."""
        row = row_of(operation)
        filters = {"limit": WALK_LIMIT, **given(**(query or {}))}
        self._prepare(row, ids, filters, {})
        return row, filters, filters.pop("cursor", None)

    def items(
        self, operation: Operation | str, *ids: int | str, query: Mapping[str, Any] | None = None
    ) -> Items[Any]:
        """A short list, whole. The document gives these no cursor; should one ever come, it is followed."""
        row = row_of(operation)
        walk = Pages[Any](row.id, lambda cursor: self.call(row, *ids, query=query, cursor=cursor))
        pages = list(walk.pages())
        return Items([item for page in pages for item in page.data], pages[-1].meta)

    def _log(self, request: HttpRequest, what: str, attempts: Attempts, request_id: str) -> None:
        if log.isEnabledFor(logging.DEBUG):
            seconds = self._clock() - attempts.sent_at
            debug_log.attempt(request, what, seconds, attempts.count, request_id)

    def poller(self, seconds: float, longest: float = 10.0) -> Poller:
        """A wait of at most ``seconds`` for something that the service finishes later, with pauses that grow
        from 0.5 to ``longest`` seconds; the read after each pause yields to others at the rate limit.
        """
        return Poller(self, seconds, longest)

    def monotonic(self) -> float:
        """The seconds of this client's clock."""
        return self._clock()

    def sleep(self, seconds: float) -> None:
        """Pause as the client does between attempts."""
        self._sleep(seconds)

    def with_options(
        self,
        *,
        timeout: float | None = None,
        deadline: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        """This client with other options for some calls: ``client.with_options(timeout=5).servers.list()``.

        It shares connections, rate limit and store; closing one closes both. What is not given stays.
        Raises ``ConfigurationError`` for an option that cannot be used.

        - ``timeout``, ``deadline``: seconds, as for the client.
        - ``headers``: sent besides those of the client; it decides ``Authorization``, ``Idempotency-Key`` and
          the like alone.
        """
        view = object.__new__(type(self))
        # Without the services that were used: they call this client.
        vars(view).update(
            {name: value for name, value in vars(self).items() if not isinstance(value, Service)}
        )
        view._settings = with_limits(self._settings, timeout, deadline)
        view._headers = self._headers | checked_headers(headers or {})
        made = partial(prepare, **self._sender)
        view._prepare = lambda *fields, **more: view._optioned(made(*fields, **more))
        Services.__init__(view, view)
        return view

    # --- the object itself

    @property
    def base_url(self) -> str:
        """Where requests go."""
        return self._settings.base_url

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._read_only

    def close(self) -> None:
        """Closes the connections. Later calls raise ``ConfigurationError``, those of :meth:`with_options`
        too."""
        self._closed.set()
        self.transport.close()
        self.rate_limiter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._settings.base_url} with key {self._settings.key_hint}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a Client holds an API key and connections: make one where it is needed instead "
            "of pickling or copying it"
        )


def row_of(operation: Operation | str) -> Operation:
    found = operations.BY_ID.get(operation) if isinstance(operation, str) else operation
    if found is None:
        raise InvalidInput({"operation_id": "no operation has this id"}, "the call")
    return found
