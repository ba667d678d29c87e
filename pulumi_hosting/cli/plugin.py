"""`pulumi-hosting plugin`: install, remove and find Pulumi's plugin."""

import sys

import click

from pulumi_hosting.cli.lazy import Group, require_extras


@click.group(cls=Group)
def plugin() -> None:
    """Pulumi's plugin for programs in any language: make it known to Pulumi's CLI.

    Example: pulumi-hosting plugin install
    """
    require_extras("pulumi")


@plugin.command()
@click.option(
    "--pulumi",
    type=click.Path(exists=True, dir_okay=False, executable=True),
    metavar="PATH",
    help="Pulumi's CLI to install with. Default: the one on PATH; without one the plugin is "
    "copied to Pulumi's folder.",
)
def install(pulumi: str | None) -> None:
    """Make pulumi-resource-hosting of this installation known to Pulumi's CLI.

    Example: pulumi-hosting plugin install --pulumi ~/.pulumi/bin/pulumi
    """
    from pulumi_hosting.provider.plugin import install

    try:
        click.echo(f"installed: {install.install(pulumi)}")
    except install.InstallError as error:
        raise click.ClickException(str(error)) from None


@plugin.command()
def uninstall() -> None:
    """Remove what `install` installed.

    Example: pulumi-hosting plugin uninstall
    """
    from pulumi_hosting.provider.plugin import install

    removed = install.uninstall()
    click.echo(f"removed: {removed}" if removed else f"not installed: {install.place()}")


@plugin.command()
def path() -> None:
    """Print the path of the plugin; exit code 1 when it is not installed.

    Example: pulumi-hosting plugin path || pulumi-hosting plugin install
    """
    from pulumi_hosting.provider.plugin import install

    click.echo(str(install.place()))
    sys.exit(0 if install.place().exists() else 1)
