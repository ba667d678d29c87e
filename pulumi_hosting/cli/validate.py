"""`pulumi-hosting validate`."""

import sys
from pathlib import Path

import click

from pulumi_hosting.cli.connection import Failed, files
from pulumi_hosting.cli.output import json_option, json_text

FOUND = 7
"""Exit code when something is wrong, as of ``pulumi preview --expect-no-changes``."""


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-c",
    "--config",
    multiple=True,
    metavar="KEY=VALUE",
    help="Stack configuration that the program reads; may be repeated.",
)
@click.option(
    "-s",
    "--stack",
    metavar="NAME",
    help="Read the configuration of this stack, from Pulumi.NAME.yaml; its secrets are not decrypted.",
)
@json_option
def validate(directory: Path, config: tuple[str, ...], stack: str | None, as_json: bool) -> None:
    """Name all mistakes of the program in DIRECTORY at once, without an account and without a key.

    One line for each: the line of the program, the resource, what is wrong and what to do. The program runs
    once; nothing is sent. Lookups are answered as an emulator's fresh account answers them. What only the
    account knows, such as stock and prices, is checked by the preview. Exit codes: 0 when nothing is wrong,
    7 when something is, 1 when the program could not be run (a syntax error, a missing
    module, sys.exit) and nothing else was found, 2 where there is no Pulumi project in these languages.

    A program in YAML, TypeScript or JavaScript is read, not run, for one mistake: deletedWith a server that
    protect or retainOnDelete keeps. Pulumi itself checks the types of its arguments.

    Example: pulumi-hosting validate infra --config domain=example.com
    """
    from pulumi_hosting.reports import validate as report

    values = dict(entry.partition("=")[::2] for entry in config)
    if any("=" not in entry or not entry.partition("=")[0] for entry in config):
        raise click.BadParameter("must read KEY=VALUE", param_hint="--config")
    try:
        with files():
            found = report.validate(directory, values, stack)
    except RuntimeError as error:
        raise Failed(str(error)) from None
    if as_json:
        click.echo(json_text(found.facts()))
    elif found.mistakes:
        click.echo("\n".join(map(str, found.mistakes)))
    else:
        what = "resource" if found.resources == 1 else "resources"
        checked = "checked, no mistakes" if found.is_run else "read, none goes with a server that stays"
        click.echo(f"{found.resources} {what} {checked}.")
    sys.exit(FOUND if found.mistakes else 0)
