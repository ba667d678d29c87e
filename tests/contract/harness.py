"""Clients for an emulator, its control interface, a receiver of webhooks, and objects to act on."""

import random
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import Operation
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator import Running
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.webhook_delivery import send
from pulumi_hosting.rehearsal.control_client import Control
from tests.support.account import Account, AccountView
from tests.support.operations import Arguments, arguments

HOOKS = "https://hooks.example.org"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl test"


class Receiver:
    """An HTTP server on loopback that records webhook deliveries."""

    def __init__(self) -> None:
        self.got: list[tuple[bytes, dict[str, str]]] = []
        self.arrived = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver.got.append((body, dict(self.headers.items())))
                self.send_response(204)
                self.end_headers()
                receiver.arrived.set()

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class ApiHarness(AccountView):
    """An account with clients: ``live`` and ``test`` have all scopes and high rate limits. Deliveries to
    ``HOOKS`` go to the receiver.
    """

    def __init__(self, emulator: Account | Running, dialect: str, receiver: Receiver) -> None:
        self.base_url = emulator.base_url
        self.dialect = dialect
        self.receiver = receiver
        self._transport = emulator.transport() if isinstance(emulator, Account) else None
        self._clock = emulator.clock.now if isinstance(emulator, Account) else self._real_time
        self._ahead = 0.0
        self.control = emulator.control if isinstance(emulator, Account) else Control(emulator.control_url)
        self.begin()

    @classmethod
    def in_process(cls, dialect: str, receiver: Receiver, **options: Any) -> Self:
        """On an emulator in this process with a manual clock."""
        account = Account(Clock(manual=True), dialect=dialect, routes={HOOKS: receiver.url}, **options)
        account.core.send = send
        return cls(account, dialect, receiver)

    def begin(self) -> None:
        """A fresh account, and two keys with all scopes and high rate limits."""
        self.control("POST", "/reset", {})
        room = {"rate_per_minute": 10_000, "rate_expensive_per_minute": 10_000, "scopes": "full"}
        self.live = self.client(self.control("POST", "/keys", {"mode": "live", **room})["key"])
        self.test = self.client(self.control("POST", "/keys", {"mode": "test", **room})["key"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.live.close()
        self.test.close()

    def client(self, key: str, **options: Any) -> Client:
        """A client that waits by moving the emulator's clock."""
        rng = random.Random(3)  # noqa: S311  # nothing secret is drawn
        waiting = {"sleep": self._wait, "clock": self._clock, "rng": rng}
        return Client(key, self.base_url, **{"transport": self._transport, **waiting, **options})

    def _wait(self, seconds: float) -> None:
        self._ahead += seconds
        self.advance(seconds)

    def _real_time(self) -> float:
        return time.monotonic() + self._ahead

    def fault(self, method: str, path: str, **action: Any) -> None:
        self.control("POST", "/faults", {"method": method, "path": path, "action": action})

    def with_slow_registrar(self, path: str) -> Client:
        """The live client; the registrar leaves the next POST to ``path`` pending."""
        self.fault("POST", path, registrar="pending")
        return self.live

    def requests(self) -> list[dict[str, Any]]:
        """What arrived under ``/v1``."""
        return list(self.control("GET", "/requests"))

    # --- objects to act on

    def arguments(self, operation: Operation) -> Arguments:
        """What an operation is called with where a test lists nothing for it: ids of objects, and
        examples of its fields.
        """
        makers: dict[str, Callable[[], int]] = {
            "server_id": lambda: self.server().id,
            "invoice_id": self.invoice_id,
            "domain_id": self.domain_id,
            "tariff_id": lambda: self.tariff().id,
            "key_id": lambda: self.live.me().key.id,
            "webhook_id": lambda: self.webhook().id,
            "delivery_id": self.delivery_id,
        }

        def make(creator: Operation, given: Arguments) -> int:
            id: int = self.live.call(creator, *given.ids, query=given.query, body=given.body).id
            return id

        return arguments(operation, makers, make)

    def tariff(self, name: str = "VDS-1") -> m.Tariff:
        return next(tariff for tariff in self.live.catalog.tariffs() if tariff.name == name)

    def server(self, client: Client | None = None) -> m.Server:
        created = (client or self.live).servers.create(
            tariff_id=self.tariff().id, os="debian-12", name="web", months=1
        )
        assert isinstance(created, m.ServerCreated)
        return created.server

    def order(self, outcome: str = "active") -> m.Order:
        self.fault("POST", "^/servers$", panel_timeout=outcome)
        order = self.live.servers.create(tariff_id=self.tariff().id, os="debian-12", name="web", months=1)
        assert isinstance(order, m.Order)
        return order

    def domain(self, name: str = "example.com") -> m.DomainOrderResult:
        return self.live.domains.register(name=name, privacy=True)

    def domain_id(self) -> int:
        found = self.domain().domain_id
        assert found is not None
        return found

    def ssh_key(self) -> m.SshKey:
        return self.live.ssh_keys.create(name="laptop", public_key=PUBLIC_KEY)

    def invoice_id(self) -> int:
        return self.live.balance.topup(amount="50.00", gateway="card").invoice_id

    def unpaid_invoice_id(self) -> int:
        """An unpaid renewal: the balance did not cover it on its due date."""
        server = self.server()
        self.live.servers.update(server.id, auto_renew=True)
        self.control("PATCH", "/account", {"balance": "0.00"})
        self.advance(31 * 86_400)
        self.control("PATCH", "/account", {"balance": "500.00"})
        return next(invoice.id for invoice in self.live.invoices.list(status="not_paid"))

    def extra_ip(self, server_id: int) -> m.Ip:
        before = {ip.id for ip in self.live.servers.ips.list(server_id)}
        self.live.servers.ips.add(server_id)
        self.advance(1)
        return next(ip for ip in self.live.servers.ips.list(server_id) if ip.id not in before)

    def webhook(self) -> m.SubscriptionCreated:
        return self.live.webhooks.create(url=f"{HOOKS}/in", events=["server.created", "ping"])

    def delivery_id(self) -> int:
        result = self.live.webhooks.test(self.webhook().id)
        assert result.delivery is not None
        return result.delivery.id
