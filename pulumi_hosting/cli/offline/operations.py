"""`pulumi-hosting offline up`, `preview`, `refresh` and `destroy`: one operation with different options."""

import json
import logging
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from pulumi_hosting.cli.offline.common_options import combined, skip_preview_option, which_stack
from pulumi_hosting.offline import InvalidConfiguration, OfflineStack, StackResult
from pulumi_hosting.offline.display.engine_events import Digest, Event
from pulumi_hosting.offline.engine.run_options import Command


def _verbosity(context: click.Context, option: click.Parameter, value: str) -> int:
    """Pulumi takes `-v=9` as well as `-v 9`."""
    if not value.removeprefix("=").isdecimal():
        raise click.BadParameter(f"{value!r} is not a number")
    return int(value.removeprefix("="))


operation_options = combined(
    which_stack,
    click.option("--non-interactive", is_flag=True, help="Never ask for confirmation."),
    click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation."),
    skip_preview_option,
    click.option("-r", "--refresh", is_flag=True, help="Refresh the state first."),
    click.option("--run-program", is_flag=True, help="Run the program, for its current configuration."),
    click.option("--preview-only", is_flag=True, help="Only show what would be done."),
    click.option("--expect-no-changes", is_flag=True, help="Exit with code 7 if there is a change."),
    click.option("--diff", is_flag=True, help="Show the changed properties of each resource."),
    click.option(
        "-j",
        "--json",
        "as_json",
        is_flag=True,
        help="Print JSON: one object for a preview, else one event per line.",
    ),
    click.option(
        "-p", "--parallel", type=click.IntRange(min=1), help="Number of resources to work on at a time."
    ),
    click.option(
        "--event-log",
        type=click.Path(path_type=Path),
        help="Write engine events to this file, one JSON object per line.",
    ),
    click.option(
        "-t",
        "--target",
        "targets",
        multiple=True,
        help="Restrict the operation to this URN; may be repeated.",
    ),
    click.option("--target-dependents", is_flag=True, help="Include resources that depend on the targets."),
    click.option(
        "--replace",
        "replaces",
        multiple=True,
        help="Replace this URN even if it is unchanged; may be repeated.",
    ),
    click.option(
        "--target-replace",
        "target_replaces",
        multiple=True,
        help="The same as --target and --replace with this URN.",
    ),
    click.option(
        "-v",
        "--verbose",
        "verbosity",
        callback=_verbosity,
        default="0",
        help="Log calls of providers (up to 9).",
    ),
    click.option("--logtostderr", is_flag=True, help="Let providers log to standard error."),
    click.option("-m", "--message", help="Accepted for compatibility."),
    click.option("--color", help="Accepted for compatibility: the display has no colors."),
    click.option("--show-sames", is_flag=True, help="Accepted for compatibility: JSON has them always."),
    click.option("--suppress-progress", is_flag=True, help="Accepted for compatibility."),
    click.option("--suppress-outputs", is_flag=True, help="Accepted for compatibility."),
)


@click.command()
@operation_options
def up(cwd: Path, name: str | None, **given: object) -> None:
    """Create, update and delete resources to match the program.

    Example: pulumi-hosting offline up --stack dev --yes
    """
    _run("up", cwd, name, given)


@click.command()
@operation_options
def preview(cwd: Path, name: str | None, **given: object) -> None:
    """Show what `up` would do.

    Example: pulumi-hosting offline preview --stack dev --diff
    """
    _run("preview", cwd, name, given)


@click.command()
@operation_options
@click.option(
    "--clear-pending-creates", is_flag=True, help="Forget creates that a killed engine left behind."
)
def refresh(cwd: Path, name: str | None, **given: object) -> None:
    """Update the state from the real resources.

    Example: pulumi-hosting offline refresh --stack dev --yes
    """
    _run("refresh", cwd, name, given)


@click.command()
@operation_options
def destroy(cwd: Path, name: str | None, **given: object) -> None:
    """Delete every resource of the stack.

    Example: pulumi-hosting offline destroy --stack dev --yes
    """
    _run("destroy", cwd, name, given)


def _run(command: Command, cwd: Path, name: str | None, given: dict[str, Any]) -> None:
    if given["preview_only"] and (given["yes"] or given["skip_preview"]):
        raise InvalidConfiguration("--preview-only cannot be combined with --yes or --skip-preview")
    _log_calls(given["verbosity"])
    as_json = given["as_json"]
    digest = Digest() if as_json and command == "preview" else None
    listeners = (digest or _print_event,) if as_json else ()
    stack = OfflineStack(cwd, name, write=None if as_json else click.echo, listeners=listeners)
    options = {key: given[key] for key in ("refresh", "run_program", "diff", "parallel", "target_dependents")}
    for kind in ("targets", "replaces"):
        options[kind] = given[kind] + given["target_replaces"]
    if command != "preview" and not (given["preview_only"] or given["skip_preview"]):
        run_preview = partial(stack.run, command, preview_only=True, **options)
        if given["yes"]:
            _exit_on_failure(run_preview())  # an operation whose preview fails is not started
        else:
            _confirm(command, given["non_interactive"], run_preview)
    options |= {key: given[key] for key in ("preview_only", "expect_no_changes", "event_log")}
    options["clear_pending_creates"] = given.get("clear_pending_creates", False)
    options["plugin_arguments"] = _plugin_arguments(given)
    result = _run_to_the_end(partial(stack.run, command, **options))
    if digest is not None:
        click.echo(json.dumps(digest.content, indent=4))
    click.get_current_context().exit(result.exit_code)


def _run_to_the_end(run: Callable[[], StackResult]) -> StackResult:
    """SIGTERM is treated as Ctrl-C: the steps under way finish and are saved."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run()
    finally:
        signal.signal(signal.SIGTERM, before)


def _plugin_arguments(given: dict[str, object]) -> tuple[str, ...]:
    to_stderr = ("--logtostderr",) if given["logtostderr"] else ()
    return (*to_stderr, f"-v={given['verbosity']}") if given["verbosity"] else to_stderr


def _log_calls(verbosity: int) -> None:
    if verbosity:
        logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
        logging.getLogger("pulumi_hosting.offline").setLevel(logging.DEBUG if verbosity > 6 else logging.INFO)


def _confirm(command: Command, non_interactive: bool, run_preview: Callable[[], StackResult]) -> None:
    """Show the preview and ask. Without a terminal, --yes or a similar option is required."""
    if non_interactive or not _is_terminal():
        click.echo(
            "error: --yes or --skip-preview or --preview-only must be passed in to proceed when running in "
            "non-interactive mode",
            err=True,
        )
        click.get_current_context().exit(1 if command == "refresh" else 2)
    _exit_on_failure(run_preview())
    operation = "update" if command == "up" else command
    if not click.confirm(f"Do you want to perform this {operation}?"):
        click.echo(f"confirmation declined, not proceeding with the {operation}")
        click.get_current_context().exit(1)


def _exit_on_failure(preview: StackResult) -> None:
    if preview.exit_code:
        click.get_current_context().exit(preview.exit_code)


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _print_event(event: Event) -> None:
    click.echo(json.dumps(event))
