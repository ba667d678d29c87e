"""`pulumi-hosting offline state`."""

from pathlib import Path

import click

from pulumi_hosting.cli.lazy import CommandGroup
from pulumi_hosting.cli.offline.common_options import stack_options, yes_option
from pulumi_hosting.offline import OfflineStack


@click.group(cls=CommandGroup)
def state() -> None:
    """Edit a stack's state.

    Example: pulumi-hosting offline state delete URN
    """


@state.command()
@stack_options
@click.argument("urn")
@yes_option
def delete(cwd: Path, name: str | None, urn: str, yes: bool, non_interactive: bool) -> None:
    """Remove the resource URN from the state. The object itself stays as it is.

    Example: pulumi-hosting offline state delete 'urn:pulumi:dev::shop::hosting:index:Server::web'
    """
    OfflineStack(cwd, name).forget(urn)
    click.echo("Resource deleted")
