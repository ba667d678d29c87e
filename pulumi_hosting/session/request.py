"""What a resource or an action is given: for which declaration it works, how long it may take, and the
callbacks of its frontend.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, TypeVar

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError, OperationInProgress
from pulumi_hosting.client.polling import Poller
from pulumi_hosting.client.shared_store import Scope
from pulumi_hosting.session.clock import RunClock
from pulumi_hosting.session.ownership import Ownership
from pulumi_hosting.session.session import Session
from pulumi_hosting.session.shared_reads import Reads

T = TypeVar("T")
WHOLE_RUN = 86400.0
"""Seconds; longer than a run takes."""
log = logging.getLogger("pulumi_hosting")


@dataclass
class Request:
    """One step for one declaration, in a session.

    - ``identity``: what names this declaration for ever: ``pulumi:<project>/<stack>/<type>/<name>`` or
      ``ansible:<scope>/<name>``. Idempotency keys and the ownership tag are derived from it; it holds no
      secret.
    - ``label``: what tells the declaration from the others of the program: its URN, or the identity that it
      declares. A renamed one keeps its ``identity``.
    - ``kind``: the kind of resource whose ids ``ownership`` is about; None for the session's own.
    - ``name_is_identity``: true if nothing else is remembered (Ansible): the living object of that name is
      the one meant.
    - ``keeps_secrets``: whether a secret that is shown once is kept somewhere by the frontend.
    - ``adopts``: whether ``adopt_id`` names what it takes over, as recorded: nothing is ordered in its place.
    - ``owned``: ids this declaration owns already; never mistaken for a lost one.
    - ``fresh``: whether an object is taken for absent only if an answer shows it that was asked for after
      the question; what is found may be as old as what is reported.
    - ``wait_timeout``: seconds to wait for anything asynchronous.
    - ``taken_over``: ids that ``create`` took over instead of making them, filled by it.
    - ``made``: ids that ``create`` has ordered just now, filled by it: no other run has written to them yet.
    - ``gone``: ids that ``delete`` found gone already, filled by it: what showed them was old.
    - ``unreported``: purchases of this request whose result the frontend has not been given, filled by the
      journal.
    - ``save``: called with the state so far between several changes, should a later one fail.
    - ``is_declared``: whether another declaration of this run has the object with this id and this name, as
      far as the frontend knows beyond ``ownership``.
    - ``approve``: called before something is paid, also if it was announced as found; raises to refuse it.
      What it returns is held until the purchase has its answer.
    - ``parent``: label and declared values of the object that this one is declared with, if the run is still
      to make that.
    - ``stays``: whether the object of this kind and id stays in the program, as far as this run knows.
    - ``credited``: called with what a removal credited to the balance, and the currency if it is named.
    - ``info``: one line of progress for the user who waits; ``warn``: one to see afterwards.
    - ``announce``: one on what is about to be paid, which what was paid replaces; None: as ``info``.
    - ``is_first``: whether the run says something of this kind for the first time.
    - ``skip_damaged``: called for each object of a listing that cannot be read, which is then left out; None
      stops with an error. Only when objects are listed, never when it is concluded that something is
      absent.
    """

    session: Session
    identity: str
    kind: str | None = None
    name_is_identity: bool = False
    keeps_secrets: bool = True
    adopts: bool = False
    owned: frozenset[str] = frozenset()
    fresh: bool = False
    wait_timeout: float = 600.0
    taken_over: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    unreported: list[tuple[Scope, str]] = field(default_factory=list)
    save: Callable[[Any], None] = lambda state: None
    is_declared: Callable[[str, str | None], bool] = lambda id, name: False
    approve: Callable[[], AbstractContextManager[object]] = nullcontext
    stays: Callable[[str, str], bool] = lambda kind, id: True
    credited: Callable[[Decimal, str | None], None] = lambda amount, currency: None
    info: Callable[[str], None] = log.info
    warn: Callable[[str], None] = log.warning
    is_first: Callable[[str], bool] = lambda topic: True
    skip_damaged: Callable[[HostingError], None] | None = None
    label: str = ""
    announce: Callable[[str], None] | None = None
    parent: tuple[str, Mapping[str, object]] | None = None

    def __post_init__(self) -> None:
        self.label = self.label or self.identity

    @property
    def client(self) -> Client:
        return self.session.client

    @cached_property
    def ownership(self) -> Ownership:
        """Which declaration has which object of the kind."""
        return self.session.ownership if self.kind is None else self.session.ownership.of_kind(self.kind)

    def is_of_another(self, id: str) -> bool:
        """Whether another declaration of the run has the object."""
        return self.ownership.is_of_another(self.identity, id)

    def has_owner(self, id: str) -> bool:
        """Whether this declaration or another one of the run has the object."""
        return id in self.owned or self.is_of_another(id)

    @property
    def reads(self) -> Reads:
        return self.session.reads

    @property
    def clock(self) -> RunClock:
        return self.session.clock

    @property
    def mode(self) -> str:
        """``test`` with a test key, whose writes are only simulated, else ``live``."""
        return self.session.mode

    def tell(self, line: str) -> None:
        """A line that belongs to the result: a warning for Ansible, which shows nothing else of a task."""
        (self.warn if self.name_is_identity else self.info)(line)

    def service_now(self) -> datetime:
        """The service's time, for the age of what is on the account: the clock of this machine may be
        wrong. May send a request.
        """
        return self.client.service_now()

    def age_of(self, moment: datetime | None) -> timedelta | None:
        """How long ago that was, by the service's clock; None if it is not known."""
        return None if moment is None else self.service_now() - moment

    def seconds_since(self, began: float) -> float:
        """How long ago ``clock.monotonic()`` was ``began``: the age of what was asked for since."""
        return self.clock.monotonic() - began

    def poller(self, at_most: float = float("inf")) -> Poller:
        """A wait of ``wait_timeout`` seconds, or less."""
        return Poller(self.clock, min(at_most, self.wait_timeout), self.session.poll_interval)

    def when_free(self, what: str, send: Callable[[], T]) -> T:
        """What ``send`` answers, once no other operation on the server ``what`` is running."""
        wait = self.poller()
        while True:
            try:
                return send()
            except OperationInProgress:
                if wait.over:
                    raise
            self.info(f"{what}: another operation is running")
            wait.pause()

    def shared(self, key: tuple[object, ...], fetch: Callable[[], T], max_age: float = 60.0) -> T:
        """An answer that everything in this session may share for ``max_age`` seconds."""
        return self.reads.get(key, fetch, self.clock.monotonic, max_age)

    @property
    def by_id(self) -> Callable[[str, str, str, float], Any]:
        """Finds an object: its part of the snapshot, its list, its id, and how many seconds old it may be.
        None: it must be read singly. So must one that is gone: no list shows that."""
        at_once = 0 if self.name_is_identity else 1  # a task of a playbook seldom asks for more than one
        find, now = self.reads.snapshot.find, self.clock.monotonic
        return partial(find, page=self.session.page, now=now, at_once=at_once)
