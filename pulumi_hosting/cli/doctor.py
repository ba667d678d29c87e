"""The work of `pulumi-hosting doctor`."""

import click

from pulumi_hosting.cli.output import finish
from pulumi_hosting.reports.checks import Check
from pulumi_hosting.reports.doctor import checks
from pulumi_hosting.reports.report import Report, counted

_COLOURS = {"ok": "green", "note": "cyan", "warning": "yellow", "problem": "red"}


def run(as_json: bool) -> None:
    found = []
    for check in checks():
        found.append(check)
        if not as_json:  # at once: a service that is slow holds up the next ones
            click.echo(_text(check))
    problems = sum(check.status == "problem" for check in found)
    warnings = sum(check.status == "warning" for check in found)
    facts = {"problems": problems, "warnings": warnings, "checks": [check.as_json() for check in found]}
    conclusion = f"\n{counted(problems, 'problem')}, {counted(warnings, 'warning')}"
    finish(Report(facts, [conclusion], exit_code=1 if problems else 0), as_json=as_json)


def _text(check: Check) -> str:
    status = click.style(f"{check.status:<7}", fg=_COLOURS[check.status])
    step = f". Next: {check.next}" if check.next else ""
    lines = [f"{status}  {check.name:<12}  {check.text}{step}"]
    return "\n".join([*lines, *(f"{'':23}{line}" for line in check.details)])
