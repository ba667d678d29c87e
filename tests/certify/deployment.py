"""A deployment in this process, with a staging account: what a run of certify meets in the proof."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx

from pulumi_hosting.emulator import webhook_delivery
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.emulator.rows import Fault
from pulumi_hosting.emulator.store import VARIANTS
from pulumi_hosting.emulator.webhook_delivery import Attempt, AttemptOutcome
from tests.certify.mutants.change import Change, answer, both, drop, header, put, rename, status, whole

BASE_URL = "https://staging.example/v1"
RECEIVER = "https://certify.example.org"
START = 1_795_000_000.0
# Enough for what may be spent, and less than the most expensive order, so that one can be refused.
BALANCE = Decimal("60.00")


Receive = Callable[[dict[str, str], bytes], tuple[int, bytes]]
"""Headers and body of a delivery; the status and body of the answer."""


@dataclass
class Deployment:
    """All columns are what a deployment may choose. Its clock moves by ``per_request`` seconds with every
    request, and by :meth:`sleep`.
    """

    dialect: str = "spec"
    provisioning_delay: float = 0.0
    ip_delay: float = 0.0
    variants: Mapping[str, object] = field(default_factory=dict)
    faults: tuple[Mapping[str, Any], ...] = ()
    per_request: float = 0.02

    def __post_init__(self) -> None:
        self.core = Core(
            clock=Clock(manual=True, start=START),
            dialect=self.dialect,
            provisioning_delay=self.provisioning_delay,
            ip_delay=self.ip_delay,
        )
        store = self.core.store
        account = next(iter(store.accounts.values()))
        account.opening = account.balance = BALANCE
        store.service.readings.update(self.variants)
        for fault in self.faults:
            store.add(Fault(method="POST", after=0, times=1000, **fault))
        self.core.announce(BASE_URL, "", 0)
        self.live_key, self.test_key = self.core.ready_line["live_key"], self.core.ready_line["test_key"]
        self.narrow_key = store.new_key(account, "live", name="no scopes", scopes=[]).token
        self.transport = _Served(self.core, self.per_request)

    def sleep(self, seconds: float) -> None:
        """Move the clock in place of waiting; what is due on the way happens at its time."""
        self.core.advance(seconds)

    def now(self) -> float:
        return self.core.clock.now()

    def deliver_to(self, receive: Receive) -> None:
        """Deliveries to :data:`RECEIVER` reach ``receive``, in this process."""

        def send(attempt: Attempt) -> AttemptOutcome:
            if attempt.target is None:
                return AttemptOutcome(None, "the address is not reachable", None)
            status, text = receive(attempt.headers, attempt.payload)
            kept = text[: webhook_delivery.RESPONSE_BYTES].decode(errors="replace")
            return AttemptOutcome(status, None if status < 300 else f"status {status}", kept, 5)

        self.core.store.service.routes = {RECEIVER: "http://127.0.0.1:9"}
        self.core.send = send


class _Served(Transport):
    """After each request the deployment delivers what is due, as its own loop would."""

    def __init__(self, core: Core, per_request: float) -> None:
        super().__init__(core, client="203.0.113.7", sleep=core.advance)
        self.core, self.per_request = core, per_request

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        self.core.advance(self.per_request)
        return response


# --- what a deployment may choose -------------------------------------------------------------------------

CHOICES: Mapping[str, Change] = {
    "new fields": answer("*", whole(lambda it: {**it, "later": {"a": [1]}} if isinstance(it, dict) else it)),
    "new fields of rows": answer(
        "GET *", put("data.*", lambda it: {**it, "later": 1} if isinstance(it, dict) else it)
    ),
    "a server's address as in the document": answer("*", drop("**.primary_ip", "**.ips")),
    "a server's address as live": answer("*", drop("data.*.ip", "server.ip", "ip")),
    "no cursor in short lists": answer("GET /keys|GET /webhooks", drop("next_cursor")),
    "no Cache-Control": answer("*", header("Cache-Control")),
    "an action that is done": answer("POST */actions/power", put("status", "done")),
    "an SSH key with 200": answer("POST /ssh-keys", status(200)),
    "a subscription with 200": answer("POST /webhooks", status(200)),
    "a release with 204": answer("DELETE /servers/{*}/ips/{*}", status(204), whole(lambda _: None)),
    "a subscription deleted with 204": answer("DELETE /webhooks/{*}", status(204), whole(lambda _: None)),
    "resources as in the catalog": answer("*/servers*", rename("**.resources.vcpu", "cpu_cores")),
    "a new type of event": answer(
        "GET */events", put("data", lambda rows: [*rows, {"type": "server.moved"}])
    ),
}
FAULTS: tuple[Mapping[str, Any], ...] = (
    {"path": r"^/servers$", "action": {"panel_timeout": "active"}},
    {"path": r"^/domains$", "action": {"registrar": "pending"}},
)


def allowed(seed: int) -> tuple[Deployment, Change, list[str]]:
    """A deployment that departs nowhere, with random choices, their change, and their names."""
    dice = random.Random(seed)  # noqa: S311  # no secret
    chosen = dice.sample(list(CHOICES), dice.randint(0, 4))
    options: dict[str, Any] = {
        "dialect": ("spec", "live")[seed % 2],
        "provisioning_delay": dice.choice((0.0, 3.0, 40.0)),
        "ip_delay": dice.choice((0.0, 5.0)),
        "variants": {name: dice.choice(values) for name, values in VARIANTS.items()},
        "faults": tuple(fault for fault in FAULTS if dice.random() < 0.3),
        "per_request": dice.choice((0.0, 0.02, 0.3)),
    }
    return (
        Deployment(**options),
        both(*(CHOICES[name] for name in chosen)),
        [*map(str, options.items()), *chosen],
    )
