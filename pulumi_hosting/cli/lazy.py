"""Groups of commands: typing errors are answered with a suggestion, and commands are imported when they are
called; so is what does their work, and not for their help.
"""

import difflib
import functools
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import click
from click.shell_completion import CompletionItem

from pulumi_hosting.installation import install_extras
from pulumi_hosting.reports.report import CannotAnswer

Work = Callable[..., Any]

_EXTRAS: Mapping[str, Sequence[str]] = {
    "pulumi": ("pulumi", "cryptography"),
    "emulator": ("uvicorn",),
    "exporter": ("prometheus_client",),
}
"""Extra -> modules that show whether it is installed."""


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command is, as ``module:name``, and its line in the list of commands."""

    place: str
    help: str
    extras: tuple[str, ...] = ()
    """What must be installed before the module can be imported."""
    arguments: tuple[str, ...] = ()
    """What the place is called with; without any it is the command itself."""


class CommandGroup(click.Group):
    """A group that names the command that was probably meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            meant = difflib.get_close_matches(name, known, 1)
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {meant[0]!r}?" if meant else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.line(ctx, name)) for name in self.list_commands(ctx)])

    def line(self, ctx: click.Context, name: str) -> str:
        """The short help of a command, else the first paragraph of its help, whole."""
        command = self.get_command(ctx, name)
        text = command.short_help or (command.help or "").partition("\n\n")[0] if command else ""
        return " ".join(text.split())


class LazyGroup(CommandGroup):
    """Imports a command when it is called.

    The list of commands, and their completion in a shell, import none, so they do not depend on what is
    installed.
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
        if ctx.resilient_parsing and missing_extras(*command.extras):
            return None  # a shell completes a command that cannot run
        require_extras(*command.extras)
        made = pkgutil.resolve_name(command.place)
        found: click.Command = made(*command.arguments) if command.arguments else made
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=self.line(ctx, name)) for name in names), *options]

    def line(self, ctx: click.Context, name: str) -> str:
        return self.lazy[name].help if name in self.lazy else super().line(ctx, name)


def require_extras(*extras: str) -> None:
    """Raises :class:`click.ClickException`, one line with the command that installs them, if one is
    missing.
    """
    missing = missing_extras(*extras)
    if missing:
        raise click.ClickException(
            f"this command needs more than is installed. Next: {install_extras(*missing)}"
        )


def missing_extras(*extras: str) -> list[str]:
    """Those that are not installed."""
    return [extra for extra in extras if any(find_spec(module) is None for module in _EXTRAS[extra])]


def works_in(place: str, *extras: str) -> Callable[[Work], Work]:
    """The work of a command: the function ``module:function``, called with what was given to the command. Its
    module, which needs these extras, is imported then. ``CannotAnswer`` ends the command.
    """

    def decorated(declaration: Work) -> Work:
        @functools.wraps(declaration)
        def work(**given: object) -> object:
            require_extras(*extras)
            try:
                return pkgutil.resolve_name(place)(**given)
            except CannotAnswer as error:
                click.echo(f"error: {error}", err=True)
                sys.exit(error.exit_code)

        return work

    return decorated
