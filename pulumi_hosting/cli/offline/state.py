"""`pulumi-hosting offline state`."""

import click

from pulumi_hosting.cli.lazy import CommandGroup
from pulumi_hosting.cli.offline.common_options import with_stack, yes_option
from pulumi_hosting.offline import OfflineStack


@click.group(cls=CommandGroup)
def state() -> None:
    """Edit a stack's state.

    Example: pulumi-hosting offline state delete URN
    """


@state.command()
@with_stack
@click.argument("urn")
@yes_option
def delete(stack: OfflineStack, urn: str) -> None:
    """Remove the resource URN from the state. The object itself stays as it is.

    Example: pulumi-hosting offline state delete 'urn:pulumi:dev::shop::hosting:index:Server::web'
    """
    stack.forget(urn)
    click.echo("Resource deleted")
