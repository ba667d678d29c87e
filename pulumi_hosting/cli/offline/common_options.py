"""Options that several commands take."""

from collections.abc import Callable
from pathlib import Path

import click

Decorator = Callable[[Callable[..., object]], Callable[..., object]]

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
skip_preview_option = click.option("-f", "--skip-preview", is_flag=True, help="Skip the preview.")
json_option = click.option("-j", "--json", "as_json", is_flag=True, help="Print JSON.")


def combined(*options: Decorator) -> Decorator:
    """A decorator that adds several options, in this order."""

    def add(function: Callable[..., object]) -> Callable[..., object]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


stack_options = combined(
    click.option(
        "-C",
        "--cwd",
        type=click.Path(path_type=Path),
        default=Path(),
        help="Run as if started in this directory.",
    ),
    click.option("-s", "--stack", "name", help="The stack. Default: the selected one."),
    click.option("--non-interactive", is_flag=True, help="Never ask for confirmation."),
)
