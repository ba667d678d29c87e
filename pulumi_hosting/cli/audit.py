"""The work of `pulumi-hosting audit`."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from operator import add
from pathlib import Path

from pulumi_hosting.cli.connection import asking
from pulumi_hosting.cli.output import money, plural, totals
from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from pulumi_hosting.reports.account_objects import read_account
from pulumi_hosting.reports.audit import Audit, Form, audit
from pulumi_hosting.reports.report import FOUND, Report, Section, Table, Unusable
from pulumi_hosting.reports.run_results import managed_by, run_results

_NOT_GIVEN = {
    "pulumi": "no stack was given, so what stacks manage is listed too. "
    "Next: pulumi stack export > prod.json, then --stack prod.json",
    "ansible": "no playbook run was given, so what playbooks manage is listed too. "
    "Next: run the playbook with --check and the callback hosting.cloud.drift, then --results drift.json",
}


def run(
    stacks: tuple[Path, ...],
    results: tuple[Path, ...],
    form: Form,
    commands: bool,
    ends_within: timedelta | None,
) -> Report:
    not_given = _not_given(stacks, results, form)
    if commands and not_given:
        raise Unusable(f"--commands names what deletes objects, but {not_given}")
    managed = reduce(add, [*map(managed_by, stacks), *map(run_results, results)], ManagedObjects())
    with asking() as (request, progress):
        account = read_account(request, progress.step)
        paid = None if ends_within is None else paid_time_of(request)
    found = audit(account, managed, form, commands=commands)
    if paid is not None:
        named = {(one.kind, one.id) for one in found.ended}
        ends = [event for event in paid.uncovered(ends_within) if event.what.key not in named]
        found = replace(found, uncovered=tuple(map(paid.described, ends)))
    warnings = [f"{plural(kind)} were not checked: {reason}" for kind, reason in found.unread.items()]
    if found.unmanaged and not_given:
        warnings.insert(0, not_given)
    if paid is not None:
        warnings += [f"{what} were not read: {why}" for what, why in paid.refused.items()]
    has_found = found.unmanaged or found.ended or found.uncovered
    exit_code = FOUND if has_found else 1 if found.unread or (paid and paid.refused) else 0
    return Report(found.facts(), [*_sections(found, form)], warnings, exit_code)


def _not_given(stacks: tuple[Path, ...], results: tuple[Path, ...], form: Form) -> str:
    """What is missing to tell what is managed, and how to give it; empty if it was given."""
    if stacks or (form == "ansible" and results):
        return ""
    return _NOT_GIVEN["ansible" if form == "ansible" else "pulumi"]


def _sections(found: Audit, form: Form) -> Iterator[Section]:
    for item in found.missing:
        yield f"{item} is managed and not on the account. Next: pulumi up --refresh, or run the playbook"
    for one in found.ended:
        yield f"{one.kind} {one.name} ({one.id}) is {one.note}. Next: pulumi-hosting renewals"
    yield from found.uncovered
    for one in found.ending:
        yield f"{one.kind} {one.name} ({one.id}) is in no stack and no playbook: {one.note}."
    if found.unread:
        yield f"Not checked: {', '.join(map(plural, found.unread))}."
    if not found.unmanaged:
        yield f"Everything {'that was checked' if found.unread else 'on the account'} is managed."
        return
    objects = [row.object for row in found.unmanaged]
    yield Table(
        ("KIND", "ID", "NAME", "PER MONTH", "TAG", "NOTE"),
        [
            (one.kind, one.id, one.name, money(one.price_monthly, one.currency), one.tag, one.note)
            for one in objects
        ],
    )
    monthly = totals((one.price_monthly, one.currency) for one in objects)
    yield f"\n{len(objects)} unmanaged, {monthly} per month\n"
    for row in found.unmanaged:
        yield f"{row.object.kind} {row.object.id}\n  adopt:  {row.adopt}"
        if row.remove:
            yield f"  remove: {row.remove}"
    others = " and ".join(f"--form {other}" for other in ("native", "dynamic", "ansible") if other != form)
    yield f"\nTo adopt in another form: {others}. To adopt everything: pulumi-hosting import DIR"
    if not any(row.remove for row in found.unmanaged):
        yield "To see what removes them: --commands"
