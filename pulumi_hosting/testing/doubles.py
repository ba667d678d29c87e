"""An emulator of the API in the process of a test, and what the test asks of it."""

import json
import socket
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import httpx

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.control.account_file import contents, fill
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.dialects import Dialect
from pulumi_hosting.emulator.formats import parse_timestamp
from pulumi_hosting.emulator.in_process_transport import Transport

if TYPE_CHECKING:
    from pulumi_hosting.client.async_services.client import AsyncClient

START = "2027-01-31T08:00:00Z"
_GONE = ("cancelled", "terminated", "failed")
_HERE = "http://127.0.0.1:1"
"""The address of an emulator in this process, where nothing listens."""

AccountData = Mapping[str, Any] | str | PathLike[str]
"""The sections of an account file (``docs/emulator-control.md``), or the path of one."""


_OPTIONS = ("dialect", "seed", "readings", "provisioning_delay", "ip_delay", "routes")


class HostingEmulator:
    """The whole API with a fresh account in this process; its clock stands still until it is moved.

    - ``account``: what the account starts with; None: as a fresh emulator.
    - ``now``: RFC 3339, when the clock starts; ``runtime_dir``: where processes of the test keep their notes.
    - ``options``: ``dialect`` (``spec`` or ``live``), ``seed``, ``provisioning_delay`` and ``ip_delay``
      (seconds of the clock), ``routes`` (origins of webhooks to URLs of this machine).

    Raises ``UnusableAccountFile`` or ``ControlError`` for data that it cannot start with, ``ValueError`` for
    options.
    """

    def __init__(
        self,
        account: AccountData | None = None,
        *,
        now: str = START,
        runtime_dir: Path | None = None,
        **options: Any,
    ) -> None:
        if unknown := sorted(options.keys() - set(_OPTIONS)):
            raise ValueError(f"unknown option: {', '.join(unknown)}; known: now, {', '.join(_OPTIONS)}")
        if (dialect := options.get("dialect", "spec")) not in get_args(Dialect):
            raise ValueError(f"dialect: must be spec or live, and is {dialect!r}")
        if account is not None:
            sections = account if isinstance(account, Mapping) else contents(Path(account))
            options["prepare"] = partial(fill, content=sections)
        self.core = Core(clock=Clock(manual=True, start=parse_timestamp(now)), **options)
        self._runtime_dir = runtime_dir
        self._stop: Callable[[], object] = lambda: None
        self._announce(_HERE)
        self.account, self.clock = HostingAccount(self), HostingClock(self)

    def _announce(self, origin: str) -> None:
        self.core.announce(f"{origin}/v1", f"{origin}/_control", 0)

    @property
    def live_key(self) -> Secret:
        return Secret(self.core.ready_line["live_key"])

    @property
    def test_key(self) -> Secret:
        return Secret(self.core.ready_line["test_key"])

    def transport(self) -> httpx.BaseTransport:
        """For an ``httpx.Client`` of one's own. Answers that a fault delays come at once."""
        return Transport(self.core, sleep=lambda seconds: None)

    def client(self, key: Secret | str | None = None, **options: Any) -> Client:
        """A client with this key, else the live key. Its pauses move the clock. ``options``: those of
        ``Client``.
        """
        return Client(key or self.live_key, f"{_HERE}/v1", **self._usual(self.core.advance) | options)

    def async_client(self, key: Secret | str | None = None, **options: Any) -> "AsyncClient":
        """The same for asyncio: ``async with hosting_emulator.async_client() as client``."""
        from pulumi_hosting.client.async_services.client import AsyncClient  # most tests do without it

        async def sleep(seconds: float) -> None:
            self.core.advance(seconds)

        return AsyncClient(key or self.live_key, f"{_HERE}/v1", **self._usual(sleep) | options)

    def _usual(self, sleep: Callable[[float], object]) -> dict[str, Any]:
        now = self.core.clock.now
        return {"transport": self.transport(), "sleep": sleep, "clock": now, "wall": now}

    def control(self, method: str, path: str, body: object = None) -> Any:
        """A call of the control interface, as ``control("DELETE", "/servers/20001")``. Raises ``ValueError``
        if it is refused.
        """
        request = httpx.Request(method, f"{_HERE}/_control{path}", content=json.dumps(body or {}))
        answer = Transport(self.core).handle_request(request)
        if answer.status_code != 200:
            raise ValueError(f"{method} {path}: {answer.json()['error']}")
        return answer.json()

    def fault(self, action: Mapping[str, Any], **matching: Any) -> None:
        """Arm a fault, as ``fault({"status": 503}, method="POST", path="/servers", times=2)``."""
        self.control("POST", "/faults", {"action": dict(action), **matching})

    @cached_property
    def environment(self) -> dict[str, str]:
        """Variables for a program, an engine or ``ansible-playbook`` in a process of its own. The first use
        starts a server on a free port of this machine; the test's end stops it.
        """
        from pulumi_hosting.emulator.asgi import server_of  # a tenth of a second that most tests save

        listener = socket.create_server(("127.0.0.1", 0))
        ready = threading.Event()
        server = server_of(self.core, on_ready=ready.set)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        ready.wait()

        def stop() -> None:
            server.should_exit = True
            thread.join()
            listener.close()

        self._stop = stop
        self._announce(f"http://127.0.0.1:{listener.getsockname()[1]}")
        line = self.core.ready_line
        variables = {
            "HOSTING_API_KEY": line["live_key"],
            "HOSTING_BASE_URL": line["base_url"],
            "HOSTING_EMULATOR_CONTROL_URL": line["control_url"],
            "HOSTING_EMULATOR_TEST_KEY": line["test_key"],
        }
        return variables | ({"HOSTING_RUNTIME_DIR": str(self._runtime_dir)} if self._runtime_dir else {})

    def close(self) -> None:
        """Stop what :attr:`environment` started."""
        self._stop()


class HostingAccount:
    """What is alive on the account, what it was charged, and what arrived: read at the moment of asking.

    Objects are those of ``GET /_control/objects``; those in the sandbox are left out.
    """

    def __init__(self, emulator: HostingEmulator) -> None:
        self._emulator = emulator

    def alive(self, kind: str) -> list[dict[str, Any]]:
        """``servers``, ``addresses``, ``domains``, ``ssh_keys``, ``subscriptions``, ``orders`` or
        ``invoices`` that have not ended. Raises ``ValueError`` for another kind.
        """
        objects = self._emulator.control("GET", "/objects")
        if kind not in objects:
            raise ValueError(f"there is no kind {kind!r}; there are: {', '.join(objects)}")
        return [row for row in objects[kind] if row.get("status") not in _GONE and not row.get("is_sandbox")]

    @property
    def servers(self) -> list[str]:
        """Names of the living servers, the oldest first."""
        return [row["name"] for row in self.alive("servers")]

    @property
    def domains(self) -> list[str]:
        """Names of the domains that are there."""
        return [row["name"] for row in self.alive("domains")]

    @property
    def ledger(self) -> list[dict[str, Any]]:
        """Every movement of money, the oldest first."""
        return list(self._emulator.control("GET", "/ledger"))

    @property
    def charged(self) -> Decimal:
        """What was paid, less what came back."""
        sign = {"debit": 1, "credit": -1}
        rows = [row for row in self.ledger if row["type"] in ("payment", "refund")]
        return sum((Decimal(row["amount"]) * sign[row["direction"]] for row in rows), Decimal("0.00"))

    @property
    def balance(self) -> Decimal:
        return Decimal(self._emulator.control("GET", "/objects")["accounts"][0]["balance"])

    @property
    def requests(self) -> list[str]:
        """Method and path of each request, as ``POST /servers``."""
        return [f"{row['method']} {row['path']}" for row in self._emulator.control("GET", "/requests")]


class HostingClock:
    """The clock of the emulator."""

    def __init__(self, emulator: HostingEmulator) -> None:
        self._core = emulator.core

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._core.clock.now(), UTC)

    def advance(self, **time: float) -> datetime:
        """Move it, as ``advance(days=31)``; the names are those of ``timedelta``. What becomes due on the way
        happens: renewals, expiries, deliveries.
        """
        self._core.advance(timedelta(**time).total_seconds())
        return self.now
