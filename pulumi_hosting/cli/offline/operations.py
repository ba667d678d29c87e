"""The work of `pulumi-hosting offline up`, `preview`, `refresh` and `destroy`: one operation with different
options.
"""

import json
import logging
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from pulumi_hosting.offline import InvalidConfiguration, OfflineStack, StackResult
from pulumi_hosting.offline.display.engine_events import Digest
from pulumi_hosting.offline.engine.run_options import Command


def run(cwd: Path, name: str | None, **given: Any) -> None:
    command = cast(Command, click.get_current_context().info_name)
    if given["preview_only"] and (given["yes"] or given["skip_preview"]):
        raise InvalidConfiguration("--preview-only cannot be combined with --yes or --skip-preview")
    _log_calls(given["verbosity"])
    as_json = given["as_json"]
    digest = Digest() if as_json and command == "preview" else None
    listeners = (digest or (lambda event: click.echo(json.dumps(event))),) if as_json else ()
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
    to_stderr = ("--logtostderr",) if given["logtostderr"] else ()
    calls = (f"-v={given['verbosity']}",) if given["verbosity"] else ()
    options["plugin_arguments"] = (*to_stderr, *calls)
    result = _run_to_the_end(partial(stack.run, command, **options))
    if digest is not None:
        click.echo(json.dumps(digest.content, indent=4))
    sys.exit(result.exit_code)


def _run_to_the_end(run: Callable[[], StackResult]) -> StackResult:
    """SIGTERM is treated as Ctrl-C: the steps under way finish and are saved."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run()
    finally:
        signal.signal(signal.SIGTERM, before)


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
        sys.exit(1 if command == "refresh" else 2)
    _exit_on_failure(run_preview())
    operation = "update" if command == "up" else command
    if not click.confirm(f"Do you want to perform this {operation}?"):
        click.echo(f"confirmation declined, not proceeding with the {operation}")
        sys.exit(1)


def _exit_on_failure(preview: StackResult) -> None:
    if preview.exit_code:
        sys.exit(preview.exit_code)


def _is_terminal() -> bool:
    return sys.stdin.isatty()
