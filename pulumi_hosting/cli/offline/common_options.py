"""Options that several commands take."""

import functools
from collections.abc import Callable
from pathlib import Path

import click

from pulumi_hosting.offline import OfflineStack

Decorator = Callable[[Callable[..., object]], Callable[..., object]]

yes_option = click.option(
    "-y", "--yes", is_flag=True, expose_value=False, help="Do not ask for confirmation."
)
"""Of a command that asks for none."""
skip_preview_option = click.option("-f", "--skip-preview", is_flag=True, help="Skip the preview.")
json_option = click.option("-j", "--json", "as_json", is_flag=True, help="Print JSON.")


def combined(*options: Decorator) -> Decorator:
    """A decorator that adds several options, in this order."""

    def add(function: Callable[..., object]) -> Callable[..., object]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


which_stack = combined(
    click.option(
        "-C",
        "--cwd",
        type=click.Path(path_type=Path),
        default=Path(),
        help="Run as if started in this directory.",
    ),
    click.option("-s", "--stack", "name", help="The stack. Default: the selected one."),
)
stack_options = combined(
    which_stack,
    click.option("--non-interactive", is_flag=True, expose_value=False, help="Never ask for confirmation."),
)


def with_stack(command: Callable[..., object]) -> Callable[..., object]:
    """A command that takes a stack: it gets the options that say which, and is called with the stack."""

    @stack_options
    @functools.wraps(command)
    def work(cwd: Path, name: str | None, stack_name: str | None = None, **given: object) -> object:
        return command(OfflineStack(cwd, stack_name or name, write=click.echo), **given)

    return work
