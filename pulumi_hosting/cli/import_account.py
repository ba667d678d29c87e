"""`pulumi-hosting import`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulumi_hosting.cli.connection import Failed, Unusable, account
from pulumi_hosting.cli.output import json_option, json_text, plural, print_warning, table
from pulumi_hosting.cli.progress import Progress

if TYPE_CHECKING:
    from pulumi_hosting.reports.account_import import AccountImport
    from pulumi_hosting.reports.import_texts import Steps


@click.command(name="import")
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--form",
    type=click.Choice(["dynamic", "native", "ansible"]),
    default="dynamic",
    show_default=True,
    help="dynamic: a Pulumi program in Python that needs no plugin; native: one for the native provider; "
    "ansible: a playbook.",
)
@json_option
def import_account(directory: Path, form: str, as_json: bool) -> None:
    """Write everything that is on the account as a program or a playbook into DIR.

    Servers, domains, SSH keys, bought addresses, reverse DNS and webhook subscriptions of the account of
    HOSTING_API_KEY and HOSTING_BASE_URL. The account is only read, and no file is overwritten. The first run
    of what was written orders nothing and changes nothing but ownership tags; the second one does nothing.
    Exit codes: 0 when everything was read, 1 when a part of the account could not be read, 2 when DIR has
    such files already.

    Example: pulumi-hosting import shop && cd shop && pulumi stack init prod && pulumi preview
    """
    from pulumi_hosting.reports import import_playbook, import_program
    from pulumi_hosting.reports.account_import import account_import
    from pulumi_hosting.reports.account_objects import read_account, reading

    is_playbook = form == "ansible"
    _must_be_free(directory, import_playbook.FILES if is_playbook else import_program.FILES)
    with Progress() as progress, account(progress) as client:
        if client.is_test_key:
            raise Unusable(
                "HOSTING_API_KEY is a test key, with which objects are only simulated. Next: set a live key "
                "that may read servers, domains and webhooks"
            )
        request = reading(client, warn=progress.above(print_warning))
        objects = read_account(request, started=progress.step)
    found = account_import(objects)
    if is_playbook:
        files, steps = import_playbook.playbook(found), import_playbook.steps(found)
    else:
        chosen: import_program.Form = "native" if form == "native" else "dynamic"
        files = import_program.program(found, chosen, directory.resolve().name)
        steps = import_program.steps(found, chosen)
    if found.declared:
        _write(directory, files)
    else:
        files = {}
    click.echo(
        json_text(_facts(found, directory, files, steps))
        if as_json
        else _text(found, directory, files, steps)
    )
    for text in (*map(str, found.left_out), *(one.remark for one in found.declared if one.remark)):
        print_warning(text)
    for kind, reason in found.unread.items():
        print_warning(f"{plural(kind)} were not read: {reason}")
    sys.exit(1 if found.unread else 0)


def _must_be_free(directory: Path, names: tuple[str, ...]) -> None:
    there = [str(directory / name) for name in names if (directory / name).exists()]
    if there:
        raise Unusable(
            f"{' and '.join(there)} exist{'' if there[1:] else 's'} already; nothing was written. Next: give "
            "another directory"
        )


def _write(directory: Path, files: Mapping[str, str]) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (directory / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise Failed(f"{directory} cannot be written to: {error.strerror or error}") from None


def _text(found: "AccountImport", directory: Path, files: Mapping[str, str], steps: "Steps") -> str:
    from pulumi_hosting.reports.import_texts import next_steps

    if not files and found.unread:
        unread = ", ".join(map(plural, found.unread))
        return f"There is nothing to be declared in what was read; nothing was written. Not read: {unread}."
    if not files:
        return "There is nothing on the account to be declared; nothing was written."
    rows = [(kind, number) for kind, number in found.counts().items()]
    secrets = [
        f"left as configuration, as it may hold a secret: {one.value_of(field)} ({one.object.name})"
        for one, field, _ in found.secrets()
    ]
    return "\n".join(
        [
            table(("KIND", "DECLARED"), rows),
            *(["", *secrets] if secrets else []),
            f"\nwritten: {', '.join(str(directory / name) for name in files)}\n\nNext:",
            *(f"  {line}" for line in next_steps((("cd " + str(directory), ""), *steps))),
        ]
    )


def _facts(
    found: "AccountImport", directory: Path, files: Mapping[str, str], steps: "Steps"
) -> dict[str, Any]:
    return {
        "written": [str(directory / name) for name in files],
        "declared": [
            {"kind": one.object.kind, "id": one.object.id, "name": one.name} for one in found.declared
        ],
        "configuration": [
            {"kind": one.object.kind, "id": one.object.id, "field": field, "name": variable}
            for one, field, variable in found.secrets()
        ],
        "left_out": [
            {"kind": one.object.kind, "id": one.object.id, "field": one.field, "reason": one.reason}
            for one in found.left_out
        ],
        "not_read": dict(found.unread),
        "next": [command for command, _ in steps] if files else [],
    }
