"""`pulumi-hosting audit`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulumi_hosting.cli.connection import Failed, Unusable, account, files
from pulumi_hosting.cli.output import json_option, json_text, money, plural, print_warning, table, totals
from pulumi_hosting.cli.progress import Progress

if TYPE_CHECKING:
    from pulumi_hosting.reports.audit import Audit, Form

FORMS = ("native", "dynamic", "ansible")
FOUND = 7
"""Exit code when something is unmanaged, as of ``pulumi preview --expect-no-changes``."""
_NOT_GIVEN = {
    "pulumi": "no stack was given, so what stacks manage is listed too. "
    "Next: pulumi stack export > prod.json, then --stack prod.json",
    "ansible": "no playbook run was given, so what playbooks manage is listed too. "
    "Next: run the playbook with --check and the callback hosting.cloud.drift, then --results drift.json",
}


@click.command()
@click.option(
    "--stack",
    "stacks",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="EXPORT",
    help="A file that `pulumi stack export` wrote; may be repeated.",
)
@click.option(
    "--results",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The report that the callback hosting.cloud.drift wrote in a run or check run, or the output of the "
    "callback ansible.posix.json; may be repeated.",
)
@click.option(
    "--form",
    type=click.Choice(FORMS),
    default=FORMS[0],
    show_default=True,
    help="What is to adopt an object: the native provider, dynamic resources, or a playbook.",
)
@click.option(
    "--commands",
    is_flag=True,
    help="Print what removes each object too. Needs --stack; with --form ansible, --results is enough.",
)
@json_option
def audit(
    stacks: tuple[Path, ...], results: tuple[Path, ...], form: "Form", commands: bool, as_json: bool
) -> None:
    """List what is on the account, or paid for, and in no given stack and no given playbook run.

    It asks the account of HOSTING_API_KEY and HOSTING_BASE_URL and changes nothing. Exit codes: 0 when
    everything is managed, 7 when something is not, 1 when the account could not be read completely or a task
    of a playbook run failed.

    Example: pulumi stack export > prod.json; pulumi-hosting audit --stack prod.json
    """
    from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
    from pulumi_hosting.reports import audit as report
    from pulumi_hosting.reports.account_objects import read_account, reading
    from pulumi_hosting.reports.run_results import IncompleteRun, run_results, stack_export

    not_given = _not_given(stacks, results, form)
    if commands and not_given:
        raise Unusable(f"--commands names what deletes objects, but {not_given}")
    with files():
        managed = ManagedObjects.of_stack(*(stack_export(path) for path in stacks))
        try:
            for path in results:
                managed += run_results(path)
        except IncompleteRun as error:
            raise Failed(str(error)) from None
    with Progress() as progress, account(progress) as client:
        request = reading(client, warn=progress.above(print_warning))
        on_account = read_account(request, started=progress.step)
    found = report.audit(on_account, managed, form, commands=commands)
    click.echo(json_text(found.facts()) if as_json else _text(found, form))
    if found.unmanaged and not_given:
        print_warning(not_given)
    for kind, reason in found.unread.items():
        print_warning(f"{plural(kind)} were not checked: {reason}")
    sys.exit(FOUND if found.unmanaged else 1 if found.unread else 0)


def _not_given(stacks: tuple[Path, ...], results: tuple[Path, ...], form: "Form") -> str:
    """What is missing to tell what is managed, and how to give it; empty if it was given."""
    if stacks or (form == "ansible" and results):
        return ""
    return _NOT_GIVEN["ansible" if form == "ansible" else "pulumi"]


def _text(found: "Audit", form: "Form") -> str:
    lines = []
    for item in found.missing:
        lines.append(
            f"{item} is managed and not on the account. Next: pulumi up --refresh, or run the playbook"
        )
    for one in found.ending:
        lines.append(f"{one.kind} {one.name} ({one.id}) is in no stack and no playbook: {one.note}.")
    if found.unread:
        lines.append(f"Not checked: {', '.join(map(plural, found.unread))}.")
    if not found.unmanaged:
        what = "that was checked" if found.unread else "on the account"
        return "\n".join([*lines, f"Everything {what} is managed."])
    rows = [
        (
            row.object.kind,
            row.object.id,
            row.object.name,
            money(row.object.price_monthly, row.object.currency),
            row.object.tag or "",
            row.object.note,
        )
        for row in found.unmanaged
    ]
    lines.append(table(("KIND", "ID", "NAME", "PER MONTH", "TAG", "NOTE"), rows))
    lines.append(f"\n{len(rows)} unmanaged, {totals(found.monthly())} per month\n")
    for row in found.unmanaged:
        lines += [f"{row.object.kind} {row.object.id}", f"  adopt:  {row.adopt}"]
        lines += [f"  remove: {row.remove}"] if row.remove else []
    others = " and ".join(f"--form {other}" for other in FORMS if other != form)
    lines.append(f"\nTo adopt in another form: {others}. To adopt everything: pulumi-hosting import DIR")
    if not any(row.remove for row in found.unmanaged):
        lines.append("To see what removes them: --commands")
    return "\n".join(lines)
