"""What is paid until when, which renewals the balance covers, and what ends."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.planning.paid_time import Due, PaidTime
from pulumi_hosting.rehearsal.facts import for_json
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from pulumi_hosting.reports import report
from pulumi_hosting.reports.run_results import managed_by, run_results

HAPPENS = {"renewed": "renews itself", "short": "NOT COVERED", "ends": "ENDS", "over": "OVER"}
_Known = Mapping[tuple[str, str], Sequence[str]]


def run(
    asking: report.Asking, days: int, stacks: tuple[Path, ...], results: tuple[Path, ...]
) -> report.Report:
    managed = [(path, managed_by(path)) for path in stacks]
    managed += [(path, run_results(path)) for path in results]
    known = _known(managed)
    with asking() as (request, step):
        step(1, None, "reading what is paid until when")
        paid = paid_time_of(request).kept_paid(key for _, objects in managed for key in objects.kept_paid)
    within = timedelta(days=days)
    uncovered = paid.uncovered(within)
    found = paid.within(within)
    facts = {
        "now": for_json(paid.now),
        "days": days,
        "balance": for_json(paid.balance),
        "currency": paid.currency,
        "covers": paid.covers(),
        "events": [_facts(paid, event, known) for event in found],
        "not_read": dict(paid.refused),
    }
    warnings = [report.not_read(what, why) for what, why in paid.refused.items()]
    exit_code = report.FOUND if uncovered else 1 if paid.refused else 0
    return report.Report(facts, [*_sections(paid, found, uncovered, known, days)], warnings, exit_code)


def _known(managed: Iterable[tuple[Path, ManagedObjects]]) -> _Known:
    """Which files know each object, by kind and by id and name: an expired domain may have another id."""
    known: dict[tuple[str, str], list[str]] = {}
    for path, objects in managed:
        for item in objects:
            for name in dict.fromkeys((item.id, item.name)):
                known.setdefault((item.kind, name), []).append(path.name)
    return known


def _known_to(event: Due, known: _Known) -> Sequence[str]:
    what = event.what
    return known.get(what.key) or (known.get((what.kind, what.name)) if what.kind == "domain" else None) or ()


def _is_kept(paid: PaidTime, event: Due) -> bool:
    return event.kind == "renewed" and event.what.key in paid.kept


def _facts(paid: PaidTime, event: Due, known: _Known) -> dict[str, object]:
    what = event.what
    return {
        "kind": what.kind,
        "id": what.id,
        "name": what.name,
        "event": "kept" if _is_kept(paid, event) else event.kind,
        "at": for_json(event.at),
        "amount": for_json(what.amount),
        "due": for_json(event.due),
        "known_to": [*_known_to(event, known)],
        "next": paid.step(event) or None,
    }


def _sections(
    paid: PaidTime, found: list[Due], uncovered: list[Due], known: _Known, days: int
) -> Iterator[report.Section]:
    if found:
        headers = ("DAY", "KIND", "ID", "NAME", "SUM", "WHAT HAPPENS", "KNOWN TO")
        yield report.Table(headers, [_row(paid, event, known) for event in found], foreign=(3, 6))
    else:
        yield f"Nothing {'that could be read ' if paid.refused else ''}is due within {days} days."
    yield ""
    amount = "" if paid.balance is None else f"{report.money(paid.balance, paid.currency)}; "
    yield report.Summary("balance", f"{amount}{paid.covers()}")
    if uncovered:
        yield report.Points(
            "ends", "Ends, and is not paid for", [paid.described(event) for event in uncovered]
        )


def _row(paid: PaidTime, event: Due, known: _Known) -> tuple[object, ...]:
    what, day = event.what, f"{event.at:%Y-%m-%d}" if event.at else "not known"
    happens = "TO BE PAID" if what.kind == "invoice" else HAPPENS[event.kind]
    if _is_kept(paid, event):
        happens = "kept paid"
    elif event.kind == "over" and event.at and event.at > paid.now:  # its day is still to come
        happens = "ENDS" if what.is_cancelled else "SUSPENDED"
    price = report.money(what.amount, paid.currency)
    return day, what.kind, what.id, what.name, price, happens, ", ".join(_known_to(event, known))
