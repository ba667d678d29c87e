"""`pulumi-hosting offline config`."""

import json
import sys
from pathlib import Path

import click

from pulumi_hosting.cli.lazy import CommandGroup
from pulumi_hosting.cli.offline.common_options import json_option, stack_options, with_stack
from pulumi_hosting.offline import InvalidConfiguration, OfflineStack


@click.group(cls=CommandGroup, invoke_without_command=True)
@stack_options
@json_option
@click.option("--show-secrets", is_flag=True, help="Show secret values.")
@click.pass_context
def config(context: click.Context, cwd: Path, name: str | None, as_json: bool, show_secrets: bool) -> None:
    """Read and set a stack's configuration. Without a command: list it.

    Example: pulumi-hosting offline config --stack dev
    """
    if context.invoked_subcommand is not None:
        return
    values = OfflineStack(cwd, name).list_config(show_secrets=show_secrets)
    if as_json:
        shown = {
            key: {"secret": True} if secret and not show_secrets else {"value": value, "secret": secret}
            for key, (value, secret) in values.items()
        }
        click.echo(json.dumps(shown, indent=2))
        return
    width = max((len(key) for key in values), default=3)
    for key, text in (("KEY", "VALUE"), *((key, value) for key, (value, _) in sorted(values.items()))):
        click.echo(f"{key:<{width}}  {text}")


@config.command()
@with_stack
@click.argument("key")
def rm(stack: OfflineStack, key: str) -> None:
    """Remove a value.

    Example: pulumi-hosting offline config rm hosting:baseUrl
    """
    stack.remove_config(key)


@config.command(name="set")
@with_stack
@click.argument("key")
@click.argument("value", required=False)
@click.option("--secret", is_flag=True, help="Encrypt the value.")
@click.option("--plaintext", is_flag=True, help="Save the value as it is.")
def set_value(stack: OfflineStack, key: str, value: str | None, secret: bool, plaintext: bool) -> None:
    """Set a value; without VALUE it is read from standard input.

    Example: pulumi-hosting offline config set hosting:maxCharge 25.00
    """
    if secret and plaintext:
        raise InvalidConfiguration("--secret and --plaintext are mutually exclusive")
    stack.backend.read(stack.name)
    stack.set_config(key, sys.stdin.read().rstrip("\n") if value is None else value, secret=secret)


@config.command()
@with_stack
@click.argument("key")
def get(stack: OfflineStack, key: str) -> None:
    """Print one value, decrypted.

    Example: pulumi-hosting offline config get hosting:baseUrl
    """
    click.echo(stack.get_config(key))
