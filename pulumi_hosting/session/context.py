"""What a resource or an action is given: who asks, with which client, and how long it may take."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pulumi_hosting.api import models as m
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.session.clock import Clock, Poller
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.ownership import Ownership
from pulumi_hosting.session.shared_reads import Reads

T = TypeVar("T")
log = logging.getLogger("pulumi_hosting")


@dataclass
class Context:
    """One user's wish as a handler sees it.

    - ``identity``: what names this declaration for ever: ``pulumi:<project>/<stack>/<type>/<name>`` or ``ansible:<scope>/<name>``. Keys
      and the ownership mark are derived from it; it holds no secret.
    - ``name_is_identity``: true where nothing else is remembered (Ansible): the living object of that name is the one meant.
    - ``keeps_secrets``: whether a secret that is shown once is kept somewhere by whoever asks.
    - ``owned``: ids this declaration owns already; never mistaken for a lost one.
    - ``wait_timeout``: seconds to wait for anything asynchronous; ``poll_interval``: the longest pause between two looks, in seconds.
    - ``declared_mode``: the mode of the keys that may write, ``live`` or ``test``; None where nobody said.
    - ``scope``: the setting ``hosting:scope``, which is part of the identity; None where it is not set.
    - ``strict``: refuse what is otherwise only warned of: taking over an object that nothing but the identity names, for one.
    - ``taken_over``: ids that ``create`` took over instead of making them, filled by it.
    - ``save``: called with the state so far by whoever does several things one after the other, should a later one fail.
    - ``approve``: called with the price before something is paid that may have been announced as found; raises to refuse it.
    - ``tell``: one line of progress for the person who waits; ``warn``: one that they should see afterwards.
    - ``skip_damaged``: called for each object of a listing that cannot be read, which is then left out; None stops with an error. Only for
      those who list what there is, never for those who conclude that something is absent.
    """

    client: Client
    identity: str
    name_is_identity: bool = False
    keeps_secrets: bool = True
    owned: frozenset[str] = frozenset()
    ownership: Ownership = field(default_factory=Ownership)
    reads: Reads = field(default_factory=Reads)
    wait_timeout: float = 600.0
    poll_interval: float = 5.0
    clock: Clock = field(default_factory=Clock)
    declared_mode: str | None = None
    scope: str | None = None
    strict: bool = False
    taken_over: set[str] = field(default_factory=set)
    save: Callable[[Any], None] = lambda state: None
    approve: Callable[[Cost], None] = lambda cost: None
    info: Callable[[str], None] = log.info
    warn: Callable[[str], None] = log.warning
    skip_damaged: Callable[[HostingError], None] | None = None

    @property
    def mode(self) -> str:
        """``test`` with a test key, whose writes are only simulated, else ``live``."""
        return "test" if self.client.is_test_key else "live"

    def service_now(self) -> datetime:
        """The service's time, for the age of what is on the account: the clock of this machine may be wrong. May send a request."""
        return self.client.service_now()

    def poller(self, at_most: float | None = None) -> Poller:
        """A wait of ``wait_timeout`` seconds, or less."""
        seconds = self.wait_timeout if at_most is None else min(at_most, self.wait_timeout)
        return Poller(self.clock, seconds, self.poll_interval)

    def shared(self, key: tuple[object, ...], fetch: Callable[[], T], max_age: float = 60.0) -> T:
        """An answer that everything in this process may share for ``max_age`` seconds."""
        return self.reads.get(key, fetch, self.clock.monotonic, max_age)


_ACCOUNTS: WeakKeyDictionary[Client, m.Me] = WeakKeyDictionary()


def know_account(client: Client, me: m.Me) -> None:
    """Take over what another client with the same key was answered."""
    _ACCOUNTS[client] = me


def account(client: Client) -> m.Me:
    """Whose key this is; asked once per client."""
    me = _ACCOUNTS.get(client)
    if me is None:
        me = _ACCOUNTS[client] = client.me()
    return me
