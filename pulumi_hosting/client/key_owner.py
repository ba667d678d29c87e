"""Whose key a client has."""

import threading
from collections.abc import Callable

from pulumi_hosting.api.models import Me


class KeyOwner:
    """Whose key a client has: what ``GET /me`` answered. Thread-safe.

    ``ask``: how to find out. May be replaced if others know it already.
    """

    def __init__(self, ask: Callable[[], Me]) -> None:
        self.ask = ask
        self._lock = threading.Lock()
        self._me: Me | None = None

    @property
    def is_known(self) -> bool:
        return self._me is not None

    def get(self, ask: Callable[[], Me] | None = None) -> Me:
        """Asked once; those who come meanwhile wait for the answer. ``ask``: instead of the usual way. Raises
        what asking raises."""
        with self._lock:
            if self._me is None:
                self._me = (ask or self.ask)()
            return self._me

    def observe(self, request: object, outcome: object) -> None:
        """A request was answered: by ``GET /me``, perhaps."""
        if isinstance(outcome, Me):
            self._me = outcome
