"""The pure core: a request in, an answer out. Clock and seed are handed in; no network is touched, and waiting is left to skins."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.emulator import agenda, events, faults, gates, idempotency, webhooks, world
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.handlers import HANDLERS
from pulumi_hosting.emulator.webhooks import Attempt, Outbound, Outcome
from pulumi_hosting.emulator.wire import Answer, Refusal, Request
from pulumi_hosting.emulator.world import Exchange, World

log = logging.getLogger("pulumi_hosting.emulator")


class Store(Protocol):
    """Where a world is kept between two starts."""

    def save(self, world: World, clock: Clock) -> None: ...


@dataclass
class Pending:
    """An answer that needs something from the network first: send ``attempt`` and hand the outcome to ``Core.resume``."""

    call: Call
    attempt: Attempt
    then: Callable[[Outcome], Answer]


def check_table() -> None:
    """Refuse to start when an operation has no handler or a handler no operation."""
    rows, handlers = {operation.id for operation in OPERATIONS}, set(HANDLERS)
    if rows != handlers:
        missing, extra = ", ".join(sorted(rows - handlers)) or "none", ", ".join(sorted(handlers - rows)) or "none"
        raise RuntimeError(f"operations without a handler: {missing}; handlers without an operation: {extra}")


class Core:
    """``provisioning_delay`` and ``ip_delay`` are seconds of the emulator's clock. One lock guards the world; it is never held while
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
        loaded: World | None = None,
        store: Store | None = None,
    ) -> None:
        check_table()
        self.clock = clock
        self.provisioning_delay = provisioning_delay
        self.ip_delay = ip_delay
        self.lock = threading.RLock()
        self.delivering = threading.Lock()
        self.store = store
        self.send: Callable[[Attempt], Outcome] = webhooks.send
        # Called when something is queued; a skin wakes its courier with it.
        self.wake: Callable[[], None] = lambda: None
        self.ready_line: dict[str, Any] = {}
        self._dialect, self._routes = dialect or "spec", dict(routes or {})
        self.world = loaded or world.fresh(seed, clock.now())
        # What was switched while an earlier process ran stays, unless this one is told otherwise.
        if dialect is not None or loaded is None:
            self.world.service.dialect = self._dialect
        if routes or loaded is None:
            self.world.service.routes = dict(self._routes)
        self.save()

    def announce(self, base_url: str, control_url: str, pid: int) -> None:
        """Where this core can be reached, and with which keys."""
        first = next(iter(self.world.accounts.values()))
        keys = {key.name: key.token for key in self.world.keys.values() if key.account_id == first.id and key.name == key.mode}
        self.ready_line = {
            "base_url": base_url,
            "control_url": control_url,
            "live_key": keys["live"],
            "test_key": keys["test"],
            "pid": pid,
        }

    # --- requests

    def handle(self, request: Request) -> Answer:
        """The whole life of a request in one thread; the answer's ``delay`` is left to the caller, who then calls :meth:`finish`."""
        step = self.begin(request)
        if isinstance(step, Pending):
            step = self.resume(step, self.try_send(step.attempt))
        return step

    def begin(self, request: Request) -> Answer | Pending:
        with self.lock:
            now = self.clock.now()
            agenda.tick(self, now)
            call = Call(self, request, now)
            call.exchange = self._record(request, now)
            with events.balances_watched(self.world, now, now):
                result = self._live(call)
            return Pending(call, result.attempt, result.then) if isinstance(result, Outbound) else self._conclude(call, lambda: result)

    def _live(self, call: Call) -> Answer | Outbound:
        try:
            for gate in gates.LIFE:
                result = gate(call)
                if result is not None:
                    return result
            raise RuntimeError("the last gate did not answer")
        except Refusal as refusal:
            return gates.refuse(refusal, call.request_id)
        except Exception:  # a bug becomes a 500 instead of a broken connection, and is remembered under the key like every 5xx
            log.exception("request %s failed", call.request_id)
            return gates.refuse(Refusal("server_error"), call.request_id)

    def try_send(self, attempt: Attempt) -> Outcome:
        """Send; whatever is raised makes it a failed attempt and stops nothing else."""
        try:
            return self.send(attempt)
        except Exception as error:
            log.exception("a webhook could not be sent")
            return webhooks.failed(error)

    def resume(self, pending: Pending, outcome: Outcome) -> Answer:
        """Second half of a request that had to ask the network."""
        with self.lock:
            return self._conclude(pending.call, lambda: pending.then(outcome))

    def finish(self, answer: Answer) -> None:
        """The waiting is over: the answer's Idempotency-Key is no longer in progress, nor is the change of its server."""
        with self.lock:
            if answer.stored is not None:
                answer.stored.running = False
            if answer.server_id is not None:
                self.world.changing.discard(answer.server_id)

    def _record(self, request: Request, now: float) -> Exchange:
        number = self.world.count("id:requests")
        exchange = Exchange(
            id=number,
            seq=number,
            method=request.method,
            path=request.path,
            query=request.query,
            headers=dict(request.headers),
            body=request.body.decode("utf-8", "replace"),
            at=now,
        )
        self.world.requests.append(exchange)
        return exchange

    def _conclude(self, call: Call, result: Callable[[], Answer]) -> Answer:
        try:
            return self._complete(call, result())
        except Exception:  # the second and last such place: an answer that cannot be made or written
            log.exception("the answer to request %s failed", call.request_id)
            answer = gates.refuse(Refusal("server_error"), call.request_id)
            gates.dress(call, answer)
            self._encode(call, answer)
            return answer

    def _complete(self, call: Call, answer: Answer) -> Answer:
        if answer.drop:
            self.save()
            return answer
        if call.idempotency_key is not None and idempotency.is_kept(self.world, answer):
            stored = idempotency.remember(
                self.world,
                call.key,
                call.idempotency_key,
                call.operation,
                call.request.path,
                call.fingerprint,
                answer,
                call.request_id,
                call.now,
            )
            if call.fault.get("delay"):
                stored.running, answer.stored = True, stored
        server_id = call.ids.get("server_id")
        if call.fault.get("delay") and answer.status < 400 and server_id in self.world.servers and call.operation.is_write:
            answer.server_id = server_id
            self.world.changing.add(server_id)
        gates.dress(call, answer)
        if "patch" in call.fault and isinstance(answer.body, dict):
            answer.body = faults.merge(answer.body, call.fault["patch"])
        faults.change_headers(answer, call.fault.get("headers", {}))
        answer.delay = call.fault.get("delay", 0.0)
        answer.drop = call.fault.get("drop") == "after"
        answer.truncate = call.fault.get("truncate")
        self._encode(call, answer)
        # Written down before anybody can read it: what was answered survives a kill.
        self.save()
        if self.world.subscriptions:
            self.wake()
        return answer

    @staticmethod
    def _encode(call: Call, answer: Answer) -> None:
        answer.encode()
        if call.exchange is not None:
            call.exchange.status = answer.status
            if not isinstance(answer.body, bytes):
                call.exchange.response = answer.content.decode()

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
            self.tick()
        self.clock.advance(max(0.0, target - self.clock.now()))
        self.tick()
        self.deliver_due()

    def tick(self) -> None:
        with self.lock:
            agenda.tick(self, self.clock.now())
            self.save()

    def next_due(self) -> float | None:
        """When the next thing happens by itself: a task or a delivery."""
        with self.lock:
            moments = [moment for moment in (self.world.next_due(), webhooks.next_due(self.world)) if moment is not None]
            return min(moments, default=None)

    def deliver_due(self) -> None:
        """Send every delivery that is due, one after the other, the lock released while the network is asked.

        An attempt that raises is a failed one: it is tried again at its time, and the others go on.
        """
        with self.delivering:
            while True:
                with self.lock:
                    now = self.clock.now()
                    agenda.tick(self, now)
                    delivery = webhooks.first_due(self.world, now)
                    if delivery is None:
                        self.save()
                        return
                    attempt = webhooks.attempt(self.world, delivery, now)
                outcome = self.try_send(attempt)
                with self.lock:
                    webhooks.record(self.world, delivery, outcome, now)
                    self.save()

    # --- control

    def reset(self) -> None:
        """Back to a fresh account with the same keys: the seed makes them again."""
        with self.lock:
            self.world = world.fresh(self.world.seed, self.clock.now())
            self.world.service.dialect = self._dialect
            self.world.service.routes = dict(self._routes)
            self.save()

    def save(self) -> None:
        if self.store is not None:
            self.store.save(self.world, self.clock)
