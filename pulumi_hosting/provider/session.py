"""What one provider process shares: the client, what it has asked, whose objects are whose, and what this run may spend."""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pulumi_hosting.api.client import Client
from pulumi_hosting.api.errors import ConfigurationError
from pulumi_hosting.api.redact import Secret
from pulumi_hosting.provider.entries import Entries
from pulumi_hosting.resources.base import Clock, Context, NounError
from pulumi_hosting.resources.budget import NOT_A_LIMIT, Budget, money_limit
from pulumi_hosting.resources.claims import Claims
from pulumi_hosting.resources.engine import refuse_other_mode
from pulumi_hosting.resources.reads import Reads

# Setting of the stack or the provider → the variable of the environment that comes first.
SETTINGS: Mapping[str, str] = {
    "apiKey": "HOSTING_API_KEY",
    "baseUrl": "HOSTING_BASE_URL",
    "mode": "HOSTING_MODE",
    "maxCharge": "HOSTING_MAX_CHARGE",
}
MODES = ("live", "test")


class Interrupted(NounError):
    """The run was cancelled while this waited; running again continues it."""


@dataclass
class InterruptibleClock(Clock):
    """Waits end at once when the run is cancelled."""

    cancelled: threading.Event = field(default_factory=threading.Event)

    def sleep(self, seconds: float) -> None:
        if self.cancelled.wait(seconds):
            raise Interrupted("cancelled while waiting. Next: run again; it goes on from here")


class Session:
    """Made once per process. Environment first, then configuration: what an engine stores may be stale, the environment is not."""

    def __init__(self, environ: Mapping[str, str] = os.environ, connect: Callable[[Secret | None, str | None], Client] = Client) -> None:
        self._environ = environ
        self._connect = connect
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._settings: Mapping[str, str] = {}
        self._api_key: Secret | None = None
        self._seen_modes: set[str] = set()
        self._no_writes: str | None = None
        self.entries = Entries()
        self.claims = Claims()
        self.reads = Reads()
        self.budget = Budget()
        self.clock = InterruptibleClock()

    # --- settings

    def configure(self, config: Mapping[str, Any]) -> None:
        """Take ``apiKey``, ``baseUrl``, ``mode``, ``maxCharge``; nothing is sent. Raises ``ConfigurationError`` for a wrong value."""
        given = {name: self._environ.get(SETTINGS[name]) or config.get(name) for name in SETTINGS}
        settings = {name: str(value) for name, value in given.items() if value not in (None, "")}  # a maxCharge of 0 is one
        failures = self.check_config(settings)
        if failures:
            raise ConfigurationError("; ".join(f"{name}: {reason}" for name, reason in failures.items()))
        key = settings.pop("apiKey", None)
        secret = Secret(key) if key else None
        with self._lock:
            if (secret, settings) != (self._api_key, self._settings):
                self._api_key, self._settings, self._client = secret, settings, None
            limit = settings.get("maxCharge")
            self.budget.limit = None if limit is None else Decimal(limit)

    @staticmethod
    def check_config(config: Mapping[str, Any]) -> dict[str, str]:
        """Setting → reason, for those that cannot be used. Values that are not known yet are not judged."""
        failures: dict[str, str] = {}
        mode, limit = config.get("mode"), config.get("maxCharge")
        if isinstance(mode, str) and mode not in MODES:
            failures["mode"] = "must be live or test"
        if isinstance(limit, str | int | float) and money_limit(limit) is None:
            failures["maxCharge"] = NOT_A_LIMIT
        return failures

    @property
    def client(self) -> Client:
        with self._lock:
            if self._client is None:
                base_url = self._settings.get("baseUrl")
                for value, name, flag in ((self._api_key, "apiKey", "--secret "), (base_url, "baseUrl", "")):
                    if not value:
                        raise ConfigurationError(
                            f"{SETTINGS[name]} is not set. Next: set it, or run pulumi config set {flag}hosting:{name} …"
                        )
                self._client = self._connect(self._api_key, base_url)
            return self._client

    # --- who may change what

    def saw(self, mode: str | None) -> None:
        """An object of the stack that was made with a key of this mode."""
        if mode is not None:
            self._seen_modes.add(mode)

    def forbid_writes(self, reason: str) -> None:
        """From now on nothing new is begun; what is under way goes on."""
        self._no_writes = reason

    def must_be_able_to_write(self, *, creating: bool = False) -> None:
        """Raise ``NounError`` where this process must not change anything."""
        if self._no_writes is not None:
            raise NounError(f"{self._no_writes}; nothing was sent. Next: run again")
        refuse_other_mode(self.client, self._settings.get("mode"))
        if creating and self.client.is_test_key and "live" in self._seen_modes:
            raise NounError(
                "this stack holds objects made with a live key, and a test key must not add simulated ones to them; nothing was sent. "
                "Next: use the live key for changes, the test key for previews"
            )

    def cancel(self) -> None:
        """End every wait; what was begun is kept as far as it got."""
        self.clock.cancelled.set()

    def context(
        self,
        kind: str,
        identity: str,
        wait_timeout: float | None,
        tell: Callable[[str], None],
        warn: Callable[[str], None] | None = None,
    ) -> Context:
        claims = self.claims.of_kind(kind)
        return Context(
            client=self.client,
            identity=identity,
            owned=claims.of(identity),
            claims=claims,
            reads=self.reads,
            wait_timeout=wait_timeout or 600.0,
            clock=self.clock,
            tell=tell,
            warn=warn or (lambda line: tell(f"warning: {line}")),
        )


SESSION = Session()
