"""What a reader must not miss of a change: erased disks, deletions, domains that lapse, charges above a
limit."""

from collections.abc import Iterable, Iterator

from pulumi_hosting.rehearsal.managed_objects import DOMAIN, SERVER, SERVER_IP
from pulumi_hosting.reports.run_results import Planned, PlannedChange

_ENDS = {
    "replace": "is replaced by a new server, and its disk is erased",
    "delete": "is deleted, and its disk is erased",
    "reinstall": "is reinstalled, and its disk is erased",
}


def dangers(planned: Planned) -> tuple[str, ...]:
    """A sentence each, the worst kind first."""
    return (
        *_sentences(planned.changes, (SERVER,)),
        *_sentences(planned.changes, (DOMAIN,)),
        *_sentences(planned.changes, ()),
        *planned.beyond_limit,
    )


def _sentences(changes: Iterable[PlannedChange], kinds: tuple[str, ...]) -> Iterator[str]:
    """Of these kinds; without any, of all others than servers and domains."""
    for change in changes:
        is_meant = change.kind in kinds if kinds else change.kind not in (SERVER, DOMAIN)
        if is_meant and (what := _what(change)):
            id = f" ({change.before['id']})" if change.before.get("id") else ""
            yield f"{change.kind.replace('_', ' ')} {change.name}{id} {what}"


def _what(change: PlannedChange) -> str:
    if change.kind == SERVER:
        return _ENDS.get(change.action, "")
    if change.kind != DOMAIN:
        is_given_up = change.action == "replace" and change.kind == SERVER_IP
        return (
            "is deleted" if change.action == "delete" else "is given up for a new one" if is_given_up else ""
        )
    before, after = change.before, change.after
    if change.action in ("delete", "replace") or (
        before.get("auto_renew") and after.get("auto_renew") is False
    ):
        until = str(before.get("expires_at") or "")[:10]
        return f"will not renew itself: it lapses{f' on {until}' if until else ''}"
    return ""
