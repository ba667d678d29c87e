"""`pulumi-hosting offline stack`."""

import json
import sys
from pathlib import Path

import click

from pulumi_hosting.cli.lazy import CommandGroup
from pulumi_hosting.cli.offline.common_options import json_option, stack_options, with_stack, yes_option
from pulumi_hosting.offline import InvalidConfiguration, OfflineError, OfflineStack

stack_argument = click.argument("stack_name", required=False)


@click.group(cls=CommandGroup)
def stack() -> None:
    """Create, select, list, export and remove stacks.

    Example: pulumi-hosting offline stack ls
    """


@stack.command()
@stack_options
@stack_argument
def init(cwd: Path, name: str | None, stack_name: str | None) -> None:
    """Create a stack and select it.

    Example: pulumi-hosting offline stack init dev
    """
    created = OfflineStack(cwd, _given_name(stack_name or name))
    created.init()
    click.echo(f"Created stack '{created.name}'")


@stack.command()
@stack_options
@stack_argument
@click.option("-c", "--create", is_flag=True, help="Create the stack if it does not exist.")
def select(cwd: Path, name: str | None, stack_name: str | None, create: bool) -> None:
    """Select the stack that commands without --stack use.

    Example: pulumi-hosting offline stack select dev
    """
    selected = OfflineStack(cwd, _given_name(stack_name or name))
    if create and not selected.backend.exists(selected.name):
        selected.init()
    selected.backend.select(selected.name)


def _given_name(name: str | None) -> str:
    if not name:
        raise InvalidConfiguration("name the stack")
    return name


@stack.command()
@stack_options
@json_option
def ls(cwd: Path, name: str | None, as_json: bool) -> None:
    """List the stacks of the project; the selected one has a star.

    Example: pulumi-hosting offline stack ls
    """
    backend = OfflineStack(cwd, name).backend
    selected = name or backend.selected()
    if as_json:
        click.echo(
            json.dumps([{"name": item, "current": item == selected} for item in backend.stacks()], indent=2)
        )
        return
    for item in backend.stacks():
        click.echo(f"{item}{'*' if item == selected else ''}")


@stack.command()
@with_stack
@click.option("--show-secrets", is_flag=True, help="Write every secret in plain text.")
@click.option(
    "--file", "file", type=click.Path(path_type=Path), help="Write to this file instead of standard output."
)
def export(stack: OfflineStack, show_secrets: bool, file: Path | None) -> None:
    """Print the stack's state.

    Example: pulumi-hosting offline stack export --stack dev --file dev.json
    """
    text = json.dumps(stack.export(show_secrets=show_secrets), indent=4)
    if file is None:
        click.echo(text)
    else:
        file.touch(mode=0o600)
        file.write_text(text + "\n")


@stack.command(name="import")
@with_stack
@click.option(
    "--file", "file", type=click.Path(path_type=Path), help="Read from this file instead of standard input."
)
def import_state(stack: OfflineStack, file: Path | None) -> None:
    """Replace the stack's state by an exported one.

    Example: pulumi-hosting offline stack import --stack dev --file dev.json
    """
    try:
        data = json.loads(file.read_text() if file else sys.stdin.read())
    except (OSError, ValueError) as error:
        raise InvalidConfiguration(f"could not read the deployment: {error}") from None
    stack.import_state(data)
    click.echo("Import complete.")


@stack.command()
@with_stack
@json_option
@click.option("--show-secrets", is_flag=True, help="Print secret outputs in plain text.")
@click.argument("output_name", required=False)
def output(stack: OfflineStack, as_json: bool, show_secrets: bool, output_name: str | None) -> None:
    """Print the stack's outputs, or one of them.

    Example: pulumi-hosting offline stack output ip --stack dev
    """
    outputs = stack.outputs(show_secrets=show_secrets)
    if output_name is not None:
        if output_name not in outputs:
            raise OfflineError(f"current stack does not have output property '{output_name}'")
        value = outputs[output_name]
        click.echo(value if isinstance(value, str) and not as_json else json.dumps(value))
    elif as_json:
        click.echo(json.dumps(outputs, indent=2))
    else:
        for key, value in sorted(outputs.items()):
            click.echo(f"{key}\t{value if isinstance(value, str) else json.dumps(value)}")


@stack.command()
@with_stack
@stack_argument
@click.option(
    "-f", "--force", is_flag=True, help="Remove it although it has resources; they stay as they are."
)
@yes_option
def rm(stack: OfflineStack, force: bool) -> None:
    """Remove an empty stack and its configuration.

    Example: pulumi-hosting offline stack rm dev --yes
    """
    stack.remove(force=force)
    click.echo(f"Stack '{stack.name}' has been removed!")
