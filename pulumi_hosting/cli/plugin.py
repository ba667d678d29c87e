"""The work of `pulumi-hosting plugin`."""

import sys

import click

from pulumi_hosting.provider.plugin import install as plugin


def install(pulumi: str | None) -> None:
    try:
        click.echo(f"installed: {plugin.install(pulumi)}")
    except plugin.InstallError as error:
        raise click.ClickException(str(error)) from None


def uninstall() -> None:
    try:
        removed = plugin.uninstall()
    except plugin.InstallError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"removed: {removed}" if removed else f"not installed: {plugin.place()}")


def path() -> None:
    click.echo(str(plugin.place()))
    sys.exit(0 if plugin.place().exists() else 1)
