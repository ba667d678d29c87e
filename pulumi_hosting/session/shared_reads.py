"""What a run or a process knows of the account.

The first to ask fetches an answer and the others wait for it. What a write makes untrue is brought up to date
by ``observe``, or forgotten by the code that writes.
"""

from collections.abc import Callable
from typing import TypeVar

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.requests import HttpRequest
from pulumi_hosting.session.account_snapshot import AccountSnapshot, Now, Storage
from pulumi_hosting.session.own_writes import changes_of

T = TypeVar("T")


class Reads:
    """Thread-safe.

    - ``snapshot``: what the account showed; ``storage``: where that is kept, the memory of this process by
      default.
    - ``values``: what else is read once, in this process.
    """

    def __init__(self, storage: Storage | None = None) -> None:
        self.snapshot, self.values = AccountSnapshot(storage), AccountSnapshot()

    def get(self, key: tuple[object, ...], fetch: Callable[[], T], now: Now, max_age: float) -> T:
        """What ``fetch`` answered at most ``max_age`` seconds ago, or answers now; several askers of one
        key wait for one answer.
        """
        found: T = self.values.get(_part(key), lambda: {"": [fetch()]}, now, max_age)[""][0]
        return found

    def forget(self, *key: object) -> None:
        """What was read under this key, and the part of the snapshot with this name."""
        self.snapshot.forget(_part(key))
        self.values.forget(_part(key))

    def watch(self, client: Client) -> None:
        """Bring the snapshot up to date with what this client sends, unless that is done already."""
        if client.observer is None or isinstance(getattr(client.observer, "__self__", None), Reads):
            client.observer = self.observe

    def observe(self, request: HttpRequest, outcome: object) -> None:
        """Bring the snapshot up to date with what a request of ours has done, or may have. ``outcome``: its
        result or its error. Raises nothing: the answer must reach whoever waits for it."""
        try:
            for change in changes_of(request, outcome):
                self.snapshot.apply(change)
        except Exception:  # noqa: BLE001  # then this process knows nothing any more, and asks again
            self.snapshot = AccountSnapshot()


def _part(key: tuple[object, ...]) -> str:
    return " ".join(map(str, key))
