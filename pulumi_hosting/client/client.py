"""The client of the API: one method for every operation of the table, grouped as the API is.

    with Client() as client:                              # HOSTING_API_KEY, HOSTING_BASE_URL
        print(client.balance.get().balance)
        for server in client.servers.list(status="active"):
            print(server.name, server.ip)

Every method sends by its row of :mod:`~pulumi_hosting.api.operations`: the row says what is validated, whether it may be repeated, and
what the answer is. The life of a call: check the arguments, prepare the bytes once, then send — and, if the row allows it, send again —
until there is an answer or the deadline is near; read the answer.
"""

import logging
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self
from uuid import uuid4

from pulumi_hosting.api.metadata import Bucket
from pulumi_hosting.api.operations import BY_ID, Operation
from pulumi_hosting.api.secrets import Redactor, Secret
from pulumi_hosting.client import responses
from pulumi_hosting.client.exceptions import CallError, HostingError, InvalidInput, TransportError, WriteRefused
from pulumi_hosting.client.rate_limit import Limiter, Unlimited
from pulumi_hosting.client.requests import build_path, checked_key, encoded, query_text, validated
from pulumi_hosting.client.results import Items, Pages, given
from pulumi_hosting.client.retry import Outcome, Retry, Rng, decide, outcome, parse_http_date
from pulumi_hosting.client.services import Services
from pulumi_hosting.client.settings import settings
from pulumi_hosting.client.transport import HttpRequest, Transport

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("pulumi_hosting")

WALK_LIMIT = 100
# How long the Date of a response may be extended by the local monotonic clock before the service is asked again.
SERVICE_TIME_SECONDS = 60.0


class Client(Services):
    """A client for one API key. Cheap to make (nothing is opened before the first call), safe to share between threads.

    - ``api_key``: ``vk_live_…`` or ``vk_test_…``, text or ``Secret``; default ``HOSTING_API_KEY``.
    - ``base_url``: https, ending in ``/v1``; http only to this machine; default ``HOSTING_BASE_URL``.
    - ``timeout``: seconds that one attempt may take, from connecting to the last byte; ``deadline``: seconds for a call with all its
      attempts and the pauses between them. Both hold whatever the service does.
    - ``ca_file``: certificates to trust instead of the usual ones, PEM.
    - ``read_only``: refuse everything that is not a GET with ``WriteRefused``, before anything is sent.
    - ``user_agent``: words added to the client's identification.
    - ``transport``: an httpx transport to send through instead of the network.
    - ``limiter``: shares rate limits between processes. ``clock``, ``wall``, ``sleep``, ``rng``, ``new_id``: time, randomness and ids.

    Raises ``ConfigurationError`` for a key, address or option that cannot be used. Errors of calls: :mod:`pulumi_hosting.client.exceptions`.
    """

    def __init__(
        self,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        *,
        timeout: float = 30.0,
        deadline: float = 120.0,
        ca_file: str | os.PathLike[str] | None = None,
        read_only: bool = False,
        user_agent: str | None = None,
        transport: "httpx.BaseTransport | None" = None,
        limiter: Limiter | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        rng: Rng | None = None,
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        self._settings = settings(api_key, base_url, timeout=timeout, deadline=deadline, ca_file=ca_file, user_agent=user_agent)
        self._read_only = read_only
        self._wire = Transport(self._settings, clock, transport)
        self._limiter: Limiter = limiter or Unlimited()
        self._clock, self._wall, self._sleep = clock, wall, sleep
        self._rng: Rng = rng or random.Random()  # noqa: S311  # jitter, not a secret
        self._new_id = new_id
        # When, by the monotonic clock, the latest response came, and its Date header as sent.
        self._latest_date: tuple[float, str] | None = None
        super().__init__(self)

    @property
    def is_test_key(self) -> bool:
        """Whether the key is a test key (``vk_test_…``): reads are real, writes are simulated. (API document, "Sandbox")"""
        return self._settings.api_key.reveal().startswith("vk_test_")

    def service_now(self) -> datetime:
        """The service's time in UTC, to the second: compare ages of objects with this, never with the local clock, which may be wrong.

        It is the ``Date`` of this client's latest response plus the time since, if that response is at most 60 seconds old; else the
        ``time`` of ``GET /health``. Raises what ``health()`` raises.
        """
        if self._latest_date is not None:
            received, text = self._latest_date
            age = self._clock() - received
            moment = parse_http_date(text)
            if moment is not None and 0 <= age <= SERVICE_TIME_SECONDS:
                return moment + timedelta(seconds=age)
        return self.health().time

    # --- what every method calls

    def call(
        self,
        operation: Operation | str,
        *ids: int | str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        cursor: str | None = None,
    ) -> Any:
        """Calls an operation, given as its row or its id: ``ids`` fill its path in order, ``query`` and ``body`` hold its fields.

        A field that is ``UNSET`` is not sent. A list comes as one page, the one at ``cursor``. Raises ``InvalidInput`` and
        ``WriteRefused`` before anything is sent, then whatever the answer is.
        """
        if not isinstance(operation, Operation):
            operation = _row(operation)
        if self._read_only and operation.is_write:
            raise WriteRefused(f"{operation.id} would change something, and this client only reads")
        key = checked_key(operation, idempotency_key, self._new_id)
        request, redact = self._prepare(operation, ids, query or {}, body or {}, key, cursor)
        return self._send(request, key, redact)

    def pages(self, operation: Operation | str, *ids: int | str, query: Mapping[str, Any] | None = None) -> Pages[Any]:
        """A list with cursors, with the same filters for each page. Sends nothing yet, but checks the filters."""
        if not isinstance(operation, Operation):
            operation = _row(operation)
        filters = {"limit": WALK_LIMIT, **given(**(query or {}))}
        self._prepare(operation, ids, filters, {}, None)
        return self._walk(operation, ids, filters, filters.pop("cursor", None))

    def items(self, operation: Operation | str, *ids: int | str, query: Mapping[str, Any] | None = None) -> Items[Any]:
        """A short list, whole. The document gives these no cursor; should one ever come, it is followed."""
        if not isinstance(operation, Operation):
            operation = _row(operation)
        pages = list(self._walk(operation, ids, query or {}, None).pages())
        return Items([item for page in pages for item in page.data], pages[-1].meta)

    def _walk(self, operation: Operation, ids: Sequence[int | str], query: Mapping[str, Any], start: str | None) -> Pages[Any]:
        return Pages(operation.id, lambda cursor: self.call(operation, *ids, query=query, cursor=cursor), start)

    # --- checking

    def _prepare(
        self,
        operation: Operation,
        ids: Sequence[int | str],
        query: Mapping[str, Any],
        body: Mapping[str, Any],
        key: str | None,
        cursor: str | None = None,
    ) -> tuple[HttpRequest, Redactor]:
        path = build_path(operation, ids)
        fields = validated(operation, operation.query, query)
        content = validated(operation, operation.request, body)
        headers = {"Accept": "application/pdf, application/json" if bytes in operation.responses.values() else "application/json"}
        if operation.auth:
            headers["Authorization"] = f"Bearer {self._settings.api_key.reveal()}"
        if key is not None:
            headers["Idempotency-Key"] = key
        payload = encoded(operation, content) if content is not None else None
        sent = [getattr(content, name) for name in content.model_fields_set] if content is not None else []
        redact = Redactor((value for value in sent if isinstance(value, Secret)), own_key=self._settings.api_key)
        if payload is not None:
            headers["Content-Type"] = "application/json"
        text = query_text(operation, fields)
        if cursor is not None:
            text["cursor"] = cursor
        return HttpRequest(operation, self._settings.base_url + path, path, text, headers, payload), redact

    # --- sending

    def _send(self, request: HttpRequest, key: str | None, redact: Redactor) -> Any:
        import tenacity  # with the first call, as httpx: importing the package stays light

        operation = request.operation
        bucket: Bucket = "expensive" if operation.is_expensive(request.query) else "normal"
        retry_policy = self._settings.retry_policy
        began = self._clock()
        attempts = 0
        maybe_processed = False  # whether an attempt so far may have been
        decision: Any = None

        def attempt() -> Any:
            nonlocal attempts, maybe_processed
            attempts += 1
            sent_id = self._new_id()
            # Enriched inside, raised outside of the except block: the context of an error must not grow with the attempts.
            failure: HostingError
            try:
                return once(sent_id)
            except HostingError as error:
                failure = error
            earlier = maybe_processed
            said = outcome(operation, failure)
            maybe_processed = said is Outcome.UNKNOWN or (earlier and said is not Outcome.DECIDED)
            if maybe_processed and not isinstance(failure, CallError):
                failure = TransportError(str(failure), outcome_unknown=True, operation=operation.id)
            if isinstance(failure, CallError):
                failure.sent_as(
                    request_id=sent_id,
                    idempotency_key=key,
                    attempts=attempts,
                    outcome_unknown=maybe_processed,
                    because_of_earlier=said is not Outcome.UNKNOWN,
                )
            raise failure

        def once(sent_id: str) -> Any:
            self._limiter.reserve(bucket, began + retry_policy.deadline - self._clock())
            answer = self._wire.send(request, sent_id, began + retry_policy.deadline)
            self._latest_date = (self._clock(), answer.headers.get("Date", ""))
            self._limiter.observe(bucket, answer.status, answer.headers)
            meta = responses.metadata(
                operation, answer, sent_id=sent_id, bucket=bucket, idempotency_key=key, attempts=attempts, redact=redact
            )
            log.debug("%s %s: %s (attempt %s, request %s)", operation.method, request.path, answer.status, attempts, meta.request_id)
            return responses.read(operation, answer, meta, redact, self._wall())

        def again(error: BaseException) -> bool:
            nonlocal decision
            if not isinstance(error, HostingError):
                return False
            decision = decide(operation, error, attempt=attempts, elapsed=self._clock() - began, retry_policy=retry_policy, rng=self._rng)
            what = f"again in {decision.after:.1f} s" if isinstance(decision, Retry) else decision.why
            log.debug("%s %s: %s, %s", operation.method, request.path, type(error).__name__, what)
            return isinstance(decision, Retry)

        loop = tenacity.Retrying(
            retry=tenacity.retry_if_exception(again),
            wait=lambda state: decision.after,
            sleep=self._sleep,
            reraise=True,
        )
        return loop(attempt)

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
        """Closes the connections. The client may be used again."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._settings.base_url} with key {self._settings.key_hint}>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Client holds an API key and connections: make one where it is needed instead of pickling or copying it")


def _row(operation_id: str) -> Operation:
    operation = BY_ID.get(operation_id)
    if operation is None:
        raise InvalidInput({"operation_id": "no operation has this id"}, "the call")
    return operation
