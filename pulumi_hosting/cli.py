"""``pulumi-hosting``: one small function per command; each loads what it needs when it is called."""

import importlib
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

try:
    import click
except ImportError:  # pragma: no cover — the base installation is the client alone
    sys.exit("pulumi-hosting: the command line is an extra. Next: pip install 'pulumi-hosting[pulumi,emulator]'")

# Extra → modules that show whether it is installed.
_EXTRAS: Mapping[str, Sequence[str]] = {"pulumi": ("pulumi", "cryptography"), "emulator": ("starlette", "uvicorn")}

# Command → where it lives, the extra that brings what it needs, and what the list of commands says of it.
_ELSEWHERE: Mapping[str, tuple[str, str, str]] = {
    "emulator": ("pulumi_hosting.emulator.cli", "emulator", "Serve the whole API on this machine."),
    "offline": ("pulumi_hosting.offline.cli", "pulumi", "Run a Pulumi program without Pulumi's CLI, for trying and testing."),
}


def _demand(*extras: str) -> None:
    """One clear line where something is not installed."""
    missing = [extra for extra in extras if any(find_spec(module) is None for module in _EXTRAS[extra])]
    if missing:
        raise click.ClickException(f"this command needs more than is installed. Next: pip install 'pulumi-hosting[{','.join(missing)}]'")


class _Commands(click.Group):
    """Commands that live in other parts are imported when they are asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*super().list_commands(context), *_ELSEWHERE})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _ELSEWHERE:
            return super().get_command(context, name)
        module, extra, _ = _ELSEWHERE[name]
        _demand(extra)
        found: click.Command = getattr(importlib.import_module(module), name)
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them: it must not depend on what is installed."""
        rows = []
        for name in self.list_commands(context):
            own = super().get_command(context, name)
            rows.append((name, own.get_short_help_str(100) if own else _ELSEWHERE[name][2]))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pulumi-hosting", message="%(version)s")
def main() -> None:
    """Tools of the provider for hosting companies that speak the Hosting Client API v1."""


@main.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--engine",
    type=click.Choice(["auto", "pulumi", "offline"]),
    default="auto",
    show_default=True,
    help="auto: pulumi where it is on PATH.",
)
@click.option("--dialect", type=click.Choice(["spec", "live"]), default="spec", show_default=True, help="What the emulator speaks.")
@click.option("-c", "--config", multiple=True, metavar="KEY=VALUE", help="Stack configuration that the program reads; may be repeated.")
@click.option("--install-pulumi", is_flag=True, help="Download Pulumi's CLI first (needs the internet), and use it.")
def rehearse(directory: Path, engine: str, dialect: str, config: tuple[str, ...], install_pulumi: bool) -> None:
    """Play the Pulumi program in DIRECTORY against a fresh emulator: preview, up, up again, drift and repair, destroy."""
    _demand("pulumi", "emulator")
    from pulumi_hosting import engines, rehearsal

    values = dict(entry.partition("=")[::2] for entry in config)
    if any("=" not in entry or not entry.partition("=")[0] for entry in config):
        raise click.BadParameter("must read KEY=VALUE", param_hint="--config")
    # Whoever ends a job from outside means Ctrl-C: what was started is ended, what was written is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        chosen = engines.install() if install_pulumi else engines.choose(engine)
        held = rehearsal.rehearse(chosen, directory, click.echo, dialect=dialect, config=values)
    except engines.EngineError as error:
        raise click.ClickException(str(error)) from None
    sys.exit(0 if held else 1)


@main.group()
def plugin() -> None:
    """Pulumi's plugin for programs in any language: where Pulumi's CLI finds it."""
    _demand("pulumi")


@plugin.command()
@click.option(
    "--pulumi",
    type=click.Path(exists=True, dir_okay=False, executable=True),
    metavar="PATH",
    help="Pulumi's CLI to ask. Default: the one on PATH; without one the plugin is put in its place.",
)
def install(pulumi: str | None) -> None:
    """Make pulumi-resource-hosting of this installation known to Pulumi's CLI."""
    from pulumi_hosting.provider import plugin_install

    try:
        click.echo(f"installed: {plugin_install.install(pulumi)}")
    except plugin_install.InstallError as error:
        raise click.ClickException(str(error)) from None


@plugin.command()
def uninstall() -> None:
    """Remove what install put in place."""
    from pulumi_hosting.provider import plugin_install

    removed = plugin_install.uninstall()
    click.echo(f"removed: {removed}" if removed else f"not installed: {plugin_install.place()}")


@plugin.command()
def path() -> None:
    """Print where the plugin is; exit code 1 where it is not installed."""
    from pulumi_hosting.provider import plugin_install

    click.echo(str(plugin_install.place()))
    sys.exit(0 if plugin_install.place().exists() else 1)


if __name__ == "__main__":
    main()
