"""What a reader must not miss of a change: erased disks, deletions, domains that lapse, charges above a
limit."""

from pulumi_hosting.rehearsal.managed_objects import DOMAIN, SERVER, SERVER_IP
from pulumi_hosting.reports.run_results import Planned, PlannedChange

_ENDS = {
    "replace": "is replaced by a new server, and its disk is erased",
    "delete": "is deleted, and its disk is erased",
    "reinstall": "is reinstalled, and its disk is erased",
}


def dangers(planned: Planned) -> tuple[str, ...]:
    """A sentence each: of servers, of domains, of other objects, and of what a limit refuses."""
    found = []
    for change in sorted(planned.changes, key=lambda change: (change.kind != SERVER, change.kind != DOMAIN)):
        if what := _what(change):
            id = f" ({change.before['id']})" if change.before.get("id") else ""
            found.append(f"{change.kind.replace('_', ' ')} {change.name}{id} {what}")
    return (*found, *planned.beyond_limit)


def _what(change: PlannedChange) -> str:
    if change.kind == SERVER:
        return _ENDS.get(change.action, "")
    if change.kind != DOMAIN:
        if change.action == "replace" and change.kind == SERVER_IP:
            return "is given up for a new one"
        return "is deleted" if change.action == "delete" else ""
    before, after = change.before, change.after
    if change.action in ("delete", "replace") or (
        before.get("auto_renew") and after.get("auto_renew") is False
    ):
        until = str(before.get("expires_at") or "")[:10]
        return f"will not renew itself: it lapses{f' on {until}' if until else ''}"
    return ""
