"""The commands: options and help of each, and the module that does its work, loaded when the command runs."""

import os
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import click

from pulumi_hosting.cli.lazy import Command, CommandGroup, LazyGroup, Work, require_extras, works_in
from pulumi_hosting.cli.output import json_option, key_values, markdown_option, reports
from pulumi_hosting.session.text import duration


def _duration(context: click.Context, option: click.Parameter, value: str | None) -> timedelta | None:
    try:
        return None if value is None else duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _amount(context: click.Context, option: click.Parameter, value: str) -> Decimal:
    try:
        if (given := Decimal(value)).is_finite() and given >= 0:
            return given
    except ArithmeticError:
        pass
    raise click.BadParameter(f"{value!r} is no amount such as 20.00")


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_files = partial(click.option, multiple=True, type=_FILE)
_FILE_OR_INPUT = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
_config_option = partial(
    click.option,
    "-c",
    "--config",
    multiple=True,
    metavar="KEY=VALUE",
    help="Stack configuration that the program reads; may be repeated.",
)
_LOADED_WHEN_CALLED = {
    "action": Command("pulumi_hosting.cli.action:action", "Renew, pay, restart, reset a password."),
    "emulator": Command(
        "pulumi_hosting.emulator.cli:emulator", "Serve the whole API on this machine.", ("emulator",)
    ),
    "offline": Command(
        "pulumi_hosting.cli.offline:offline",
        "Run a Pulumi program without Pulumi's CLI, for trying and testing.",
        ("pulumi",),
    ),
}


@click.group(
    cls=LazyGroup, lazy=_LOADED_WHEN_CALLED, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="pulumi-hosting", message="%(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Tools of the provider for hosting companies with the Hosting Client API v1.

    Commands read the account of HOSTING_API_KEY at HOSTING_BASE_URL.

    Example: pulumi-hosting doctor
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False  # of every command


@main.command(short_help="List what is on the account and in no stack and no playbook.")
@_files(
    "--stack", "stacks", metavar="EXPORT", help="A file that `pulumi stack export` wrote; may be repeated."
)
@_files(
    "--results",
    metavar="FILE",
    help="The report that the callback hosting.cloud.drift wrote in a run or check run, or the output of the "
    "callback ansible.posix.json; may be repeated.",
)
@click.option(
    "--form",
    type=click.Choice(["native", "dynamic", "ansible"]),
    help="What is to adopt an object: the native provider, dynamic resources, or a playbook. Default: what "
    "made the given files, else what is installed.",
)
@click.option(
    "--commands",
    is_flag=True,
    help="Print what removes each object too. Needs --stack; with --form ansible, --results is enough.",
)
@click.option(
    "--ends-within",
    callback=_duration,
    metavar="TIME",
    help="Name, too, what ends within this time and is not paid for, such as 7d or 36h.",
)
@reports("pulumi_hosting.reports.audit:run")
def audit() -> None:
    """List what is on the account, or paid for, and in no given stack and no given playbook run.

    It asks the account of HOSTING_API_KEY and HOSTING_BASE_URL and changes nothing. Exit codes: 0 when
    everything is managed, 7 when something is not, or the paid time of what is managed is over, 1 when the
    account could not be read completely or a task of a playbook run failed.

    Example: pulumi stack export > prod.json; pulumi-hosting audit --stack prod.json
    """


_written = partial(click.option, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")


@main.command(short_help="Check whether a deployment does what the API document says.")
@click.option("--base-url", metavar="URL", help="The deployment. Default: HOSTING_BASE_URL.")
@click.option(
    "--live-key-file",
    type=_FILE,
    metavar="FILE",
    help="The live key of a staging account: order, renew and delete, within --spend.",
)
@click.option(
    "--narrow-key-file", type=_FILE, metavar="FILE", help="A key that lacks scopes, for the checks of scopes."
)
@click.option(
    "--spend",
    default="0",
    callback=_amount,
    metavar="AMOUNT",
    help="What the run may be charged at most, refunds not counted. Default: nothing.",
)
@click.option("--domain", metavar="NAME", help="Register this domain. It stays on the account.")
@click.option("--webhook-url", metavar="URL", help="A public https URL that leads to --webhook-port.")
@click.option("--webhook-host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--webhook-port",
    type=click.IntRange(1, 65535),
    default=5000,
    show_default=True,
    help="The port to listen on.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    help="Stop after so many requests.",
)
@_written(
    "--state",
    help="Keep what the live part did in this file, so that the command continues after it was killed and "
    "orders nothing twice. It holds passwords.",
)
@_written("--save", help="Write what the deployment does where the document leaves a choice.")
@_written("--junit", help="Write the results as JUnit XML.")
@json_option
@works_in("pulumi_hosting.cli.certify:certify")
def certify() -> None:
    """Check whether a deployment does what the API document says, sentence by sentence.

    With the test key of HOSTING_API_KEY it only reads and simulates. With --live-key-file and --spend it
    orders the cheapest server, renews and deletes it, and compares each charge. It removes what it made and
    names what it leaves behind. It uses up the rate limit of the test key. Exit codes: 0 when no departure
    was found, 7 when one was, 1 when the run was not finished, 2 for a key or an option that cannot be used.

    Example: pulumi-hosting certify --base-url https://api.example.com/v1 --save profile.json
    """


@main.command(short_help="Say what the changes of a preview cost, now and per month.")
@click.argument("previews", nargs=-1, required=True, metavar="FILE...", type=_FILE_OR_INPUT)
@reports("pulumi_hosting.reports.cost:run", markdown=True)
def cost() -> None:
    """Say what the changes of a preview cost: charged now, per month afterwards, refunded, and how long the
    balance lasts.

    FILE is the output of `pulumi preview --json`, the report that the callback hosting.cloud.drift wrote in
    a check run, or the output of the callback ansible.posix.json in one; - is standard input. What a preview
    does not say is asked of the account of HOSTING_API_KEY, if that is set. Nothing is changed. What is not
    known is named and not in the sums. Exit codes: 0, or 2 for a
    file that is no preview, or that of one that failed.

    Example: pulumi preview --json | pulumi-hosting cost --markdown -
    """


@main.command(short_help="Check key, account, service and installation.")
@json_option
@works_in("pulumi_hosting.cli.doctor:run")
def doctor() -> None:
    """Check key, account, service and installation, and say what to do about each problem.

    It asks the service of HOSTING_BASE_URL with HOSTING_API_KEY, and changes nothing. It works without a key
    and without a network too: it says what is missing and checks the rest. The key is never shown. Exit
    codes: 0 without a problem, 1 with one; warnings do not count.

    Example: HOSTING_BASE_URL=https://api.example.com/v1 pulumi-hosting doctor
    """


@main.command(short_help="List what is paid until when, and what ends.")
@click.option("--days", type=click.IntRange(1, 1000), default=90, show_default=True, help="How far to look.")
@_files(
    "--stack",
    "stacks",
    metavar="EXPORT",
    help="A file that `pulumi stack export` wrote: say which objects it knows; may be repeated.",
)
@_files(
    "--results",
    metavar="FILE",
    help="The same for a report of the callback hosting.cloud.drift; may be repeated.",
)
@reports("pulumi_hosting.reports.renewals:run", markdown=True)
def renewals() -> None:
    """List what is paid until when, which renewals the balance covers in order of days, and what ends.

    Servers, domains and unpaid invoices of the account of HOSTING_API_KEY at HOSTING_BASE_URL. Nothing is
    changed. Exit codes: 0 when everything that is due is covered, 7 when something has ended, or ends within
    the days and is not covered, 1 when a part of the account could not be read.

    Example: pulumi-hosting renewals --days 30 --markdown
    """


@main.command(short_help="Serve what is paid until when as metrics for Prometheus.")
@click.option("--port", type=click.IntRange(0, 65535), default=9973, show_default=True, help="0: a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--interval",
    type=click.IntRange(1, 86400),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Read the account at most once in this time.",
)
@works_in("pulumi_hosting.cli.exporter:run", "exporter")
def exporter() -> None:
    """Serve what is paid until when as metrics for Prometheus, until Ctrl-C.

    The balance and how long it lasts, and of each server, domain and unpaid invoice until when it is paid,
    whether that is covered, and whether it has ended. The account of HOSTING_API_KEY at HOSTING_BASE_URL is
    read when the metrics are, and not changed. If it cannot be read, the last values stay, with their age.
    Exit codes: 0 after Ctrl-C, 1 where it cannot listen or has no usable key.

    Example: pulumi-hosting exporter --port 9973 --interval 600
    """


@main.command(name="import", short_help="Write everything on the account as a program or a playbook.")
@click.argument(
    "directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path)
)
@_written("--account-file", help="Write a copy of the account into FILE, for the emulator's --account.")
@click.option(
    "--pipeline",
    type=click.Choice(["github", "gitlab"]),
    help="Write the pipeline of this CI service too: review, merge and nightly check of what was written.",
)
@click.option(
    "--form",
    type=click.Choice(["dynamic", "native", "ansible"]),
    default="dynamic",
    show_default=True,
    help="dynamic: a Pulumi program in Python that needs no plugin; native: one for the native provider; "
    "ansible: a playbook.",
)
@reports("pulumi_hosting.reports.import_files:run")
def import_account() -> None:
    """Write everything that is on the account as a program or a playbook into DIR.

    Servers, domains, SSH keys, bought addresses, reverse DNS and webhook subscriptions of the account of
    HOSTING_API_KEY and HOSTING_BASE_URL. The account is only read, and no file is overwritten. The first run
    of what was written orders nothing and changes nothing but ownership tags; the second one does nothing.
    With --account-file it is a file with which an emulator starts as a copy of the account, to try a plan on:
    catalog, balance and invoices too, no secrets. A run that was stopped goes on where it was if it is
    repeated within ten minutes.
    Exit codes: 0 when everything is in the files, 1 when something was left out or could not be read, which
    is listed, 2 when DIR has such files already.

    Example: pulumi-hosting import shop && cd shop && pulumi stack init prod && pulumi preview
    """


@main.command(short_help="Say what a crashed run left unfinished, and what resolves it.")
@click.argument("export", metavar="EXPORT", type=_FILE_OR_INPUT)
@reports("pulumi_hosting.reports.recovery:run")
def recover() -> None:
    """Say what a crashed run left unfinished in a stack, and the command that resolves each of it.

    EXPORT is a file that `pulumi stack export` wrote; - is standard input. With HOSTING_API_KEY it says what
    of it exists on the account. Nothing is changed. Exit codes: 0 when nothing is unfinished, 7 when
    something is to be done, 2 for a file that is no export.

    Example: pulumi stack export | pulumi-hosting recover -
    """


@main.command(short_help="Run a Pulumi program through its life against a fresh emulator.")
@click.argument("directory", type=click.Path(exists=True, path_type=Path))
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
    show_default="spec, or that of the profile",
    help="The emulator's dialect of the API.",
)
@click.option(
    "--profile", type=_FILE, help="Rehearse on an emulator that behaves like this, of `certify --save`."
)
@_config_option()
@click.option(
    "--install-pulumi", is_flag=True, help="Download Pulumi's CLI first (needs the internet), and use it."
)
@_written("--junit", "junit_file", help="Write each step as a test case, in JUnit's XML.")
@click.option(
    "--days",
    type=click.IntRange(1, 1000),
    help="In place of drift and repair, play so many days of paid time after the first up.",
)
@click.option("--balance", metavar="AMOUNT", help="What the account holds at the start.")
@json_option
@markdown_option
@works_in("pulumi_hosting.cli.rehearse:run", "pulumi", "emulator")
def rehearse() -> None:
    """Run the Pulumi program in DIRECTORY against a fresh emulator: preview, up, up again, drift and repair,
    destroy.

    With --days DIRECTORY may be a playbook too: it runs once, and is checked on the days on which a check can
    say something new. --config sets variables of it.

    It needs no key and no account. With --json and --markdown the steps are shown on standard error. Exit
    codes: 0 when everything was as expected, 7 when something would be lost within --days, else 1.

    Example: pulumi-hosting rehearse examples/demo/program --days 400 --balance 50.00
    """


@main.command(short_help="Name all mistakes of a Pulumi program at once, without an account.")
@click.argument("directory", type=_DIRECTORY)
@_config_option(callback=lambda context, option, given: key_values(given))
@click.option(
    "-s",
    "--stack",
    metavar="NAME",
    help="Read the configuration of this stack, from Pulumi.NAME.yaml; its secrets are not decrypted.",
)
@reports("pulumi_hosting.reports.validate:run", "pulumi", "emulator", asks=False)
def validate() -> None:
    """Name all mistakes of the program in DIRECTORY at once, without an account and without a key.

    One line for each: the line of the program, the resource, what is wrong and what to do. The program runs
    once; nothing is sent. Lookups are answered as an emulator's fresh account answers them. What only the
    account knows, such as stock and prices, is checked by the preview. Exit codes: 0 when nothing is wrong,
    7 when something is, 1 when the program could not be run (a syntax error, a missing
    module, sys.exit) and nothing else was found, 2 where there is no Pulumi project in these languages.

    A program in YAML, TypeScript or JavaScript is read, not run, for one mistake: deletedWith a server that
    protect or retainOnDelete keeps. Pulumi itself checks the types of its arguments.

    Example: pulumi-hosting validate infra --config domain=example.com
    """


@main.group(cls=CommandGroup)
def webhook() -> None:
    """Receive webhooks on this machine.

    Example: HOSTING_WEBHOOK_SECRET=whsec_… pulumi-hosting webhook listen --port 5000
    """


def _listening(command: Work) -> Work:
    """The options of a command that receives deliveries."""
    for option in (
        click.option("--path", default="/", show_default=True, help="The path of the subscription's URL."),
        click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on."),
        click.option(
            "--port", type=click.IntRange(0, 65535), default=5000, show_default=True, help="0: a free one."
        ),
    ):
        command = option(command)
    return command


@webhook.command()
@_listening
@_written(
    "--state-file",
    help="Keep events in this file, so that none is printed twice and none is lost between two runs. Without "
    "it nothing is kept.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@works_in("pulumi_hosting.cli.webhook:listen")
def listen() -> None:
    """Print the events that the service delivers, until Ctrl-C.

    The secret of the subscription is read from HOSTING_WEBHOOK_SECRET, several separated by commas. A
    delivery without a valid signature is answered with 401 and not printed; standard error says so. The
    service delivers to https only: put a proxy or a tunnel that terminates TLS in front. Exit codes: 0 after
    Ctrl-C, 1 where it cannot listen, 2 without a usable secret.

    Example: HOSTING_WEBHOOK_SECRET=whsec_… pulumi-hosting webhook listen --json
    """


@webhook.command()
@_listening
@click.option("--to", required=True, metavar="URL", help="Where each event is posted.")
@click.option(
    "--form",
    type=click.Choice(["cloudevents", "eda"]),
    default="cloudevents",
    show_default=True,
    help="CloudEvents 1.0 in JSON, or the event as delivered, signed as an event stream of EDA verifies it.",
)
@_written(
    "--state-file",
    help="Where events are kept until they were taken. Default: the shared store of HOSTING_STORE, without "
    "one webhook-PORT.sqlite in the state directory.",
)
@works_in("pulumi_hosting.cli.webhook:relay")
def relay() -> None:
    """Pass the events that the service delivers on to another receiver, until Ctrl-C.

    Each is verified, kept, and posted at least once, in the order of arrival, until the receiver answers
    2xx. With HOSTING_STORE the relays to one URL share a queue. The secret of the subscription is read from
    HOSTING_WEBHOOK_SECRET. With HOSTING_RELAY_SECRET the body is signed in the header X-Hub-Signature-256;
    the form eda needs it. Exit codes: 0 after Ctrl-C, 1 if it cannot listen, 2 without a usable secret, URL
    or store.

    Example: pulumi-hosting webhook relay --to https://eda.example.org/stream --form eda
    """


@main.group(cls=CommandGroup, short_help="Install Pulumi's plugin for programs in any language.")
def plugin() -> None:
    """Pulumi's plugin for programs in any language: make it known to Pulumi's CLI.

    Example: pulumi-hosting plugin install
    """
    require_extras("pulumi")


@plugin.command()
@click.option(
    "--pulumi",
    type=click.Path(exists=True, dir_okay=False, executable=True),
    metavar="PATH",
    help="Pulumi's CLI to install with. Default: the one on PATH; without one the plugin is "
    "copied to Pulumi's folder.",
)
@works_in("pulumi_hosting.cli.plugin:install")
def install() -> None:
    """Make pulumi-resource-hosting of this installation known to Pulumi's CLI.

    Example: pulumi-hosting plugin install --pulumi ~/.pulumi/bin/pulumi
    """


@plugin.command()
@works_in("pulumi_hosting.cli.plugin:uninstall")
def uninstall() -> None:
    """Remove what `install` installed.

    Example: pulumi-hosting plugin uninstall
    """


@plugin.command()
@works_in("pulumi_hosting.cli.plugin:path")
def path() -> None:
    """Print the path of the plugin; exit code 1 when it is not installed.

    Example: pulumi-hosting plugin path || pulumi-hosting plugin install
    """
