"""``pulumi-hosting``: one small function per command; each loads what it needs when it is called."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

try:
    import click
except ImportError:  # pragma: no cover — the base installation is the client alone
    sys.exit("pulumi-hosting: the command line is an extra. Next: pip install 'pulumi-hosting[pulumi,emulator]'")

# Command → where it lives and the extra that brings what it needs.
_ELSEWHERE: Mapping[str, tuple[str, str, str]] = {
    "emulator": ("pulumi_hosting.emulator.cli", "emulator", "emulator"),
    "offline": ("pulumi_hosting.offline.cli", "offline", "pulumi"),
}


class _Commands(click.Group):
    """Commands that live in other parts are imported when asked for; a missing extra is one clear line."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*super().list_commands(context), *_ELSEWHERE})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _ELSEWHERE:
            return super().get_command(context, name)
        module, attribute, extra = _ELSEWHERE[name]
        try:
            found: click.Command = getattr(importlib.import_module(module), attribute)
        except ImportError as error:
            if (error.name or "").startswith("pulumi_hosting"):
                raise
            raise click.ClickException(f"{error.name} is not installed. Next: pip install 'pulumi-hosting[{extra}]'") from None
        return found


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
    try:
        from pulumi_hosting import engines, rehearsal
    except ImportError as error:
        raise click.ClickException(f"{error.name} is not installed. Next: pip install 'pulumi-hosting[pulumi,emulator]'") from None
    try:
        chosen = engines.install() if install_pulumi else engines.choose(engine)
    except engines.EngineMissing as error:
        raise click.ClickException(str(error)) from None
    values = dict(entry.partition("=")[::2] for entry in config)
    sys.exit(0 if rehearsal.rehearse(chosen, directory, click.echo, dialect=dialect, config=values) else 1)


if __name__ == "__main__":
    main()
