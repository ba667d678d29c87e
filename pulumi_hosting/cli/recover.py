"""`pulumi-hosting recover`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulumi_hosting.cli.connection import connect, files
from pulumi_hosting.cli.output import json_option, json_text, print_warning, table
from pulumi_hosting.cli.progress import Progress

if TYPE_CHECKING:
    from pulumi_hosting.reports.recovery import Unfinished

UNFINISHED = 7
"""Exit code when something is to be done, as of ``pulumi preview --expect-no-changes``."""


@click.command()
@click.argument(
    "export",
    metavar="EXPORT",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@json_option
def recover(export: Path, as_json: bool) -> None:
    """Say what a crashed run left unfinished in a stack, and the command that resolves each of it.

    EXPORT is a file that `pulumi stack export` wrote; - is standard input. With HOSTING_API_KEY it says what
    of it exists on the account. Nothing is changed. Exit codes: 0 when nothing is unfinished, 7 when
    something is to be done, 2 for a file that is no export.

    Example: pulumi stack export | pulumi-hosting recover -
    """
    from pulumi_hosting.reports import recovery
    from pulumi_hosting.reports.run_results import stack_export

    with files():
        found = stack_export(export)
        rows = recovery.unfinished(found)
    if rows:
        rows = _with_account(rows, found)
    if as_json:
        facts = {"unfinished": [row.facts() for row in rows], "commands": recovery.commands(rows)}
        click.echo(json_text(facts))
    else:
        click.echo(_text(rows, recovery.commands(rows)))
    sys.exit(UNFINISHED if rows else 0)


def _with_account(rows: "list[Unfinished]", export: Mapping[str, Any]) -> "list[Unfinished]":
    from pulumi_hosting.client.exceptions import HostingError
    from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
    from pulumi_hosting.reports import recovery
    from pulumi_hosting.reports.account_objects import read_account, reading

    try:
        with Progress() as progress, connect(progress) as client:
            request = reading(client, warn=progress.above(print_warning))
            kinds = list(dict.fromkeys(row.kind for row in rows))
            account = read_account(request, kinds, started=progress.step)
            held = [(item.kind, item.id) for item in ManagedObjects.of_stack(export)]
            return recovery.with_account(rows, request, account, held)
    except HostingError as error:
        print_warning(f"the account was not checked: {error}")
    return rows


def _text(rows: "list[Unfinished]", commands: list[str]) -> str:
    if not rows:
        return "Nothing is unfinished."
    cells = [(row.kind.replace("_", " "), row.name, row.pending, row.account) for row in rows]
    lines = [table(("KIND", "NAME", "PENDING", "ON THE ACCOUNT"), cells), ""]
    lines += [f"Before: {row.edit}" for row in rows if row.edit]
    lines += [f"Next: {command}" for command in commands]
    lines.append("If the stack is locked by the killed run: pulumi cancel. Then run recover on a new export.")
    return "\n".join(lines)
