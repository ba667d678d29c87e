"""The work of `pulumi-hosting plugin`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from pulumi_hosting.provider.plugin import install as plugin


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except plugin.InstallError as error:
        raise click.ClickException(str(error)) from None


def install(pulumi: str | None) -> None:
    with _one_line():
        click.echo(f"installed: {plugin.install(pulumi)}")


def uninstall() -> None:
    with _one_line():
        removed = plugin.uninstall()
    click.echo(f"removed: {removed}" if removed else f"not installed: {plugin.place()}")


def path() -> None:
    click.echo(str(plugin.place()))
    sys.exit(0 if plugin.place().exists() else 1)
