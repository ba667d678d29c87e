"""Orders with a few keys in any order, beside a model of the table in the document ("Idempotency")."""

from dataclasses import dataclass
from typing import Any

import httpx
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.emulator.support import DAY
from tests.support.account import Account

KEYS = tuple(f"the-same-key-000{number}" for number in range(3))
NAMES = ("web", "db")
WAYS = ("fast", "slow", "lost")
MEMORY = 7 * DAY


@dataclass
class Stored:
    """What the service remembers of a key."""

    name: str
    at: float
    status: int
    body: dict[str, Any]


class Orders(RuleBasedStateMachine):
    """``stored`` is the model: the first outcome of each key."""

    @initialize(stores=st.booleans(), request_id=st.sampled_from(("fresh", "stored")))
    def begin(self, stores: bool, request_id: str) -> None:
        self.account = Account()
        self.account.variant(refusals_stored=stores, replay_request_id=request_id)
        self.stores = stores
        self.key = self.account.new_key(
            scopes="full", rate_per_minute=10_000, rate_expensive_per_minute=10_000
        )
        self.stored: dict[str, Stored] = {}
        self.orders = 0
        """How many orders were accepted, whatever their outcome."""
        self.is_poor = False

    @rule(key=st.sampled_from(KEYS), name=st.sampled_from(NAMES), way=st.sampled_from(WAYS))
    def order(self, key: str, name: str, way: str) -> None:
        if way == "slow":
            self.account.fault({"panel_timeout": "active"}, method="POST", path="^/servers$")
        elif way == "lost":
            self.account.fault({"drop": "after"}, method="POST", path="^/servers$")
        body = {"tariff_id": 1, "os": "debian-12", "name": name}
        now, known = self.account.clock.now(), self.stored.get(key)
        if known and now >= known.at + MEMORY:
            known = None
        try:
            response = self.account.call(self.key, "POST", "/servers", body, key=key)
        except httpx.RemoteProtocolError:  # it was processed: the same key shows with what outcome
            response = self.account.call(self.key, "POST", "/servers", body, key=key)
        self.account.control("DELETE", "/faults")
        status, answer = response.status_code, response.json()
        if known is None:
            assert status in ((402,) if self.is_poor else (201, 202))
            self.orders += status != 402
            if status != 402 or self.stores:
                self.stored[key] = Stored(name, now, status, answer)
            else:
                self.stored.pop(key, None)
        elif known.name != name:
            assert (status, answer["error"]["code"]) == (409, "idempotency_conflict")
        else:
            assert status == known.status
            self._is_replayed(known.body, answer)

    def _is_replayed(self, first: dict[str, Any], again: dict[str, Any]) -> None:
        if "error" in first:
            assert again["error"]["code"] == first["error"]["code"]
        else:
            blank = {"root_password": ""} if "root_password" in first else {}
            assert again == {**first, **blank}

    @rule(key=st.sampled_from(KEYS))
    def use_at_another_endpoint(self, key: str) -> None:
        known = self.stored.get(key)
        if known and self.account.clock.now() < known.at + MEMORY:
            response = self.account.call(self.key, "POST", "/servers/1/renew", {"months": 1}, key=key)
            assert response.json()["error"]["code"] == "idempotency_conflict"

    @rule(is_poor=st.booleans())
    def change_the_balance(self, is_poor: bool) -> None:
        self.account.control("PATCH", "/account", {"balance": "0.01" if is_poor else "100000.00"})
        self.is_poor = is_poor

    @rule(seconds=st.sampled_from((1.0, 3600.0, MEMORY - 2, MEMORY)))
    def wait(self, seconds: float) -> None:
        self.account.advance(seconds)

    @invariant()
    def each_order_is_charged_once(self) -> None:
        rows = [row for row in self.account.ledger() if row["operation"] == "create_server"]
        assert len([row for row in rows if row["direction"] == "debit"]) == self.orders


TestOrders = Orders.TestCase
TestOrders.settings = settings(max_examples=settings().max_examples, derandomize=True, stateful_step_count=15)
