"""`pulumi-hosting offline`: Pulumi's commands, options and exit codes on the offline engine."""

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulumi_hosting.cli.lazy import CommandGroup, works_in
from pulumi_hosting.reports.report import CannotAnswer, Unusable

if TYPE_CHECKING:
    from pulumi_hosting.offline import OfflineStack

Decorator = Callable[[Callable[..., object]], Callable[..., object]]


class OfflineGroup(CommandGroup):
    """Prints an error of the engine as one line and exits with the code that Pulumi would use."""

    def invoke(self, ctx: click.Context) -> object:
        from pulumi_hosting.offline import OfflineError, OfflineStack  # loads the engine: not for the list

        ctx.obj = OfflineStack
        try:
            return super().invoke(ctx)
        except (OfflineError, CannotAnswer) as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_code)
        except OSError as error:
            if error.filename is None:
                raise
            click.echo(f"error: {error.filename}: {error.strerror}. Next: name another file", err=True)
            ctx.exit(2)


@click.group(cls=OfflineGroup, context_settings={"help_option_names": ["-h", "--help"]})
def offline() -> None:
    """Run a Pulumi program without Pulumi's CLI, to try and test it.

    Commands, options and exit codes are the same as Pulumi's; docs/offline.md lists the differences.

    State is saved in PULUMI_BACKEND_URL (file://DIR), else in .pulumi-offline beside Pulumi.yaml; secrets are
    encrypted with PULUMI_CONFIG_PASSPHRASE. Use `pulumi` for real stacks.

    Example: pulumi-hosting offline up --cwd shop --stack dev
    """


# --- options of several commands


_PATH = click.Path(path_type=Path)
flag = functools.partial(click.option, is_flag=True)
several = functools.partial(click.option, multiple=True)
yes_option = flag("-y", "--yes", expose_value=False, help="Do not ask for confirmation.")
"""Accepted by commands that never ask."""
skip_preview_option = flag("-f", "--skip-preview", help="Skip the preview.")
json_option = flag("-j", "--json", "as_json", help="Print JSON.")


def combined(*options: Decorator) -> Decorator:
    """A decorator that adds several options, in this order."""
    return lambda function: functools.reduce(lambda done, option: option(done), reversed(options), function)


which_stack = combined(
    click.option("-C", "--cwd", type=_PATH, default=Path(), help="Run as if started in this directory."),
    click.option("-s", "--stack", "name", help="The stack. Default: the selected one."),
)
stack_options = combined(
    which_stack, flag("--non-interactive", expose_value=False, help="Never ask for confirmation.")
)


def _opened(cwd: Path, name: str | None) -> "OfflineStack":
    stack: OfflineStack = click.get_current_context().obj(cwd, name, write=click.echo)
    return stack


def with_stack(command: Callable[..., object], *, is_named: bool = False) -> Callable[..., object]:
    """A command that takes a stack: it gets the options that say which, and is called with the stack.
    ``is_named``: its name must be given; the selected stack is not meant.
    """

    @stack_options
    @functools.wraps(command)
    def work(cwd: Path, name: str | None, stack_name: str | None = None, **given: object) -> object:
        which = stack_name or name
        if is_named and not which:
            raise Unusable("name the stack")
        return command(_opened(cwd, which), **given)

    return work


with_named_stack = functools.partial(with_stack, is_named=True)


# --- operations


def _verbosity(context: click.Context, option: click.Parameter, value: str) -> int:
    """Pulumi takes `-v=9` as well as `-v 9`."""
    if not value.removeprefix("=").isdecimal():
        raise click.BadParameter(f"{value!r} is not a number")
    return int(value.removeprefix("="))


operation = combined(
    which_stack,
    flag("--non-interactive", help="Never ask for confirmation."),
    flag("-y", "--yes", help="Do not ask for confirmation."),
    skip_preview_option,
    flag("-r", "--refresh", help="Refresh the state first."),
    flag("--run-program", help="Run the program, for its current configuration."),
    flag("--preview-only", help="Only show what would be done."),
    flag("--expect-no-changes", help="Exit with code 7 if there is a change."),
    flag("--diff", help="Show the changed properties of each resource."),
    flag("-j", "--json", "as_json", help="Print JSON: one object for a preview, else one event per line."),
    click.option(
        "-p", "--parallel", type=click.IntRange(min=1), help="Number of resources to work on at a time."
    ),
    click.option(
        "--event-log", type=_PATH, help="Write engine events to this file, one JSON object per line."
    ),
    several("-t", "--target", "targets", help="Restrict the operation to this URN; may be repeated."),
    flag("--target-dependents", help="Include resources that depend on the targets."),
    several("--replace", "replaces", help="Replace this URN even if it is unchanged; may be repeated."),
    several("--target-replace", "target_replaces", help="The same as --target and --replace with this URN."),
    click.option(
        "-v",
        "--verbose",
        "verbosity",
        callback=_verbosity,
        default="0",
        help="Log calls of providers (up to 9).",
    ),
    flag("--logtostderr", help="Let providers log to standard error."),
    click.option("-m", "--message", help="Accepted for compatibility."),
    click.option("--color", help="Accepted for compatibility: the display has no colors."),
    flag("--show-sames", help="Accepted for compatibility: JSON always has them."),
    flag("--suppress-progress", help="Accepted for compatibility."),
    flag("--suppress-outputs", help="Accepted for compatibility."),
    works_in("pulumi_hosting.cli.offline.operations:run"),
)
"""A command that plans or changes something: they have the same options."""


@offline.command()
@operation
def up() -> None:
    """Create, update and delete resources to match the program.

    Example: pulumi-hosting offline up --stack dev --yes
    """


@offline.command()
@operation
def preview() -> None:
    """Show what `up` would do.

    Example: pulumi-hosting offline preview --stack dev --diff
    """


@offline.command()
@operation
@flag("--clear-pending-creates", help="Forget creates that a killed engine left behind.")
def refresh() -> None:
    """Update the state from the real resources.

    Example: pulumi-hosting offline refresh --stack dev --yes
    """


@offline.command()
@operation
def destroy() -> None:
    """Delete every resource of the stack.

    Example: pulumi-hosting offline destroy --stack dev --yes
    """


@offline.command(name="import", short_help="Take an existing object under management.")
@with_stack
@click.argument("type")
@click.argument("resource")
@click.argument("id")
@click.option(
    "--protect", type=bool, default=True, show_default=True, help="Protect the resource from deletion."
)
@click.option(
    "--generate-code", type=bool, default=False, help="Accepted for compatibility: no code is written."
)
@yes_option
@skip_preview_option
def import_resource(
    stack: "OfflineStack", type: str, resource: str, id: str, protect: bool, skip_preview: bool, **_: object
) -> None:
    """Take the existing object ID under management, as RESOURCE of TYPE. Then declare it in the program.

    Example: pulumi-hosting offline import hosting:index:Server web 20001
    """
    result = stack.import_resource(type, resource, id, protect=protect, preview=not skip_preview)
    click.get_current_context().exit(result.exit_code)


@offline.command(short_help="Remove the lock that a killed operation left behind.")
@with_stack
@click.argument("stack_name", required=False)
@yes_option
def cancel(stack: "OfflineStack") -> None:
    """Remove the lock that a killed operation left behind. It does not stop a running operation.

    Example: pulumi-hosting offline cancel --stack dev
    """
    stack.cancel()
    click.echo(f"The currently running update for '{stack.name}' has been canceled!")


# --- stacks


stack_argument = click.argument("stack_name", required=False)


@offline.group(cls=CommandGroup)
def stack() -> None:
    """Create, select, list, export and remove stacks.

    Example: pulumi-hosting offline stack ls
    """


@stack.command()
@with_named_stack
@stack_argument
def init(stack: "OfflineStack") -> None:
    """Create a stack and select it.

    Example: pulumi-hosting offline stack init dev
    """
    stack.init()
    click.echo(f"Created stack '{stack.name}'")


@stack.command()
@with_named_stack
@stack_argument
@flag("-c", "--create", help="Create the stack if it does not exist.")
def select(stack: "OfflineStack", create: bool) -> None:
    """Select the stack that commands without --stack use.

    Example: pulumi-hosting offline stack select dev
    """
    if create and not stack.backend.exists(stack.name):
        stack.init()
    stack.backend.select(stack.name)


@stack.command()
@stack_options
@json_option
def ls(cwd: Path, name: str | None, as_json: bool) -> None:
    """List the stacks of the project; the selected one has a star.

    Example: pulumi-hosting offline stack ls
    """
    backend = _opened(cwd, name).backend
    selected = name or backend.selected()
    rows = [{"name": item, "current": item == selected} for item in backend.stacks()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(f"{row['name']}{'*' if row['current'] else ''}")


@stack.command()
@with_stack
@flag("--show-secrets", help="Write every secret in plain text.")
@click.option("--file", type=_PATH, help="Write to this file instead of standard output.")
def export(stack: "OfflineStack", show_secrets: bool, file: Path | None) -> None:
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
@click.option("--file", type=_PATH, help="Read from this file instead of standard input.")
def import_state(stack: "OfflineStack", file: Path | None) -> None:
    """Replace the stack's state by an exported one.

    Example: pulumi-hosting offline stack import --stack dev --file dev.json
    """
    try:
        data = json.loads(file.read_text() if file else sys.stdin.read())
    except (OSError, ValueError) as error:
        raise Unusable(f"could not read the deployment: {error}") from None
    stack.import_state(data)
    click.echo("Import complete.")


@stack.command()
@with_stack
@json_option
@flag("--show-secrets", help="Print secret outputs in plain text.")
@click.argument("output_name", required=False)
def output(stack: "OfflineStack", as_json: bool, show_secrets: bool, output_name: str | None) -> None:
    """Print the stack's outputs, or one of them.

    Example: pulumi-hosting offline stack output ip --stack dev
    """
    outputs = stack.outputs(show_secrets=show_secrets)
    if output_name is not None:
        if output_name not in outputs:
            raise CannotAnswer(f"current stack does not have output property '{output_name}'")
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
@flag("-f", "--force", help="Remove it even if it has resources; they stay as they are.")
@yes_option
def rm(stack: "OfflineStack", force: bool) -> None:
    """Remove an empty stack and its configuration.

    Example: pulumi-hosting offline stack rm dev --yes
    """
    stack.remove(force=force)
    click.echo(f"Stack '{stack.name}' has been removed!")


# --- the state, the configuration


@offline.group(cls=CommandGroup)
def state() -> None:
    """Edit a stack's state.

    Example: pulumi-hosting offline state delete URN
    """


@state.command()
@with_stack
@click.argument("urn")
@yes_option
def delete(stack: "OfflineStack", urn: str) -> None:
    """Remove the resource URN from the state. The object itself stays as it is.

    Example: pulumi-hosting offline state delete 'urn:pulumi:dev::shop::hosting:index:Server::web'
    """
    stack.forget(urn)
    click.echo("Resource deleted")


@state.command()
@with_stack
@flag("--all", "every", help="All resources of the stack.", required=True)
@yes_option
def unprotect(stack: "OfflineStack", every: bool) -> None:
    """Let protected resources be deleted and replaced, until the next `up` protects them again.

    Example: pulumi-hosting offline state unprotect --all
    """
    stack.unprotect()
    click.echo("All resources unprotected")


@offline.group(
    cls=CommandGroup, invoke_without_command=True, short_help="Read and set a stack's configuration."
)
@stack_options
@json_option
@flag("--show-secrets", help="Show secret values.")
@click.pass_context
def config(context: click.Context, cwd: Path, name: str | None, as_json: bool, show_secrets: bool) -> None:
    """Read and set a stack's configuration. Without a command: list it.

    Example: pulumi-hosting offline config --stack dev
    """
    if context.invoked_subcommand is not None:
        return
    values = _opened(cwd, name).list_config(show_secrets=show_secrets)
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


@config.command(name="rm")
@with_stack
@click.argument("key")
def remove_value(stack: "OfflineStack", key: str) -> None:
    """Remove a value.

    Example: pulumi-hosting offline config rm hosting:baseUrl
    """
    stack.remove_config(key)


@config.command(name="set")
@with_stack
@click.argument("key")
@click.argument("value", required=False)
@flag("--secret", help="Encrypt the value.")
@flag("--plaintext", help="Save the value as it is.")
def set_value(stack: "OfflineStack", key: str, value: str | None, secret: bool, plaintext: bool) -> None:
    """Set a value; without VALUE it is read from standard input.

    Example: pulumi-hosting offline config set hosting:maxCharge 25.00
    """
    if secret and plaintext:
        raise Unusable("--secret and --plaintext are mutually exclusive")
    stack.backend.read(stack.name)
    stack.set_config(key, sys.stdin.read().rstrip("\n") if value is None else value, secret=secret)


@config.command(name="get")
@with_stack
@click.argument("key")
def get_value(stack: "OfflineStack", key: str) -> None:
    """Print one value, decrypted.

    Example: pulumi-hosting offline config get hosting:baseUrl
    """
    click.echo(stack.get_config(key))
