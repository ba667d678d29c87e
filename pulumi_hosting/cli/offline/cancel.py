"""`pulumi-hosting offline cancel`."""

from pathlib import Path

import click

from pulumi_hosting.cli.offline.common_options import stack_options, yes_option
from pulumi_hosting.offline import OfflineStack


@click.command()
@stack_options
@click.argument("stack_name", required=False)
@yes_option
def cancel(cwd: Path, name: str | None, stack_name: str | None, yes: bool, non_interactive: bool) -> None:
    """Remove the lock that a killed operation left behind. An operation that still runs is not stopped.

    Example: pulumi-hosting offline cancel --stack dev
    """
    stack = OfflineStack(cwd, stack_name or name)
    stack.cancel()
    click.echo(f"The currently running update for '{stack.name}' has been canceled!")
