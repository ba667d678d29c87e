"""The pure core: a request in, an answer out. Clock and seed are handed in; no network is touched, and waiting is left to skins."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.emulator import events, faults, idempotency_store, middleware, scheduler, store, webhook_delivery
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.handlers import HANDLERS
from pulumi_hosting.emulator.messages import ApiError, Request, Response
from pulumi_hosting.emulator.rows import RequestLog
from pulumi_hosting.emulator.store import Store
from pulumi_hosting.emulator.webhook_delivery import Attempt, Outbound, Outcome

log = logging.getLogger("pulumi_hosting.emulator")


class Persistence(Protocol):
    """Where a store is kept between two starts."""

    def save(self, store: Store, clock: Clock) -> None: ...


@dataclass
class Pending:
    """An answer that needs something from the network first: send ``attempt`` and hand the outcome to ``Core.resume``."""

    call: Call
    attempt: Attempt
    then: Callable[[Outcome], Response]


def check_table() -> None:
    """Refuse to start when an operation has no handler or a handler no operation."""
    rows, handlers = {operation.id for operation in OPERATIONS}, set(HANDLERS)
    if rows != handlers:
        missing, extra = ", ".join(sorted(rows - handlers)) or "none", ", ".join(sorted(handlers - rows)) or "none"
        raise RuntimeError(f"operations without a handler: {missing}; handlers without an operation: {extra}")


class Core:
    """``provisioning_delay`` and ``ip_delay`` are seconds of the emulator's clock. One lock guards the store; it is never held while
    waiting."""

    def __init__(
        self,
        *,
        clock: Clock,
        seed: int = 0,
        dialect: str | None = None,
        provisioning_delay: float = 0.0,
        ip_delay: float = 0.0,
        routes: Mapping[str, str] | None = None,
        loaded: Store | None = None,
        persistence: Persistence | None = None,
    ) -> None:
        check_table()
        self.clock = clock
        self.provisioning_delay = provisioning_delay
        self.ip_delay = ip_delay
        self.lock = threading.RLock()
        self.delivering = threading.Lock()
        self.persistence = persistence
        self.send: Callable[[Attempt], Outcome] = webhook_delivery.send
        # Called when something is queued; a skin wakes its courier with it.
        self.wake: Callable[[], None] = lambda: None
        self.ready_line: dict[str, Any] = {}
        self._dialect, self._routes = dialect or "spec", dict(routes or {})
        self.store = loaded or store.fresh(seed, clock.now())
        # What was switched while an earlier process ran stays, unless this one is told otherwise.
        if dialect is not None or loaded is None:
            self.store.service.dialect = self._dialect
        if routes or loaded is None:
            self.store.service.routes = dict(self._routes)
        self.save()

    def announce(self, base_url: str, control_url: str, pid: int) -> None:
        """Where this core can be reached, and with which keys."""
        first = next(iter(self.store.accounts.values()))
        keys = {key.name: key.token for key in self.store.keys.values() if key.account_id == first.id and key.name == key.mode}
        self.ready_line = {
            "base_url": base_url,
            "control_url": control_url,
            "live_key": keys["live"],
            "test_key": keys["test"],
            "pid": pid,
        }

    # --- requests

    def handle(self, request: Request) -> Response:
        """The whole life of a request in one thread; the answer's ``delay`` is left to the caller, who then calls :meth:`finish`."""
        step = self.begin(request)
        if isinstance(step, Pending):
            step = self.resume(step, self.try_send(step.attempt))
        return step

    def begin(self, request: Request) -> Response | Pending:
        with self.lock:
            now = self.clock.now()
            scheduler.run_due(self, now)
            call = Call(self, request, now)
            call.request_log = self._record(request, now)
            with events.low_balance_events(self.store, now, now):
                result = self._live(call)
            return Pending(call, result.attempt, result.then) if isinstance(result, Outbound) else self._conclude(call, lambda: result)

    def _live(self, call: Call) -> Response | Outbound:
        try:
            for step in middleware.PIPELINE:
                result = step(call)
                if result is not None:
                    return result
            raise RuntimeError("the last step of the pipeline returned no response")
        except ApiError as refusal:
            return middleware.error_response(refusal, call.request_id)
        except Exception:  # a bug becomes a 500 instead of a broken connection, and is remembered under the key like every 5xx
            log.exception("request %s failed", call.request_id)
            return middleware.error_response(ApiError("server_error"), call.request_id)

    def try_send(self, attempt: Attempt) -> Outcome:
        """Send; whatever is raised makes it a failed attempt and stops nothing else."""
        try:
            return self.send(attempt)
        except Exception as error:
            log.exception("a webhook could not be sent")
            return webhook_delivery.failed(error)

    def resume(self, pending: Pending, outcome: Outcome) -> Response:
        """Second half of a request that had to ask the network."""
        with self.lock:
            return self._conclude(pending.call, lambda: pending.then(outcome))

    def finish(self, response: Response) -> None:
        """The waiting is over: the answer's Idempotency-Key is no longer in progress, nor is the change of its server."""
        with self.lock:
            if response.stored is not None:
                response.stored.running = False
            if response.server_id is not None:
                self.store.changing.discard(response.server_id)

    def _record(self, request: Request, now: float) -> RequestLog:
        number = self.store.count("id:requests")
        request_log = RequestLog(
            id=number,
            seq=number,
            method=request.method,
            path=request.path,
            query=request.query,
            headers=dict(request.headers),
            body=request.body.decode("utf-8", "replace"),
            at=now,
        )
        self.store.requests.append(request_log)
        return request_log

    def _conclude(self, call: Call, result: Callable[[], Response]) -> Response:
        try:
            return self._complete(call, result())
        except Exception:  # the second and last such place: an answer that cannot be made or written
            log.exception("the answer to request %s failed", call.request_id)
            response = middleware.error_response(ApiError("server_error"), call.request_id)
            middleware.add_common_headers(call, response)
            self._encode(call, response)
            return response

    def _complete(self, call: Call, response: Response) -> Response:
        if response.drop:
            self.save()
            return response
        if call.idempotency_key is not None and idempotency_store.is_kept(self.store, response):
            stored = idempotency_store.remember(
                self.store,
                call.key,
                call.idempotency_key,
                call.operation,
                call.request.path,
                call.fingerprint,
                response,
                call.request_id,
                call.now,
            )
            if call.fault.get("delay"):
                stored.running, response.stored = True, stored
        server_id = call.ids.get("server_id")
        if call.fault.get("delay") and response.status < 400 and server_id in self.store.servers and call.operation.is_write:
            response.server_id = server_id
            self.store.changing.add(server_id)
        middleware.add_common_headers(call, response)
        if "patch" in call.fault and isinstance(response.body, dict):
            response.body = faults.merge(response.body, call.fault["patch"])
        faults.change_headers(response, call.fault.get("headers", {}))
        response.delay = call.fault.get("delay", 0.0)
        response.drop = call.fault.get("drop") == "after"
        response.truncate = call.fault.get("truncate")
        self._encode(call, response)
        # Written down before anybody can read it: what was answered survives a kill.
        self.save()
        if self.store.subscriptions:
            self.wake()
        return response

    @staticmethod
    def _encode(call: Call, response: Response) -> None:
        response.encode()
        if call.request_log is not None:
            call.request_log.status = response.status
            if not isinstance(response.body, bytes):
                call.request_log.response = response.content.decode()

    # --- time

    def advance(self, seconds: float) -> None:
        """Move the clock; everything that becomes due on the way happens at its own time, deliveries included."""
        target = self.clock.now() + seconds
        while True:
            self.deliver_due()
            due = self.next_due()
            if due is None or due > target:
                break
            # At least a millisecond: the clock shows no less, and a shorter step would not move it.
            if (wait := due - self.clock.now()) > 0:
                self.clock.advance(max(0.001, wait))
            self.run_due()
        self.clock.advance(max(0.0, target - self.clock.now()))
        self.run_due()
        self.deliver_due()

    def run_due(self) -> None:
        with self.lock:
            scheduler.run_due(self, self.clock.now())
            self.save()

    def next_due(self) -> float | None:
        """When the next thing happens by itself: a task or a delivery."""
        with self.lock:
            moments = [moment for moment in (self.store.next_due(), webhook_delivery.next_due(self.store)) if moment is not None]
            return min(moments, default=None)

    def deliver_due(self) -> None:
        """Send every delivery that is due, one after the other, the lock released while the network is asked.

        An attempt that raises is a failed one: it is tried again at its time, and the others go on.
        """
        with self.delivering:
            while True:
                with self.lock:
                    now = self.clock.now()
                    scheduler.run_due(self, now)
                    delivery = webhook_delivery.first_due(self.store, now)
                    if delivery is None:
                        self.save()
                        return
                    attempt = webhook_delivery.attempt(self.store, delivery, now)
                outcome = self.try_send(attempt)
                with self.lock:
                    webhook_delivery.record(self.store, delivery, outcome, now)
                    self.save()

    # --- control

    def reset(self) -> None:
        """Back to a fresh account with the same keys: the seed makes them again."""
        with self.lock:
            self.store = store.fresh(self.store.seed, self.clock.now())
            self.store.service.dialect = self._dialect
            self.store.service.routes = dict(self._routes)
            self.save()

    def save(self) -> None:
        if self.persistence is not None:
            self.persistence.save(self.store, self.clock)
