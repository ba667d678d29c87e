"""One object that is asked for by its id, one after the other: a single read, a page of the list, or all.

Who asks never says how many there will be, and a list shows a hundred for one request. A process that goes on
reads page by page (:mod:`~pulumi_hosting.session.page_walk`). The tasks of a run of Ansible are processes of
their own, which share whole lists: the first three objects are read singly, unless the run has the list
already; then the list is read, for all that follow.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pulumi_hosting.api.models import Page
from pulumi_hosting.session.account_snapshot import Change
from pulumi_hosting.session.page_walk import SINGLE_READS
from pulumi_hosting.session.request import Request

_RUN = 86400.0  # seconds; longer than a run takes


def by_id(
    request: Request,
    part: str,
    operation: str,
    id: str,
    max_age: float,
    *,
    pages: Callable[[], Iterator[Page[Any]]],
    read_list: Callable[[], object],
    read: Callable[[], Any],
    is_gone: Callable[[Any], bool],
) -> Any:
    """The object as a list shows it, at most ``max_age`` seconds old, else as it is. Only a single read shows
    that it is gone: then its answer, or None where nothing shows it any more.

    - ``part``, ``operation``: where the snapshot has the list. ``read_list`` brings it up to date.
    - ``pages`` begins a walk of the list; ``read`` reads the one object.
    """
    now, walk = request.clock.monotonic, request.reads.walks[operation]
    if request.name_is_identity:
        found = request.reads.snapshot.row(part, operation, id, now(), max_age)
        if found is None and len(_read_singly(request, operation)) >= SINGLE_READS:
            read_list()
            found = request.reads.snapshot.row(part, operation, id, now(), max_age)
    else:
        found = walk.find(id, pages, now, max_age)
    if found is not None and not is_gone(found):
        return found
    found = read()
    if not request.name_is_identity:
        walk.remember(id, found)
    elif found is not None:
        _read_singly(request, operation)  # so that there is something to add to
        request.reads.snapshot.apply(Change("set", f"single {operation}", operation, id, found))
    return found


def _read_singly(request: Request, operation: str) -> list[Any]:
    return request.session.snapshot(f"single {operation}", lambda: {operation: []}, _RUN)[operation]
