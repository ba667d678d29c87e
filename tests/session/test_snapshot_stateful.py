"""Own writes, lost answers, reads and time in any order: the snapshot is the account, or it is not used."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError, NotFound
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.order_facts import orders_and_servers
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session
from pulumi_hosting.session.snapshot_text import plain
from tests.session.test_own_writes import WRITES
from tests.support.account import Account
from tests.support.programs import PUBLIC_KEY

NAMES = tuple(sorted(WRITES))
ANSWERS = ("answered", "answered", "refused", "lost", "processed and lost", "failed")
FAULTS: dict[str, dict[str, Any]] = {
    "refused": {"status": 403, "code": "insufficient_scope"},
    "failed": {"status": 500, "code": "server_error"},
    "lost": {"drop": "before"},
    "processed and lost": {"drop": "after"},
}
WRITE_METHODS = ("POST", "PATCH", "PUT", "DELETE")


def _shown(server: Any) -> Any:
    """Without the amount of the next renewal: a discount for many servers changes it for all of them."""
    data = plain(server)
    data["billing"].pop("recurring_amount")
    return data


def _identified(order: Any) -> Any:
    """What others wait for an order by; the answer to an order need not show more."""
    return order.invoice_id, order.server_name, order.tariff_id, order.is_pending


class SnapshotOfOneProcess(RuleBasedStateMachine):
    """One client writes, and its session reads; no one else changes the account."""

    @initialize(dialect=st.sampled_from(("spec", "live")), servers=st.integers(0, 3))
    def begin(self, dialect: str, servers: int) -> None:
        self.account = Account(dialect=dialect, provisioning_delay=600)
        room: dict[str, Any] = {
            "rate_per_minute": 10_000,
            "rate_expensive_per_minute": 10_000,
            "scopes": "full",
        }
        self.key = self.account.new_key(**room)
        self.client = self._client()
        self.request = Request(Session(self.client), "pulumi:t/dev/server/web")
        for number in range(servers):
            self.account.order(name=f"web-{number}")

    def _client(self) -> Client:
        return Client(
            self.key, self.account.base_url, transport=self.account.transport(), sleep=lambda seconds: None
        )

    def _ids(self) -> list[int]:
        return [int(row["id"]) for row in self.account.living]

    # --- writes

    @rule(name=st.sampled_from(NAMES), answer=st.sampled_from(ANSWERS), number=st.integers(0, 3))
    def write(self, name: str, answer: str, number: int) -> None:
        ids = self._ids()
        if not ids and not name.startswith("create_server"):
            return
        if answer in FAULTS:
            for method in WRITE_METHODS:
                self.account.fault(FAULTS[answer], method=method, times=9)
        try:
            WRITES[name](self.client, ids[number % len(ids)] if ids else 0)
        except HostingError:
            pass  # the snapshot must show the result
        finally:
            self.account.control("DELETE", "/faults")

    @rule(answer=st.sampled_from(ANSWERS), is_new=st.booleans())
    def write_a_key(self, answer: str, is_new: bool) -> None:
        keys = self.account.objects("ssh_keys")
        if answer in FAULTS:
            for method in WRITE_METHODS:
                self.account.fault(FAULTS[answer], method=method, times=9)
        try:
            if is_new:
                self.client.ssh_keys.create(name="a", public_key=PUBLIC_KEY)
            elif keys:
                self.client.ssh_keys.delete(int(keys[0]["id"]))
        except HostingError:
            pass  # as above
        finally:
            self.account.control("DELETE", "/faults")

    @rule(outcome=st.sampled_from(("active", "cancelled", "failed")))
    def order_slowly(self, outcome: str) -> None:
        self.account.fault({"panel_timeout": outcome}, method="POST", path="^/servers$")
        self.client.servers.create(tariff_id=1, os="debian-12", name="slow", months=1)
        self.account.control("DELETE", "/faults")

    # --- reads

    @rule(number=st.integers(0, 3))
    def read_one_server(self, number: int) -> None:
        ids = self._ids()
        try:
            self.client.servers.get(ids[number % len(ids)] if ids else 7)
        except NotFound:
            assert not ids

    @rule()
    def read_the_orders(self) -> None:
        for order in self.account.objects("orders"):
            self.client.orders.get(int(order["id"]))

    @rule()
    def read_the_snapshot(self) -> None:
        """It equals what a client without one reads."""
        orders, servers = orders_and_servers(self.request)
        fresh = self._client()
        assert [_shown(row) for row in servers] == [_shown(row) for row in fresh.servers.list()]
        assert [_identified(row) for row in orders] == [_identified(row) for row in fresh.orders.list()]
        keys = catalog_reads.ssh_keys(self.request)
        assert [plain(row) for row in keys] == [plain(row) for row in fresh.ssh_keys.list()]

    @rule()
    def let_orders_end(self) -> None:
        """The client is not told: a snapshot of before is not used any more."""
        self.account.advance(3600)
        self.request.reads.forget(ORDERS_AND_SERVERS)

    def teardown(self) -> None:
        self.read_the_snapshot()


TestSnapshotOfOneProcess = SnapshotOfOneProcess.TestCase
TestSnapshotOfOneProcess.settings = settings(
    max_examples=settings().max_examples, derandomize=True, stateful_step_count=12
)
