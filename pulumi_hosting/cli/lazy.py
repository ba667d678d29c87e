"""A click group whose commands are imported when they are called."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import click

_EXTRAS: Mapping[str, Sequence[str]] = {
    "pulumi": ("pulumi", "cryptography"),
    "emulator": ("starlette", "uvicorn"),
}
"""Extra -> modules that show whether it is installed."""


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command is: ``module`` has an attribute ``name``. ``help`` is its line in the list of
    commands.
    """

    module: str
    name: str
    help: str
    extras: tuple[str, ...] = ()
    """What must be installed before the module can be imported."""


class LazyGroup(click.Group):
    """Imports a command when it is called.

    The list of commands imports none, so it does not depend on what is installed.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, Command], **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        command = self.lazy[cmd_name]
        require_extras(*command.extras)
        found: click.Command = getattr(importlib.import_module(command.module), command.name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._help(ctx, name)) for name in self.list_commands(ctx)])

    def _help(self, ctx: click.Context, name: str) -> str:
        if name in self.lazy:
            return self.lazy[name].help
        command = super().get_command(ctx, name)
        return command.get_short_help_str(100) if command else ""


def require_extras(*extras: str) -> None:
    """Raises :class:`click.ClickException`, one line with the command that installs them, where one is
    missing.
    """
    missing = [extra for extra in extras if any(find_spec(module) is None for module in _EXTRAS[extra])]
    if missing:
        raise click.ClickException(
            f"this command needs more than is installed. Next: pip install "
            f"'pulumi-hosting[{','.join(missing)}]'"
        )
