"""Objects that the tasks of a run read by id, one after the other.

A run never says how many there will be, and a list shows a hundred for one request. So the first three are
read singly, unless the run has the list already; then the list is read, for all that follow.
"""

from collections.abc import Callable
from typing import Any

from pulumi_hosting.session.account_snapshot import Change
from pulumi_hosting.session.page_walk import SINGLE_READS
from pulumi_hosting.session.request import Request

_RUN = 86400.0  # seconds; longer than a run takes


def known_by_id(
    request: Request, part: str, operation: str, id: str, max_age: float, read_list: Callable[[], object]
) -> Any:
    """The object as the run's list shows it, at most ``max_age`` seconds old. None: it must be read singly;
    only that shows that it is gone.

    - ``part``, ``operation``: where the snapshot has the list. ``read_list`` brings it up to date.
    """
    snapshot, now = request.reads.snapshot, request.clock.monotonic
    found = snapshot.row(part, operation, id, now(), max_age)
    if found is None and len(_read_singly(request, operation)) >= SINGLE_READS:
        read_list()
        found = snapshot.row(part, operation, id, now(), max_age)
    return found


def was_read_singly(request: Request, operation: str, id: str, found: Any) -> None:
    """Count a single read; ``found`` is what it showed."""
    if found is not None:
        _read_singly(request, operation)  # so that there is something to add to
        part = f"single {operation}"
        request.reads.snapshot.apply(Change("set", part, operation, id, found))


def _read_singly(request: Request, operation: str) -> list[Any]:
    part = f"single {operation}"
    return request.session.snapshot(part, lambda: {operation: []}, _RUN)[operation]
