"""The emulator without a network: a request in, a response out, and the clock.

:mod:`asgi` serves it over HTTP, :mod:`in_process_transport` in the process of the caller; both do the
waiting that a response asks for.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from pulumi_hosting.emulator import (
    events,
    faults,
    idempotency_store,
    log_redaction,
    middleware,
    tasks,
    webhook_delivery,
)
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.messages import Answer, ApiRequest, Refusal
from pulumi_hosting.emulator.rows import KeyRow, RequestLog
from pulumi_hosting.emulator.store import REQUESTS_KEPT, Store
from pulumi_hosting.emulator.webhook_delivery import Attempt, AttemptOutcome, Outbound

if TYPE_CHECKING:
    from pulumi_hosting.emulator.persistence import EmulatorStateFile

log = logging.getLogger("pulumi_hosting.emulator")


class Core:
    """One emulated service with its accounts.

    ``provisioning_delay`` and ``ip_delay`` are seconds of the emulator's clock. ``loaded`` is a store read
    from a file, ``persistence`` what saves it after every change. ``prepare`` fills every fresh account.
    ``dialect`` and ``readings`` (behaviour variants) hold for each of them, and for a loaded store.
    ``origin`` names this core: two with the same one, seed and time answer the same bytes. One lock guards
    the store; it is never held while waiting.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        seed: int = 0,
        dialect: str | None = None,
        readings: Mapping[str, object] | None = None,
        provisioning_delay: float = 0.0,
        ip_delay: float = 0.0,
        routes: Mapping[str, str] | None = None,
        loaded: Store | None = None,
        persistence: "EmulatorStateFile | None" = None,
        prepare: Callable[[Store], object] = lambda store: None,
        origin: str | None = None,
    ) -> None:
        self.clock = clock
        self.lock = threading.RLock()
        self.delivering = threading.Lock()
        self.persistence = persistence
        self.send: Callable[[Attempt], AttemptOutcome] = webhook_delivery.send
        # Called when a delivery is queued; the HTTP server wakes its delivery loop with it.
        self.wake: Callable[[], object] = lambda: None
        self.ready_line: dict[str, Any] = {}
        # Given a line for each request that was answered, without its secrets.
        self.show_request: Callable[[str], None] | None = None
        self._dialect, self._routes, self._delays = dialect, routes, (provisioning_delay, ip_delay)
        self._readings = readings or {}
        self._prepare, self._start = prepare, token_hex(8) if origin is None else origin
        self._snapshots: dict[str, tuple[Store, float]] = {}
        self._use(loaded or self._fresh(seed))
        self.save()

    def announce(self, base_url: str, control_url: str, pid: int) -> None:
        """Set the ready line: where this core can be reached, and with which keys."""
        first = next(iter(self.store.accounts.values()))
        # The oldest of each mode: that of a fresh account.
        keys = {key.mode: key.token for key in self.store.newest(KeyRow, first.id)}
        self.ready_line = {
            "base_url": base_url,
            "control_url": control_url,
            "console_url": f"{control_url.removesuffix('/_control')}/_console",
            "live_key": keys["live"],
            "test_key": keys["test"],
            "pid": pid,
        }

    # --- requests

    def handle(self, request: ApiRequest) -> Answer:
        """Answer a request in one thread. The caller waits for the response's ``delay`` and then calls
        :meth:`finish`.
        """
        step = self.begin(request)
        return step if isinstance(step, Answer) else step.then(self.try_send(step.attempt))

    def begin(self, request: ApiRequest) -> Answer | Outbound:
        """Run the pipeline. The result is the response, or what has to be sent before there is one."""
        with self.lock:
            now = self.clock.now()
            tasks.run_due(self.store, now)
            call = Call(self.store, request, self._record(request), now)
            with events.low_balance_events(self.store):
                result = self._run_pipeline(call)
            if isinstance(result, Answer):
                return self._conclude(call, lambda: result)
            return Outbound(result.attempt, partial(self._resume, call, result.then))

    def _resume(
        self, call: Call, then: Callable[[AttemptOutcome], Answer], outcome: AttemptOutcome
    ) -> Answer:
        """Finish a request that had to wait for the network."""
        with self.lock:
            call.store.now = call.now
            return self._conclude(call, lambda: then(outcome))

    def _run_pipeline(self, call: Call) -> Answer | Outbound:
        try:
            for step in middleware.PIPELINE:
                result = step(call)
                if result is not None:
                    return result
            raise RuntimeError("the last step of the pipeline returned no response")
        except Refusal as error:
            return middleware.error_response(error, call.request_id)
        except Exception:  # a bug is answered with 500 and stored under the Idempotency-Key like every 5xx
            log.exception("request %s failed", call.request_id)
            return middleware.error_response(Refusal("server_error"), call.request_id)

    def try_send(self, attempt: Attempt) -> AttemptOutcome:
        """Send a webhook; an exception makes it a failed attempt. On a manual clock it takes no time."""
        try:
            outcome = self.send(attempt)
            return replace(outcome, latency_ms=0) if self.clock.manual else outcome
        except Exception as error:
            log.exception("a webhook could not be sent")
            return AttemptOutcome(None, f"the attempt failed: {type(error).__name__}", None)

    def finish(self, response: Answer) -> None:
        """The delay of a response is over: its Idempotency-Key and the change of its server are no longer in
        progress.
        """
        with self.lock:
            for end in response.at_end:
                end()

    def log_stray(self, request: ApiRequest, answer: Answer) -> None:
        """Log a request outside the API: of a client with a wrong base URL, mostly."""
        with self.lock:
            self.store.now = self.clock.now()
            row = self._record(request)
            row.stray, row.status, row.response = True, answer.status, answer.content
            self.save()
        if self.show_request is not None:
            self.show_request(log_redaction.request_line(row))

    def _record(self, request: ApiRequest) -> RequestLog:
        known = self.store.requests
        while len(known) >= REQUESTS_KEPT:
            self.store.remove(next(iter(known.values())))
        number = self.store.count("id:requests")
        return self.store.add(
            RequestLog(
                id=number,
                seq=number,
                method=request.method,
                path=request.path,
                query=request.query,
                headers=request.headers,
                body=request.body,
                at=self.store.now,
            )
        )

    def _conclude(self, call: Call, result: Callable[[], Answer]) -> Answer:
        try:
            response = self._complete(call, result())
        except Exception:  # a response that cannot be built or saved is answered with 500 too
            log.exception("the response to request %s failed", call.request_id)
            response = middleware.error_response(Refusal("server_error"), call.request_id)
            middleware.add_common_headers(call, response)
            self._encode(call, response)
        if self.show_request is not None:
            self.show_request(log_redaction.request_line(call.request_log))
        return response

    def _complete(self, call: Call, response: Answer) -> Answer:
        if response.drop:
            self.save()
            return response
        # Nothing was asked if the call was refused before its key was looked up, or answered from it.
        if call.asked is not None and idempotency_store.is_kept(self.store, response):
            stored = idempotency_store.remember(
                self.store, call.asked, response, call.operation.once, call.request_id
            )
            if call.fault.get("delay"):
                stored.running = True
                response.at_end.append(partial(setattr, stored, "running", False))
        server_id, delayed = call.ids.get("server_id"), call.fault.get("delay") and response.status < 400
        if delayed and server_id in self.store.servers and call.operation.is_write:
            self.store.changing.add(server_id)
            response.at_end.append(partial(self.store.changing.discard, server_id))
        middleware.add_common_headers(call, response)
        if call.fault:
            faults.change_response(response, call.fault)
        self._encode(call, response)
        # Saved before it is sent: whatever was answered survives a kill.
        self.save()
        if self.store.subscriptions:
            self.wake()
        return response

    @staticmethod
    def _encode(call: Call, response: Answer) -> None:
        response.encode()
        call.request_log.status = response.status
        if not isinstance(response.body, bytes):
            call.request_log.response = response.content
        response.seal()

    # --- time

    def advance(self, seconds: float) -> None:
        """Move the clock. Everything that becomes due on the way happens at its own time, deliveries
        included.
        """
        target = self.clock.now() + seconds
        while True:
            self.deliver_due()
            due = self.next_due()
            if due is None or due > target:
                break
            # At least a millisecond, the resolution of the clock: a shorter step would not move it.
            if (wait := due - self.clock.now()) > 0:
                self.clock.advance(max(0.001, wait))
            self.run_due()
        self.clock.advance(max(0.0, target - self.clock.now()))
        self.run_due()
        self.deliver_due()

    def run_due(self) -> None:
        """Run every task that is due now."""
        with self.lock:
            tasks.run_due(self.store, self.clock.now())
            self.save()

    def next_due(self) -> float | None:
        """When the next task or delivery is due."""
        with self.lock:
            delivery = webhook_delivery.next_delivery(self.store)
            moments = (self.store.next_due(), delivery.next_attempt_at if delivery else None)
            return min((moment for moment in moments if moment is not None), default=None)

    def deliver_due(self) -> None:
        """Send every delivery that is due, one after the other, without holding the lock while sending.

        An attempt that raises counts as failed: it is retried at its time, and the other deliveries continue.
        """
        with self.delivering:
            while True:
                with self.lock:
                    now = self.clock.now()
                    tasks.run_due(self.store, now)
                    delivery = webhook_delivery.next_delivery(self.store)
                    if delivery is None or (delivery.next_attempt_at or 0.0) > now:
                        self.save()
                        return
                    attempt = webhook_delivery.attempt(self.store, delivery)
                outcome = self.try_send(attempt)
                with self.lock:
                    self.store.now = now
                    webhook_delivery.record(self.store, delivery, outcome)
                    self.save()

    # --- control

    def reset(self) -> None:
        """Back to a fresh account with the same keys, which follow from the seed."""
        with self.lock:
            self._use(self._fresh(self.store.seed))
            self.save()

    def snapshot(self, name: str) -> None:
        """Keep the account and the time under this name, in memory."""
        with self.lock:
            self._snapshots[name] = (self.store.copy(), self.clock.now())

    def restore(self, name: str) -> bool:
        """Back to the account and the time of a snapshot, if there is one of this name. To clients it is
        another account: what they noted since is not so.
        """
        with self.lock:
            if name not in self._snapshots:
                return False
            store, moment = self._snapshots[name]
            self.store = store.copy()
            self.store.start = self._next_start()
            self.clock.advance(moment - self.clock.now())
            self.save()
        self.wake()
        return True

    def _next_start(self) -> str:
        self._start = sha256(f"{self._start}:{self.clock.now()}".encode()).hexdigest()[:16]
        return self._start

    def _use(self, store: Store) -> None:
        self.store = store
        store.provisioning_delay, store.ip_delay = self._delays
        # Staff switches in a loaded store are kept, unless the options of this start say otherwise.
        if self._dialect is not None:
            store.service.dialect = self._dialect
        store.service.readings = {**store.service.readings, **self._readings}
        if self._routes:
            store.service.routes = dict(self._routes)

    def _fresh(self, seed: int) -> Store:
        """A store with the price list and one fresh account."""
        store = Store(seed, now=self.clock.now(), kept=self.persistence is not None)
        store.start = self._next_start()
        store.new_account()
        self._prepare(store)
        store.add_price_list()
        return store

    def save(self) -> None:
        if self.persistence is not None:
            self.persistence.save(self.store, self.clock)
