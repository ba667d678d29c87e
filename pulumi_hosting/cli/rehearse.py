"""The work of `pulumi-hosting rehearse`."""

import signal
import sys
from functools import partial
from pathlib import Path

import click

from pulumi_hosting.cli import rehearse_formats as formats
from pulumi_hosting.cli.output import key_values, print_json, write_file
from pulumi_hosting.cli.progress import ProgressLine
from pulumi_hosting.emulator import NotStarted
from pulumi_hosting.planning.budget import money_limit
from pulumi_hosting.rehearsal import engines, runner
from pulumi_hosting.rehearsal.playbooks import Ansible, ansible
from pulumi_hosting.reports.report import FOUND


def run(
    directory: Path,
    engine: str,
    dialect: str | None,
    profile: Path | None,
    config: tuple[str, ...],
    install_pulumi: bool,
    junit_file: Path | None,
    days: int | None,
    balance: str | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    values, amount = key_values(config), money_limit(balance)
    if directory.is_file() and days is None:
        raise click.BadParameter("a playbook is played for days. Next: add --days", param_hint="DIRECTORY")
    if balance is not None and amount is None:
        raise click.BadParameter("must be an amount, such as 50.00", param_hint="--balance")
    # SIGTERM is treated as Ctrl-C: the processes are ended and the stack's settings file is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with ProgressLine() as progress:
            if install_pulumi:
                progress.step(1, None, "downloading Pulumi's CLI")
            chosen: engines.Engine | Ansible
            if directory.is_file():
                chosen = ansible()
            else:
                chosen = engines.install() if install_pulumi else engines.choose(engine)
            line = progress.above(partial(click.echo, err=as_json or as_markdown))
            outcome = runner.Rehearsal(
                chosen, directory, line, dialect, values, progress.step, days, amount, profile
            ).run()
    except (engines.EngineError, NotStarted) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        print_json(outcome.facts())
    elif as_markdown:
        click.echo(formats.markdown(outcome))
    write_file(junit_file, formats.as_junit(outcome))
    sys.exit(1 if not outcome.passed else FOUND if outcome.losses else 0)
