"""A purchase whose answers are listed, for the tests of its loop."""

from contextlib import AbstractContextManager
from typing import Any

from pulumi_hosting.exactly_once import purchase_journal
from pulumi_hosting.exactly_once.idempotency_keys import KeyWalk
from pulumi_hosting.exactly_once.purchase import Purchase
from tests.exactly_once.service import (
    PAID,
    Service,
)

KIND, SUBJECT = "server", "the one"
LOOKS = ("before", "busy", "conflict", "lost", "failed", "undone")


class Loop:
    """One purchase from a service, and what is looked at and asked on the way. ``shows``: what the account
    shows at each look, by its reason."""

    def __init__(self, *answers: Any, shows: dict[str, list[Any]] | None = None, **service: Any) -> None:
        self.service = Service([*answers] or [PAID], **service)
        self.service.meanwhile = self._note_entry
        self.shows = shows or {}
        self.looked = list[str]()
        self.entries = list[bool]()
        """Whether the journal had an entry, at each request."""
        self.request = self.service.request()
        self.ring = self.service.ring("create_server", {}, self.request.identity)

    def keys(self, *generations: int) -> list[str]:
        return [self.ring.key(generation) for generation in generations]

    def entry(self) -> purchase_journal.Entry | None:
        """What a new process is told by the journal."""
        return purchase_journal.interrupted(self.service.request(), KIND, SUBJECT)

    def report(self) -> None:
        """The frontend has been given what this request came to."""
        purchase_journal.reported(self.request.unreported)

    def _note_entry(self) -> None:
        self.entries.append(self.entry() is not None)

    def _look(self, when: str) -> Any:
        self.looked.append(when)
        found = self.shows.get(when, [None])
        return found[0] if len(found) == 1 else found.pop(0)

    def purchase(self, **more: Any) -> Purchase[Any, Any]:
        def turn() -> AbstractContextManager[object]:
            return self.service.locks.lock(SUBJECT)

        given: dict[str, Any] = {
            "walk": lambda: KeyWalk(self.ring, ask=self.service.ask),
            "look": self._look,
            "send": lambda idempotency_key: self.service.send(idempotency_key),
            "accept": lambda answer, walk: answer,
            "turn": turn,
            "concerns": lambda found: found.id in (31, 32),
        }
        purchase = Purchase[Any, Any](self.request, "order of it", KIND, subject=SUBJECT)
        for name, value in {**given, **more}.items():
            setattr(purchase, name, value)
        return purchase

    def carry_out(self, **more: Any) -> Any:
        return self.purchase(**more).carry_out()
