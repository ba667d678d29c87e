"""`pulumi-hosting offline cancel`."""

import click

from pulumi_hosting.cli.offline.common_options import with_stack, yes_option
from pulumi_hosting.offline import OfflineStack


@click.command()
@with_stack
@click.argument("stack_name", required=False)
@yes_option
def cancel(stack: OfflineStack) -> None:
    """Remove the lock that a killed operation left behind. An operation that still runs is not stopped.

    Example: pulumi-hosting offline cancel --stack dev
    """
    stack.cancel()
    click.echo(f"The currently running update for '{stack.name}' has been canceled!")
