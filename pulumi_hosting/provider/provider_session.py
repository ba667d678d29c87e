"""What the resources of one provider process share: client, clock, reads, ownership, and the run's budget."""

import copy
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ConfigurationError, HostingError
from pulumi_hosting.exactly_once.local_files import account_scope
from pulumi_hosting.planning.budget import Budget
from pulumi_hosting.planning.modes_and_scopes import refuse_other_mode
from pulumi_hosting.planning.plan import cannot_answer
from pulumi_hosting.provider import names
from pulumi_hosting.provider.failures import WORDS
from pulumi_hosting.provider.names import PropertyValues
from pulumi_hosting.provider.replacements import Replacements
from pulumi_hosting.provider.run_ledger import RunLedger
from pulumi_hosting.provider.stack_settings import SETTINGS, StackSettings
from pulumi_hosting.resources.base import AnyResource
from pulumi_hosting.session.clock import RunClock
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.session import Session

log = logging.getLogger("pulumi_hosting")

NO_ORGANIZATION = "organization"
"""What Pulumi calls the organization if there is none: with a backend of one's own."""

REACH_WITHIN = 5.0  # seconds for the first request of a process, retries included
_BALANCE_WITHIN = 3.0  # seconds for its last; engines wait five before they end it


def print_line(line: str) -> None:
    """Pulumi shows a provider's output as information about the stack."""
    # One write: lines of several threads must not run together.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _connection(settings: StackSettings) -> tuple[Secret | None, str | None, Secret | None]:
    return settings.api_key, settings.base_url, settings.store


class Interrupted(ResourceError):
    """The run was cancelled during a wait; running again continues it."""


@dataclass
class InterruptibleClock(RunClock):
    """Waits end at once when the run is cancelled."""

    cancelled: threading.Event = field(default_factory=threading.Event)

    def sleep(self, seconds: float) -> None:
        if self.cancelled.wait(seconds):
            raise Interrupted("cancelled while waiting. Next: run again; it goes on from here")

    def raise_if_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise Interrupted("cancelled before it was ordered. Next: run again")


class ProviderSession(Session):
    """Made once per process. Environment first, then configuration: what an engine stores may be stale,
    the environment is not.
    """

    clock: InterruptibleClock

    def __init__(
        self, environ: Mapping[str, str] = os.environ, connect: Callable[..., Client] = Client
    ) -> None:
        super().__init__()
        self.clock = InterruptibleClock()
        self._environ = environ
        self._connect = connect
        self._lock = threading.Lock()
        self._told = threading.local()
        self.settings = StackSettings()
        self._has_live = False
        self._no_writes: str | None = None
        self._probe = threading.Lock()
        self._probed = False
        self._unreachable: HostingError | None = None
        self._warned = False
        self._told_money = ""
        self.stopped: dict[str, str] = {}  # label → why the creation of what is declared will stop
        self.due: dict[tuple[str, str], tuple[datetime, str]] = {}
        """Kind and id of what this process saw → until when it is paid, and how messages name it."""
        self.say: Callable[[str], None] = print_line  # information about the stack
        self.applies = False  # whether it is known that the run is an update, not a preview
        self.starts_empty = True  # until the engine tells of an entry of the stack's state
        self.replacements = Replacements()
        self.ledger = RunLedger(lambda: account_scope(self.client))
        self.budget = Budget(ledger=self.ledger)

    # --- settings

    def configure(self, config: Mapping[str, Any]) -> None:
        """Take the settings; nothing is sent. Raises ``ConfigurationError`` for a wrong value."""
        settings = StackSettings.of(config, self._environ)
        with self._lock:
            if _connection(settings) != _connection(self.settings):
                self._client, self._probed, self._unreachable = None, False, None
            self.settings = settings
            self.scope, self.strict = settings.scope, settings.strict
            self.budget.limit = settings.limit
            if settings.month.given != self.budget.month.given:  # else it knows what was spent before the run
                self.budget.month, self.paying = settings.month, settings.month.paying

    def identity(self, declared: str, organization: str | None = None) -> str:
        """What names a resource for ever: ``pulumi:<project>/<stack>/<kind>/<name>``, within the organization
        and the scope, if there is one.

        >>> session = ProviderSession({"HOSTING_SCOPE": "team"})
        >>> session.configure({})
        >>> session.identity("pulumi:shop/dev/server/web", "acme")
        'pulumi[team]:acme@shop/dev/server/web'
        """
        prefix, _, path = declared.partition(":")
        within = (
            f"{quote(organization, safe='')}@" if organization and organization != NO_ORGANIZATION else ""
        )
        return f"{prefix}{f'[{self.settings.scope}]' if self.settings.scope else ''}:{within}{path}"

    @property
    def client(self) -> Client:
        with self._lock:
            if self._client is None:
                api_key, base_url = self.settings.api_key, self.settings.base_url
                for value, name, flag in ((api_key, "apiKey", "--secret "), (base_url, "baseUrl", "")):
                    if not value:
                        raise ConfigurationError(
                            f"{SETTINGS[name]} is not set. Next: set it, or run pulumi config set "
                            f"{flag}hosting:{name} …"
                        )
                self._client = self._connected()
                self.reads.watch(self._client)
                limiter = self._client.rate_limiter
                limiter.sleep = lambda seconds: self.clock.sleep(seconds)  # the clock of a test comes later
                limiter.on_wait = self._tell
                if self.settings.rate_limit_timeout is not None:
                    limiter.timeout = self.settings.rate_limit_timeout
            return self._client

    def _connected(self, **options: float) -> Client:
        client = self._connect(
            self.settings.api_key, self.settings.base_url, store=self.settings.store, **options
        )
        client.keeps_refusal, client.words = True, WORDS
        return client

    def tells(self, info: Callable[[str], None]) -> None:
        """Lines about the requests of this thread go to ``info`` from now on."""
        self._told.info = info

    def _tell(self, line: str) -> None:
        getattr(self._told, "info", log.info)(line)

    def unreachable(self) -> HostingError | None:
        """Why the account cannot be asked, or None. Tried once per process, for at most ``REACH_WITHIN``
        seconds. Raises ``ApiError`` if the service refuses the key, which is asked once too.
        """
        client = self.client
        with self._probe:
            if not self._probed:
                self._probed = True
                self._unreachable = self._try_to_reach(client)
        if client.refusal is not None:
            raise copy.copy(client.refusal)
        return self._unreachable

    def _try_to_reach(self, client: Client) -> HostingError | None:
        with self._connected(deadline=REACH_WITHIN) as probe:
            try:
                client.key_owner.get(probe.me)
            except HostingError as error:
                # 429 may pass within the run. After any other answer, the calls that follow report what is
                # wrong.
                return error if cannot_answer(error) and getattr(error, "status", None) != 429 else None
            finally:
                client.refusal = client.refusal or probe.refusal
        return None

    def first_warning(self) -> bool:
        """Whether this process has not warned yet that the account cannot be asked."""
        with self._lock:
            first, self._warned = not self._warned, True
            return first

    # --- who may change what

    def has_entry(self, olds: Mapping[str, Any]) -> None:
        """The engine asks about a resource that the state has, if ``olds`` are not empty."""
        if olds:
            self.starts_empty = False

    def record_mode(self, mode: str | None) -> None:
        """An object of the stack was made with a key of this mode."""
        self._has_live = self._has_live or mode == "live"

    def forbid_writes(self, reason: str) -> None:
        """Start no write from now on; a write under way goes on."""
        self._no_writes = self._no_writes or reason

    def must_be_able_to_write(self, *, creating: bool = False) -> None:
        """Raise ``ResourceError`` if this process must not change anything."""
        if self._no_writes is not None:
            raise ResourceError(f"{self._no_writes}; nothing was sent. Next: run again")
        refuse_other_mode(self.client, self.settings.mode)
        if creating and self.client.is_test_key and self._has_live:
            raise ResourceError(
                "this stack holds objects made with a live key, and a test key must not add simulated ones "
                "to them; nothing was sent. Next: use the live key for changes, the test key for previews"
            )

    def cancel(self) -> None:
        """End every wait, and start no write from now on; what exists by then is recorded."""
        self.forbid_writes("the run was cancelled")
        self.clock.cancelled.set()

    def credited(self, amount: Decimal, currency: str | None) -> None:
        """A removal credited this to the balance, really with a live key."""
        if not self.client.is_test_key:
            self.budget.moved("credited", amount, currency)

    def parent(self, props: PropertyValues, *, is_urn: bool) -> tuple[str, PropertyValues] | None:
        """Label and values of the server that a resource is declared with, while this run is still to make
        that. ``is_urn``: whether the label is its URN."""
        if not (declared := props.get(names.SERVER)):
            return None
        label = str(declared) if is_urn else self.identity(declared, props.get(names.ORGANIZATION))
        found = self.replacements.of(label)
        return (label, found.values()) if found is not None and found.wanted else None

    def falls_due(self, resource: AnyResource, shown: PropertyValues) -> None:
        """Note until when what this process saw is paid."""
        if until := shown.get("expires_at") or shown.get("next_due_at"):
            what = f"{resource.title} {shown['id']} ({shown['name']})"
            self.due[resource.kind, shown["id"]] = datetime.fromisoformat(until), what

    def money_line(self) -> str | None:
        """What this process has charged and credited, and the balance after it; None if there is nothing new
        to say, with what falls due next of what it saw. The balance costs a request, and is left out if it
        cannot be read at once."""
        line = self.budget.summary()
        with self._lock:
            is_new, self._told_money = line != self._told_money, line
        if not is_new:
            return None
        with suppress(HostingError), self._connected(deadline=_BALANCE_WITHIN) as client:
            line += f", balance {client.balance.get().balance}"
        now = self.client.known_time or self.clock.now()
        coming = (found for found in self.due.values() if found[0] > now)
        # of one day by name: ids come in the order of the run
        if due := min(coming, key=lambda found: (found[0].date(), found[1].partition("(")[2]), default=None):
            line += f"; due next: {due[1]} on {due[0]:%Y-%m-%d}"
        return line


SESSION = ProviderSession()
