"""`pulumi-hosting rehearse`."""

import signal
import sys
from pathlib import Path

import click

from pulumi_hosting.cli.lazy import require_extras
from pulumi_hosting.cli.progress import Progress


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--engine",
    type=click.Choice(["auto", "pulumi", "offline"]),
    default="auto",
    show_default=True,
    help="auto: Pulumi's CLI if it is on PATH, else the offline engine.",
)
@click.option(
    "--dialect",
    type=click.Choice(["spec", "live"]),
    default="spec",
    show_default=True,
    help="The emulator's dialect of the API.",
)
@click.option(
    "-c",
    "--config",
    multiple=True,
    metavar="KEY=VALUE",
    help="Stack configuration that the program reads; may be repeated.",
)
@click.option(
    "--install-pulumi", is_flag=True, help="Download Pulumi's CLI first (needs the internet), and use it."
)
def rehearse(
    directory: Path, engine: str, dialect: str, config: tuple[str, ...], install_pulumi: bool
) -> None:
    """Run the Pulumi program in DIRECTORY against a fresh emulator: preview, up, up again, drift and repair,
    destroy.
    """
    require_extras("pulumi", "emulator")
    from pulumi_hosting.rehearsal import engines, runner

    values = dict(entry.partition("=")[::2] for entry in config)
    if any("=" not in entry or not entry.partition("=")[0] for entry in config):
        raise click.BadParameter("must read KEY=VALUE", param_hint="--config")
    # SIGTERM is treated as Ctrl-C: the processes are ended and the stack's settings file is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        chosen = engines.install() if install_pulumi else engines.choose(engine)
        with Progress(sys.stdout) as progress:
            passed = runner.rehearse(
                chosen, directory, progress.line, dialect=dialect, config=values, started=progress.step
            )
    except engines.EngineError as error:
        raise click.ClickException(str(error)) from None
    sys.exit(0 if passed else 1)
