"""Reads that many resources share: sent once, and valid for a while.

The first to ask fetches an answer and the others wait for it. What a write makes untrue is forgotten, or
brought up to date: by ``observe`` for the snapshot of the account, by the code that writes for all else.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.requests import HttpRequest
from pulumi_hosting.client.transport import HttpResponse
from pulumi_hosting.session.account_snapshot import AccountSnapshot, Storage
from pulumi_hosting.session.own_writes import SHOWING, changes_of, shown_again
from pulumi_hosting.session.page_walk import PageWalk, SingleReads

T = TypeVar("T")
_CREATES = ("create_server", "register_domain", "transfer_domain")  # what was there before stays as it was
_NO_WALK = ("balance", "webhooks")  # parts that say nothing of servers and domains
Key = tuple[object, ...]


@dataclass
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    at: float | None = None
    """When it was read; None: never, or forgotten."""
    forgotten: int = 0


class Reads:
    """Thread-safe. ``now`` in the methods is any monotonic time in seconds, the same for all calls.

    - ``snapshot``: what the account showed; ``storage``: where that is kept, the memory of this process by
      default.
    - ``walks``: the lists of objects that are read one by one, by their operation.
    """

    def __init__(self, storage: Storage | None = None) -> None:
        self._guard = threading.Lock()
        self._entries: dict[Key, _Entry] = {}
        self.snapshot = AccountSnapshot(storage)
        single = SingleReads()
        self.walks = {operation: PageWalk(single) for operation in ("list_servers", "list_domains")}
        self._doubted: set[str] = set()

    def get(self, key: Key, fetch: Callable[[], T], now: Callable[[], float], max_age: float) -> T:
        """What ``fetch`` answered at most ``max_age`` seconds ago, or answers now; several askers of one
        key wait for one answer.
        """
        with self._guard:
            entry = self._entries.setdefault(key, _Entry())
        with entry.lock:
            if entry.at is None or now() - entry.at > max_age:
                with self._guard:
                    before = entry.forgotten
                began = now()
                value = fetch()
                with self._guard:
                    entry.value = value
                    # A write that came while the answer was under way may or may not be in it.
                    entry.at = began if entry.forgotten == before else None
                return value
            found: T = entry.value
            return found

    def forget(self, *prefix: object) -> None:
        """Every answer whose key begins so, and the part of the snapshot with this name."""
        self.snapshot.forget(" ".join(map(str, prefix)))
        with self._guard:
            for key, entry in self._entries.items():
                if key[: len(prefix)] == prefix:
                    entry.at = None
                    entry.forgotten += 1

    def watch(self, client: Client) -> None:
        """Bring the snapshot up to date with what this client sends, unless that is done already."""
        watching = client.transport.observer
        if watching is None or isinstance(getattr(watching, "__self__", None), Reads):
            client.transport.observer = self.observe

    def observe(self, request: HttpRequest, response: HttpResponse | None) -> None:
        """Bring the snapshot up to date with a request of ours that was answered, or may have been carried
        out (``response`` is None). Raises nothing: the answer must reach whoever waits for it."""
        if not request.operation.is_write and request.operation.id not in SHOWING:
            return
        try:
            self._observe(request, response)
        except Exception:  # noqa: BLE001  # then this process knows nothing any more, and asks again
            self.snapshot = AccountSnapshot()

    def _observe(self, request: HttpRequest, response: HttpResponse | None) -> None:
        operation = request.operation
        changes = [*changes_of(request, response)]
        # What this process has put in doubt, its next read of the object makes certain.
        if operation.id == "get_order" or request.path.rpartition("/")[2] in self._doubted:
            changes += shown_again(request, response)
        for change in changes:
            if change.action == "doubt":
                self._doubted.add(change.key)
            elif change.operation == "list_servers":
                self._doubted.discard(change.key)
            self.snapshot.apply(change)
            walk = self.walks.get(change.operation)
            if walk is not None:
                walk.remember(change.key, None)
            elif change.action == "forget" and change.part not in _NO_WALK and operation.id not in _CREATES:
                for walk in self.walks.values():
                    walk.forget()
