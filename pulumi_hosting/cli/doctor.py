"""`pulumi-hosting doctor`."""

import sys
from typing import TYPE_CHECKING

import click

from pulumi_hosting.cli.output import json_option, json_text

if TYPE_CHECKING:
    from pulumi_hosting.reports.checks import Check

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Check key, account, service and installation, and say what to do about each problem.

    It asks the service of HOSTING_BASE_URL with HOSTING_API_KEY, and changes nothing. It works without a key
    and without a network too: it says what is missing and checks the rest. The key is never shown. Exit
    codes: 0 without a problem, 1 with one; warnings do not count.

    Example: HOSTING_BASE_URL=https://api.example.com/v1 pulumi-hosting doctor
    """
    from pulumi_hosting.reports.doctor import checks

    found = []
    for check in checks():
        found.append(check)
        if not as_json:
            click.echo(_text(check))
    problems = sum(check.status == "problem" for check in found)
    warnings = sum(check.status == "warning" for check in found)
    if as_json:
        click.echo(
            json_text(
                {"problems": problems, "warnings": warnings, "checks": [check.as_json() for check in found]}
            )
        )
    else:
        click.echo(f"\n{_count(problems, 'problem')}, {_count(warnings, 'warning')}")
    sys.exit(1 if problems else 0)


def _text(check: "Check") -> str:
    status = click.style(f"{check.status:<7}", fg=_COLOURS[check.status])
    step = f". Next: {check.next}" if check.next else ""
    lines = [f"{status}  {check.name:<12}  {check.text}{step}"]
    return "\n".join([*lines, *(f"{'':23}{line}" for line in check.details)])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
