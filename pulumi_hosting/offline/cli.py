"""`offline`: Pulumi's commands, options and exit codes over the offline engine."""

import json
import logging
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from .errors import ConfigurationError, OfflineError
from .events import Digest, Event
from .stack import Command, Result, Stack


class _Group(click.Group):
    """Prints what went wrong in one line, and gives the exit code that Pulumi would."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OfflineError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_code)


def _verbosity(context: click.Context, option: click.Parameter, value: str) -> int:
    """Pulumi takes `-v=9` as well as `-v 9`."""
    if not value.removeprefix("=").isdecimal():
        raise click.BadParameter(f"{value!r} is not a number")
    return int(value.removeprefix("="))


def _common(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option("-C", "--cwd", type=click.Path(path_type=Path), default=Path(), help="Run as if started in this directory."),
            click.option("-s", "--stack", "name", help="The stack; else the selected one."),
            click.option("--non-interactive", is_flag=True, help="Accepted for compatibility: nothing here ever asks."),
        )
    ):
        function = option(function)
    return function


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option("-y", "--yes", is_flag=True, help="Go on without asking."),
            click.option("-f", "--skip-preview", is_flag=True, help="Do not look first."),
            click.option("-r", "--refresh", is_flag=True, help="Refresh the state first."),
            click.option("--run-program", is_flag=True, help="Run the program, for its current configuration."),
            click.option("--preview-only", is_flag=True, help="Only show what would be done."),
            click.option("--expect-no-changes", is_flag=True, help="Fail with status 7 when there is a change."),
            click.option("--diff", is_flag=True, help="Show what changes in each resource."),
            click.option("-j", "--json", "as_json", is_flag=True, help="Print JSON: a preview as one object, else engine events as lines."),
            click.option("-p", "--parallel", type=click.IntRange(min=1), help="How many resources are worked on at a time."),
            click.option("--event-log", type=click.Path(path_type=Path), help="Write engine events to this file, a line of JSON each."),
            click.option("-t", "--target", "targets", multiple=True, help="Confine the operation to this URN; may be given several times."),
            click.option("--target-dependents", is_flag=True, help="Include what depends on the targets."),
            click.option("--replace", "replaces", multiple=True, help="Replace this URN, whether it differs or not; may be repeated."),
            click.option("--target-replace", "target_replaces", multiple=True, help="The same as --target and --replace with this URN."),
            click.option("-v", "--verbose", "verbosity", callback=_verbosity, default="0", help="Log what is asked and done (up to 9)."),
            click.option("--logtostderr", is_flag=True, help="Have providers log to stderr."),
            click.option("-m", "--message", help="Accepted for compatibility."),
            click.option("--color", help="Accepted for compatibility: the display has no colors."),
            click.option("--suppress-progress", is_flag=True, help="Accepted for compatibility."),
            click.option("--suppress-outputs", is_flag=True, help="Accepted for compatibility."),
        )
    ):
        function = option(function)
    return _common(function)


def _run(command: Command, cwd: Path, name: str | None, given: dict[str, Any]) -> None:
    if given["preview_only"] and (given["yes"] or given["skip_preview"]):
        raise ConfigurationError("--preview-only cannot be combined with --yes or --skip-preview")
    if given["verbosity"]:
        logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
        logging.getLogger(__package__).setLevel(logging.DEBUG if given["verbosity"] > 6 else logging.INFO)
    arguments = (["--logtostderr"] if given["logtostderr"] else []) + ([f"-v={given['verbosity']}"] if given["verbosity"] else [])
    digest = Digest() if given["as_json"] and command == "preview" else None
    stack = Stack(
        cwd,
        name,
        write=None if given["as_json"] else click.echo,
        listeners=(digest or _print_event,) if given["as_json"] else (),
    )
    wanted = {key: given[key] for key in ("refresh", "run_program", "diff", "parallel", "targets", "target_dependents", "replaces")}
    for kind in ("targets", "replaces"):
        wanted[kind] += given["target_replaces"]
    if command != "preview" and not (given["preview_only"] or given["skip_preview"]):
        look = partial(stack.run, command, preview_only=True, **wanted)
        if given["yes"]:
            _stop_on_failure(look())  # what a preview refuses is not begun
        else:
            _approve(command, given["non_interactive"], look)
    # Whoever ends a job from outside means Ctrl-C: finish what is being made, and save it.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result: Result = stack.run(
            command,
            **wanted,
            **{key: given[key] for key in ("preview_only", "expect_no_changes", "event_log")},
            clear_pending_creates=given.get("clear_pending_creates", False),
            plugin_arguments=tuple(arguments),
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    if digest is not None:
        click.echo(json.dumps(digest.content, indent=4))
    click.get_current_context().exit(result.exit_code)


def _approve(command: Command, non_interactive: bool, look: Callable[[], Result]) -> None:
    """Nothing is made or deleted unasked: a person sees the preview and says yes; a script has to say it beforehand."""
    if non_interactive or not _is_person():
        click.echo(
            "error: --yes or --skip-preview or --preview-only must be passed in to proceed when running in non-interactive mode", err=True
        )
        click.get_current_context().exit(1 if command == "refresh" else 2)
    _stop_on_failure(look())
    if not click.confirm(f"Do you want to perform this {'update' if command == 'up' else command}?"):
        click.echo(f"confirmation declined, not proceeding with the {'update' if command == 'up' else command}")
        click.get_current_context().exit(1)


def _stop_on_failure(seen: Result) -> None:
    if seen.exit_code:
        click.get_current_context().exit(seen.exit_code)


def _is_person() -> bool:
    return sys.stdin.isatty()


def _print_event(event: Event) -> None:
    click.echo(json.dumps(event))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
def offline() -> None:
    """Run a Pulumi program without Pulumi's CLI, for trying and testing.

    The commands and options that exist here, and the exit codes, are those of `pulumi`; the documentation lists what differs.

    State is kept in PULUMI_BACKEND_URL (file://DIR), else in .pulumi-offline beside Pulumi.yaml; secrets are encrypted with
    PULUMI_CONFIG_PASSPHRASE. Real stacks are run by `pulumi`.
    """


@offline.command(name="up")
@_operation
def up(cwd: Path, name: str | None, **given: Any) -> None:
    """Create, update and delete resources until they are what the program wants."""
    _run("up", cwd, name, given)


@offline.command(name="preview")
@_operation
def preview(cwd: Path, name: str | None, **given: Any) -> None:
    """Show what `up` would do."""
    _run("preview", cwd, name, given)


@offline.command(name="refresh")
@_operation
@click.option("--clear-pending-creates", is_flag=True, help="Forget creates that a killed engine left behind.")
def refresh(cwd: Path, name: str | None, **given: Any) -> None:
    """Take over into the state how resources really are."""
    _run("refresh", cwd, name, given)


@offline.command(name="destroy")
@_operation
def destroy(cwd: Path, name: str | None, **given: Any) -> None:
    """Delete every resource of the stack."""
    _run("destroy", cwd, name, given)


@offline.command(name="import")
@_common
@click.argument("type")
@click.argument("resource")
@click.argument("id")
@click.option("--protect", type=bool, default=True, show_default=True, help="Protect it from being deleted.")
@click.option("--generate-code", type=bool, default=False, help="Accepted for compatibility: no code is written.")
@click.option("-y", "--yes", is_flag=True, help="Go on without asking.")
@click.option("-f", "--skip-preview", is_flag=True, help="Do not look first.")
def import_(cwd: Path, name: str | None, type: str, resource: str, id: str, protect: bool, skip_preview: bool, **_: Any) -> None:
    """Take the existing thing ID under management, as RESOURCE of TYPE. Then declare it in the program."""
    stack = Stack(cwd, name, write=click.echo)
    result = stack.import_resource(type, resource, id, protect=protect, preview=not skip_preview)
    click.get_current_context().exit(result.exit_code)


@offline.command(name="cancel")
@_common
@click.argument("stack_name", required=False)
@click.option("-y", "--yes", is_flag=True, help="Go on without asking.")
def cancel(cwd: Path, name: str | None, stack_name: str | None, yes: bool, non_interactive: bool) -> None:
    """Remove the lock that a killed operation left behind. The operation itself, if it still runs, is not stopped."""
    stack = Stack(cwd, stack_name or name)
    stack.cancel()
    click.echo(f"The currently running update for '{stack.name}' has been canceled!")


@offline.group(name="stack", cls=_Group)
def stack_group() -> None:
    """Create, select, list, export and remove stacks."""


@stack_group.command(name="init")
@_common
@click.argument("stack_name", required=False)
def stack_init(cwd: Path, name: str | None, stack_name: str | None, non_interactive: bool) -> None:
    """Create a stack and select it."""
    stack = Stack(cwd, _given_name(stack_name or name))
    stack.init()
    click.echo(f"Created stack '{stack.name}'")


@stack_group.command(name="select")
@_common
@click.argument("stack_name", required=False)
@click.option("-c", "--create", is_flag=True, help="Create the stack where there is none.")
def stack_select(cwd: Path, name: str | None, stack_name: str | None, create: bool, non_interactive: bool) -> None:
    """Make a stack the one that commands without --stack mean."""
    stack = Stack(cwd, _given_name(stack_name or name))
    if create and not stack.backend.exists(stack.name):
        stack.init()
    stack.backend.select(stack.name)


def _given_name(name: str | None) -> str:
    if not name:
        raise ConfigurationError("name the stack")
    return name


@stack_group.command(name="ls")
@_common
@click.option("-j", "--json", "as_json", is_flag=True, help="Print JSON.")
def stack_ls(cwd: Path, name: str | None, as_json: bool, non_interactive: bool) -> None:
    """List the stacks of the project; the selected one has a star."""
    backend = Stack(cwd, name).backend
    selected = name or backend.selected()
    if as_json:
        click.echo(json.dumps([{"name": item, "current": item == selected} for item in backend.stacks()], indent=2))
        return
    for item in backend.stacks():
        click.echo(f"{item}{'*' if item == selected else ''}")


@stack_group.command(name="export")
@_common
@click.option("--show-secrets", is_flag=True, help="Lay every secret open.")
@click.option("--file", "file", type=click.Path(path_type=Path), help="Write to this file instead of stdout.")
def stack_export(cwd: Path, name: str | None, show_secrets: bool, file: Path | None, non_interactive: bool) -> None:
    """Print the stack's state."""
    text = json.dumps(Stack(cwd, name).export(show_secrets=show_secrets), indent=4)
    if file is None:
        click.echo(text)
    else:
        file.touch(mode=0o600)
        file.write_text(text + "\n")


@stack_group.command(name="import")
@_common
@click.option("--file", "file", type=click.Path(path_type=Path), help="Read from this file instead of stdin.")
def stack_import(cwd: Path, name: str | None, file: Path | None, non_interactive: bool) -> None:
    """Replace the stack's state by an exported one."""
    try:
        data = json.loads(file.read_text() if file else sys.stdin.read())
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"could not read the deployment: {error}") from None
    Stack(cwd, name).import_state(data)
    click.echo("Import complete.")


@stack_group.command(name="output")
@_common
@click.option("-j", "--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--show-secrets", is_flag=True, help="Lay secret outputs open.")
@click.argument("output_name", required=False)
def stack_output(cwd: Path, name: str | None, as_json: bool, show_secrets: bool, output_name: str | None, non_interactive: bool) -> None:
    """Print the stack's outputs, or one of them."""
    outputs = Stack(cwd, name).outputs(show_secrets=show_secrets)
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


@stack_group.command(name="rm")
@_common
@click.argument("stack_name", required=False)
@click.option("-f", "--force", is_flag=True, help="Forget resources that still exist.")
@click.option("-y", "--yes", is_flag=True, help="Go on without asking.")
def stack_rm(cwd: Path, name: str | None, stack_name: str | None, force: bool, yes: bool, non_interactive: bool) -> None:
    """Remove an empty stack and its configuration."""
    stack = Stack(cwd, stack_name or name)
    stack.remove(force=force)
    click.echo(f"Stack '{stack.name}' has been removed!")


@offline.group(name="state", cls=_Group)
def state_group() -> None:
    """Edit a stack's state."""


@state_group.command(name="delete")
@_common
@click.argument("urn")
@click.option("-y", "--yes", is_flag=True, help="Go on without asking.")
def state_delete(cwd: Path, name: str | None, urn: str, yes: bool, non_interactive: bool) -> None:
    """Take the resource URN out of the state. What it stands for stays as it is."""
    Stack(cwd, name).forget(urn)
    click.echo("Resource deleted")


@offline.group(name="config", cls=_Group, invoke_without_command=True)
@_common
@click.option("-j", "--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--show-secrets", is_flag=True, help="Show secret values.")
@click.pass_context
def config_group(context: click.Context, cwd: Path, name: str | None, as_json: bool, show_secrets: bool, non_interactive: bool) -> None:
    """Read and set a stack's configuration; without a command, list it."""
    if context.invoked_subcommand is not None:
        return
    values = Stack(cwd, name).list_config(show_secrets=show_secrets)
    if as_json:
        found = {key: {"value": value, "secret": secret} for key, (value, secret) in values.items()}
        click.echo(
            json.dumps({key: item if show_secrets or not item["secret"] else {"secret": True} for key, item in found.items()}, indent=2)
        )
        return
    width = max((len(key) for key in values), default=3)
    for key, text in (("KEY", "VALUE"), *((key, value) for key, (value, _) in sorted(values.items()))):
        click.echo(f"{key:<{width}}  {text}")


@config_group.command(name="rm")
@_common
@click.argument("key")
def config_rm(cwd: Path, name: str | None, key: str, non_interactive: bool) -> None:
    """Remove a value."""
    Stack(cwd, name).remove_config(key)


@config_group.command(name="set")
@_common
@click.argument("key")
@click.argument("value", required=False)
@click.option("--secret", is_flag=True, help="Encrypt the value.")
@click.option("--plaintext", is_flag=True, help="Keep the value readable.")
def config_set(cwd: Path, name: str | None, key: str, value: str | None, secret: bool, plaintext: bool, non_interactive: bool) -> None:
    """Set a value; without VALUE it is read from stdin."""
    if secret and plaintext:
        raise ConfigurationError("--secret and --plaintext exclude each other")
    stack = Stack(cwd, name)
    stack.backend.read(stack.name)
    stack.set_config(key, sys.stdin.read().rstrip("\n") if value is None else value, secret=secret)


@config_group.command(name="get")
@_common
@click.argument("key")
def config_get(cwd: Path, name: str | None, key: str, non_interactive: bool) -> None:
    """Print one value, decrypted."""
    click.echo(Stack(cwd, name).get_config(key))
