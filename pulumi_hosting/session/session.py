"""What every request of one process, or one run, shares."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from pulumi_hosting.client.client import WALK_LIMIT, Client
from pulumi_hosting.session.account_snapshot import Answers, AskAgain, ReadPage
from pulumi_hosting.session.clock import RunClock
from pulumi_hosting.session.ownership import Ownership
from pulumi_hosting.session.shared_reads import Reads


class Session:
    """Client, clock, shared reads and ownership. Made once per process or run; thread-safe as its parts are.

    - ``declared_mode``: the mode of the keys that may write, ``live`` or ``test``; None if not set.
    - ``scope``: the setting ``hosting:scope``, which is part of each identity; None if it is not set.
    - ``strict``: refuse what is otherwise only warned of: taking over an object that nothing but the identity
      names, for one.
    - ``starts_empty``: whether the run has found no state of an earlier one; False if none is kept.
    - ``paying``: held while a request pays this cost, None if it is not known; raises to refuse it.
    - ``poll_interval``: the longest pause between two looks at something asynchronous, in seconds.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        clock: RunClock | None = None,
        reads: Reads | None = None,
        ownership: Ownership | None = None,
        declared_mode: str | None = None,
        scope: str | None = None,
        strict: bool = False,
        poll_interval: float = 5.0,
    ) -> None:
        self._client = client
        self.clock = clock or RunClock()
        self.reads = reads or Reads()
        if client is not None:
            self.reads.watch(client)
        self.ownership = ownership or Ownership()
        self.declared_mode, self.scope, self.strict = declared_mode, scope, strict
        self.poll_interval = poll_interval
        self.starts_empty = False
        self.paying: Callable[..., AbstractContextManager[object]] = lambda request, cost: nullcontext()
        self.addresses_to_buy: defaultdict[str, set[str]] = defaultdict(set)  # server → who has not begun to
        self._announced: set[tuple[str | None, str, str]] = set()

    @property
    def client(self) -> Client:
        if self._client is None:
            raise ValueError("the session has no client")
        return self._client

    @property
    def mode(self) -> str:
        """``test`` with a test key, whose writes are only simulated, else ``live``."""
        return "test" if self.client.is_test_key else "live"

    def announces(self, kind: str | None, identity: str, id: str) -> bool:
        """Whether it was not said before that the declaration takes this object over; from now on it was."""
        known = (kind, identity, id) in self._announced
        self._announced.add((kind, identity, id))
        return not known

    def snapshot(
        self, part: str, ask: Callable[[], Answers], max_age: float, ask_again: AskAgain = None
    ) -> dict[str, list[Any]]:
        """A part of the snapshot of the account: see ``AccountSnapshot.get``."""
        return self.reads.snapshot.get(part, ask, self.clock.monotonic, max_age, ask_again)

    def listed(self, part: str, operation: str, max_age: float) -> list[Any]:
        """One list of a part: see ``AccountSnapshot.listed``."""
        return self.reads.snapshot.listed(part, operation, self.page, self.clock.monotonic, max_age)

    @property
    def page(self) -> ReadPage:
        """Asks for a page of a list, the one at a ``cursor``."""
        return partial(self.client.call, query={"limit": WALK_LIMIT})
