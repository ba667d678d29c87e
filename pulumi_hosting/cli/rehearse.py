"""`pulumi-hosting rehearse`."""

import signal
import sys
from functools import partial
from pathlib import Path

import click

from pulumi_hosting.cli.lazy import require_extras
from pulumi_hosting.cli.output import json_option, json_text, markdown_option
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
@click.option(
    "--junit",
    "junit_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write each step as a test case, in JUnit's XML.",
)
@json_option
@markdown_option
def rehearse(
    directory: Path,
    engine: str,
    dialect: str,
    config: tuple[str, ...],
    install_pulumi: bool,
    junit_file: Path | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Run the Pulumi program in DIRECTORY against a fresh emulator: preview, up, up again, drift and repair,
    destroy.

    It needs no key and no account. With --json and --markdown the steps are shown on standard error. Exit
    codes: 0 when everything was as expected, else 1.

    Example: pulumi-hosting rehearse examples/demo/program --junit rehearsal.xml
    """
    require_extras("pulumi", "emulator")
    from pulumi_hosting.cli import rehearse_formats as formats
    from pulumi_hosting.rehearsal import engines, runner

    values = dict(entry.partition("=")[::2] for entry in config)
    if any("=" not in entry or not entry.partition("=")[0] for entry in config):
        raise click.BadParameter("must read KEY=VALUE", param_hint="--config")
    # SIGTERM is treated as Ctrl-C: the processes are ended and the stack's settings file is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Progress() as progress:
            if install_pulumi:
                progress.step(1, None, "downloading Pulumi's CLI")
            chosen = engines.install() if install_pulumi else engines.choose(engine)
            line = progress.above(partial(click.echo, err=as_json or as_markdown))
            outcome = runner.rehearse(
                chosen, directory, line, dialect=dialect, config=values, started=progress.step
            )
    except engines.EngineError as error:
        raise click.ClickException(str(error)) from None
    if junit_file is not None:
        junit_file.write_text(formats.junit(outcome), encoding="utf-8")
    if as_json:
        click.echo(json_text(outcome.facts()))
    elif as_markdown:
        click.echo(formats.markdown(outcome))
    sys.exit(0 if outcome.passed else 1)
