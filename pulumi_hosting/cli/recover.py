"""The work of `pulumi-hosting recover`."""

from collections.abc import Iterator
from pathlib import Path

from pulumi_hosting.cli.connection import asking
from pulumi_hosting.cli.output import print_warning
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from pulumi_hosting.reports.account_objects import read_account
from pulumi_hosting.reports.recovery import Unfinished, commands, unfinished, with_account
from pulumi_hosting.reports.report import FOUND, CannotAnswer, Report, Section, Table
from pulumi_hosting.reports.run_results import stack_export


def run(export: Path) -> Report:
    with stack_export(export) as found:
        rows = unfinished(found)
        held = [(item.kind, item.id) for item in ManagedObjects.of_stack(found)]
    if not rows:
        return Report({"unfinished": [], "commands": []}, ["Nothing is unfinished."])
    rows = _with_account(rows, held)
    facts = {"unfinished": [row.facts() for row in rows], "commands": commands(rows)}
    return Report(facts, [*_sections(rows)], exit_code=FOUND)


def _with_account(rows: list[Unfinished], held: list[tuple[str, str]]) -> list[Unfinished]:
    try:
        with asking() as (request, progress):
            kinds = list(dict.fromkeys(row.kind for row in rows))
            account = read_account(request, progress.step, kinds)
            return with_account(rows, request, account, held)
    except CannotAnswer as error:
        print_warning(f"the account was not checked: {error}")
    return rows


def _sections(rows: list[Unfinished]) -> Iterator[Section]:
    cells = [(row.kind.replace("_", " "), row.name, row.pending, row.account) for row in rows]
    yield Table(("KIND", "NAME", "PENDING", "ON THE ACCOUNT"), cells)
    yield ""
    for row in rows:
        if row.edit:
            yield f"Before: {row.edit}"
    for command in commands(rows):
        yield f"Next: {command}"
    yield "If the stack is locked by the killed run: pulumi cancel. Then run recover on a new export."
