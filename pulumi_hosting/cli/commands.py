"""The commands: options and help of each, and the module that does its work, loaded when the command runs."""

import os
from collections.abc import Callable
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
_host = partial(click.option, default="127.0.0.1", show_default=True, help="The address to listen on.")


def _number(name: str, least: int, most: int | None = None, **options: object) -> Callable[[Work], Work]:
    """An option that takes a whole number."""
    return click.option(name, type=click.IntRange(least, most), show_default=True, **options)  # type: ignore[arg-type]  # click checks them


_LOADED_WHEN_CALLED = {
    "action": Command("pulumi_hosting.cli.action:action", "Renew, pay, restart, reset a password."),
    "emulator": Command(
        "pulumi_hosting.emulator.cli:emulator", "Serve the whole API on this machine.", ("emulator",)
    ),
    "offline": Command(
        "pulumi_hosting.cli.offline:offline",
        "Run a Pulumi program without Pulumi's CLI, to try and test it.",
        ("pulumi",),
    ),
}


@click.group(
    cls=LazyGroup, lazy=_LOADED_WHEN_CALLED, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="pulumi-hosting", message="%(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Tools for Pulumi and Ansible at any host that implements the Hosting Client API v1.

    Commands use the account of HOSTING_API_KEY at HOSTING_BASE_URL.

    Example: pulumi-hosting doctor
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False  # of every command


@main.command(short_help="List what is on the account but in no stack or playbook.")
@_files("--stack", "stacks", metavar="EXPORT", help="An export from `pulumi stack export`; may be repeated.")
@_files(
    "--results",
    metavar="FILE",
    help="The report of the callback hosting.cloud.drift from a run or check run, or the output of the "
    "callback ansible.posix.json; may be repeated.",
)
@click.option(
    "--form",
    type=click.Choice(["native", "dynamic", "ansible"]),
    help="What should adopt the objects: the native provider, dynamic resources, or a playbook. Default: "
    "what made the given files, else what is installed.",
)
@click.option(
    "--commands",
    is_flag=True,
    help="Also print commands that remove each object. Needs --stack; with --form ansible, --results is "
    "enough.",
)
@click.option(
    "--ends-within",
    callback=_duration,
    metavar="TIME",
    help="Also list what ends within this time (7d, 36h) and is not paid for.",
)
@reports("pulumi_hosting.reports.audit:run")
def audit() -> None:
    """List what is on the account, or paid for, but in none of the given stacks and playbook runs.

    It reads the account of HOSTING_API_KEY at HOSTING_BASE_URL and changes nothing. Exit codes: 0 if
    everything is managed, 7 if something is not, or the paid time of something managed is over, 1 if the
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
    help="The most that the run may be charged, refunds not counted. Default: nothing.",
)
@click.option("--domain", metavar="NAME", help="Register this domain. It stays on the account.")
@click.option("--webhook-url", metavar="URL", help="A public https URL that forwards to --webhook-port.")
@_host("--webhook-host")
@_number("--webhook-port", 1, 65535, default=5000, help="The port to listen on.")
@_number("--max-requests", 1, default=2000, help="Stop after this many requests.")
@_written(
    "--state",
    help="Record in this file what the live part did, so that a killed run can continue and orders nothing "
    "twice. The file holds passwords.",
)
@_written("--save", help="Write down what the deployment does if the document leaves a choice.")
@_written("--junit", "junit_file", help="Write the results as JUnit XML.")
@json_option
@works_in("pulumi_hosting.cli.certify:certify")
def certify() -> None:
    """Check whether a deployment does what the API document says, sentence by sentence.

    With the test key of HOSTING_API_KEY it only reads and simulates. With --live-key-file and --spend it
    orders the cheapest server, renews and deletes it, and compares each charge. It removes what it made and
    names what it leaves behind. It uses up the rate limit of the test key. Exit codes: 0 if no departure was
    found, 7 if one was, 1 if the run was not finished, 2 for a key or an option that cannot be used.

    Example: pulumi-hosting certify --base-url https://api.example.com/v1 --save profile.json
    """


@main.command(short_help="Show what the changes of a preview cost, now and per month.")
@click.argument("previews", nargs=-1, required=True, metavar="FILE...", type=_FILE_OR_INPUT)
@reports("pulumi_hosting.reports.cost:run", markdown=True)
def cost() -> None:
    """Show what the changes of a preview cost: charged now, per month afterwards, refunded, and how long the
    balance lasts.

    FILE is the output of `pulumi preview --json`, the report of the callback hosting.cloud.drift from a check
    run, or the output of the callback ansible.posix.json in one; - is standard input. If HOSTING_API_KEY is
    set, the account is asked for the rest; nothing is changed. Unknown prices are listed and not in the sums.
    Exit codes: 0, or 2 if the file is not a preview, or is from one that failed.

    Example: pulumi preview --json | pulumi-hosting cost --markdown -
    """


@main.command(short_help="Check key, account, service and installation.")
@json_option
@works_in("pulumi_hosting.cli.doctor:run")
def doctor() -> None:
    """Check key, account, service and installation, and say what to do about each problem.

    It reads the account of HOSTING_API_KEY at HOSTING_BASE_URL and changes nothing. Without a key or a
    network it says what is missing and checks the rest. The key is never shown. Exit codes: 0 without a
    problem, 1 with one; warnings do not count.

    Example: HOSTING_BASE_URL=https://api.example.com/v1 pulumi-hosting doctor
    """


@main.command(short_help="List until when everything is paid, and what ends.")
@_number("--days", 1, 1000, default=90, help="How far to look.")
@_files(
    "--stack",
    "stacks",
    metavar="EXPORT",
    help="An export from `pulumi stack export`, to say which objects it knows; may be repeated.",
)
@_files(
    "--results",
    metavar="FILE",
    help="The same for a report of the callback hosting.cloud.drift; may be repeated.",
)
@reports("pulumi_hosting.reports.renewals:run", markdown=True)
def renewals() -> None:
    """List until when everything is paid, which renewals the balance covers, by date, and what ends.

    It reads servers, domains and unpaid invoices of the account of HOSTING_API_KEY at HOSTING_BASE_URL and
    changes nothing. Exit codes: 0 if everything due is covered, 7 if something has ended, or ends within the
    days and is not covered, 1 if a part of the account could not be read.

    Example: pulumi-hosting renewals --days 30 --markdown
    """


@main.command(short_help="Serve paid time and balance as metrics for Prometheus.")
@_number("--port", 0, 65535, default=9973, help="0: a free one.")
@_host("--host")
@_number(
    "--interval", 1, 86400, default=300, metavar="SECONDS", help="Read the account at most once in this time."
)
@works_in("pulumi_hosting.cli.exporter:run", "exporter")
def exporter() -> None:
    """Serve paid time and balance as metrics for Prometheus, until Ctrl-C.

    The balance and how long it lasts; for each server, domain and unpaid invoice its date, whether it is
    covered, and whether it has ended. Each scrape reads the account of HOSTING_API_KEY at HOSTING_BASE_URL,
    at most once per --interval, and changes nothing. If it cannot be read, the last values stay, with their
    age. Exit codes: 0 after Ctrl-C, 1 if it cannot listen or has no usable key.

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
    help="Also write the pipeline for this CI service: review, merge and nightly check of the files.",
)
@click.option(
    "--form",
    type=click.Choice(["dynamic", "native", "ansible"]),
    default="dynamic",
    show_default=True,
    help="dynamic: a Pulumi program in Python that needs no plugin; native: a program for the native "
    "provider; ansible: a playbook.",
)
@reports("pulumi_hosting.reports.import_files:run")
def import_account() -> None:
    """Write everything on the account as a program or a playbook into DIR.

    Servers, domains, SSH keys, bought addresses, reverse DNS and webhook subscriptions of the account of
    HOSTING_API_KEY at HOSTING_BASE_URL. It only reads the account, and overwrites no file. The first run of
    the program orders nothing and changes only ownership tags; the second changes nothing. --account-file
    writes a file instead that starts an emulator as a copy of the account, to try a plan on: with catalog,
    balance and invoices, without secrets. If the command is stopped, repeat it within ten minutes and it
    continues.
    Exit codes: 0 if everything is in the files, 1 if something was left out or could not be read (it is
    listed), 2 if DIR already has such files.

    Example: pulumi-hosting import shop && cd shop && pulumi stack init prod && pulumi preview
    """


@main.command(short_help="Show what a crashed run left unfinished, and what resolves it.")
@click.argument("export", metavar="EXPORT", type=_FILE_OR_INPUT)
@reports("pulumi_hosting.reports.recovery:run")
def recover() -> None:
    """Show what a crashed run left unfinished in a stack, with a command that resolves each item.

    EXPORT is a file from `pulumi stack export`; - is standard input. With HOSTING_API_KEY it also says which
    of it exists on the account. Nothing is changed. Exit codes: 0 if nothing is unfinished, 7 if there is
    something to do, 2 if the file is not an export.

    Example: pulumi stack export | pulumi-hosting recover -
    """


@main.command(short_help="Play a Pulumi program's whole life against a fresh emulator.")
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
    show_default="spec, or the profile's",
    help="The emulator's dialect of the API.",
)
@click.option(
    "--profile", type=_FILE, help="Make the emulator behave like this profile, from `certify --save`."
)
@_config_option()
@click.option(
    "--install-pulumi", is_flag=True, help="Download Pulumi's CLI first (needs the internet), and use it."
)
@_written("--junit", "junit_file", help="Write each step as a test case, as JUnit XML.")
@_number(
    "--days",
    1,
    1000,
    help="Instead of drift and repair, play this many days of paid time after the first up.",
)
@click.option("--balance", metavar="AMOUNT", help="The account's balance at the start.")
@json_option
@markdown_option
@works_in("pulumi_hosting.cli.rehearse:run", "pulumi", "emulator")
def rehearse() -> None:
    """Play the Pulumi program in DIRECTORY against a fresh emulator: preview, up, up again, drift and repair,
    destroy.

    With --days, DIRECTORY may also be a playbook: it runs once, and is checked on the days on which a check
    can find something new. --config sets its variables.

    It needs no key and no account. With --json and --markdown the steps are shown on standard error. Exit
    codes: 0 if everything went as expected, 7 if something would be lost within --days, else 1.

    Example: pulumi-hosting rehearse examples/demo/program --days 400 --balance 50.00
    """


@main.command(short_help="Find all mistakes of a Pulumi program at once, without an account.")
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
    """Find all mistakes of the program in DIRECTORY at once, without an account or a key.

    Prints one line for each: the line of the program, the resource, the mistake and what to do. The program
    runs once; nothing is sent. Lookups get the answers of a fresh emulator. Stock, prices and whatever else
    only the account knows are checked by the preview. Exit codes: 0 if nothing is wrong, 7 if something is, 1
    if the program could not be run (a syntax error, a missing module, sys.exit) and nothing else was found, 2
    if there is no Pulumi project in one of these languages.

    A program in YAML, TypeScript or JavaScript is read, not run, to find one mistake: deletedWith a server
    that protect or retainOnDelete keeps. Pulumi itself checks the types of its arguments.

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
        _host("--host"),
        _number("--port", 0, 65535, default=5000, help="0: a free one."),
    ):
        command = option(command)
    return command


@webhook.command()
@_listening
@_written(
    "--state-file",
    help="Keep events in this file, so that none is printed twice or lost between two runs. By default "
    "nothing is kept.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@works_in("pulumi_hosting.cli.webhook:listen")
def listen() -> None:
    """Print the events that the service delivers, until Ctrl-C.

    The subscription's secret comes from HOSTING_WEBHOOK_SECRET; separate several with commas. Deliveries
    with a bad signature get a 401 and are logged to standard error. The service delivers to https only: put a
    proxy or a tunnel that terminates TLS in front. Exit codes: 0 after Ctrl-C, 1 if it cannot listen, 2
    without a usable secret.

    Example: HOSTING_WEBHOOK_SECRET=whsec_… pulumi-hosting webhook listen --json
    """


@webhook.command()
@_listening
@click.option("--to", required=True, metavar="URL", help="The URL that receives each event.")
@click.option(
    "--form",
    type=click.Choice(["cloudevents", "eda"]),
    default="cloudevents",
    show_default=True,
    help="CloudEvents 1.0 in JSON, or the event as delivered, signed so that an EDA event stream accepts it.",
)
@_written(
    "--state-file",
    help="Keep events in this file until the receiver takes them. Default: the shared store of "
    "HOSTING_STORE, or webhook-PORT.sqlite in the state directory if there is none.",
)
@works_in("pulumi_hosting.cli.webhook:relay")
def relay() -> None:
    """Pass the service's events on to another receiver, until Ctrl-C.

    Each event is verified, kept, and posted at least once, in the order of arrival, until the receiver
    answers 2xx. With HOSTING_STORE, all relays to one URL share a queue. The subscription's secret comes from
    HOSTING_WEBHOOK_SECRET. HOSTING_RELAY_SECRET signs the body in the header X-Hub-Signature-256; the form
    eda needs it. Exit codes: 0 after Ctrl-C, 1 if it cannot listen, 2 without a usable secret, URL or store.

    Example: pulumi-hosting webhook relay --to https://eda.example.org/stream --form eda
    """


@main.group(cls=CommandGroup, short_help="Install Pulumi's plugin for programs in any language.")
def plugin() -> None:
    """Pulumi's plugin for programs in any language: register it with Pulumi's CLI.

    Example: pulumi-hosting plugin install
    """
    require_extras("pulumi")


@plugin.command()
@click.option(
    "--pulumi",
    type=click.Path(exists=True, dir_okay=False, executable=True),
    metavar="PATH",
    help="Install with this Pulumi CLI. Default: the one on PATH; if there is none, copy the plugin to "
    "Pulumi's folder.",
)
@works_in("pulumi_hosting.cli.plugin:install")
def install() -> None:
    """Register this installation's pulumi-resource-hosting with Pulumi's CLI.

    Example: pulumi-hosting plugin install --pulumi ~/.pulumi/bin/pulumi
    """


@plugin.command()
@works_in("pulumi_hosting.cli.plugin:uninstall")
def uninstall() -> None:
    """Remove the plugin that `install` registered.

    Example: pulumi-hosting plugin uninstall
    """


@plugin.command()
@works_in("pulumi_hosting.cli.plugin:path")
def path() -> None:
    """Print the path of the plugin; exit code 1 if it is not installed.

    Example: pulumi-hosting plugin path || pulumi-hosting plugin install
    """
