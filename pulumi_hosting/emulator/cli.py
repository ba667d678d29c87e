"""``pulumi-hosting emulator``: serves until it is stopped, and prints one line when it is ready."""

import json
import logging
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from pulumi_hosting.emulator import NotStarted, Running, command_line, wait_until_ready
from pulumi_hosting.emulator.browser_requests import allowed_name, host_name
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.control.endpoint import ControlError, parsed
from pulumi_hosting.emulator.control.switches import ServiceBody
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import format_timestamp, parse_timestamp
from pulumi_hosting.emulator.persistence import UnreadableStateFile, open_state
from pulumi_hosting.emulator.webhook_delivery import check_routes

T = TypeVar("T")


def _checked(check: Callable[[T], object]) -> Callable[[click.Context, click.Parameter, T], object]:
    """A callback of an option; ``check`` raises ``ValueError`` with what is wrong."""

    def callback(context: click.Context, parameter: click.Parameter, value: T) -> object:
        try:
            return check(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return callback


def _routes(values: tuple[str, ...]) -> dict[str, str]:
    if wrong := [value for value in values if "=" not in value]:
        raise ValueError(f"{wrong[0]!r} is not ORIGIN=URL")
    return check_routes(dict(value.split("=", 1) for value in values))


def _moment(value: str | None) -> float | None:
    try:
        return None if value is None else parse_timestamp(value)
    except ValueError:
        raise ValueError(f"{value!r} is not an RFC 3339 time, such as 2027-01-31T08:00:00Z") from None


_option = partial(click.option, show_default=True)
_SECONDS = click.FloatRange(min=0)


@click.command()
@_option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--allow-host",
    multiple=True,
    callback=_checked(lambda names: tuple(map(allowed_name, names))),
    metavar="NAME",
    help="Also serve the control interface and the console under this host name; may be repeated. By default "
    "only under this machine's names and --host.",
)
@_option("--port", default=0, type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free one.")
@click.option(
    "--dialect",
    show_default="spec, or the state file's",
    type=click.Choice(["spec", "live"]),
    help="Answer as the API document says, or like live deployments.",
)
@click.option("--state", type=click.Path(dir_okay=False, path_type=Path), help="Keep all data in this file.")
@_option("--seed", default=0, help="Makes keys, ids, passwords and secrets reproducible.")
@_option(
    "--clock",
    default="real",
    type=click.Choice(["real", "manual"]),
    help="manual: only the control interface moves time.",
)
@click.option(
    "--now",
    callback=_checked(_moment),
    metavar="TIME",
    help="When the clock starts, such as 2027-01-31T08:00:00Z. With the same seed and a manual clock, the "
    "same requests get the same bytes. An existing state file keeps its own time.",
)
@click.option(
    "--account",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Start with the account in this file; `pulumi-hosting import --account-file` writes one. Ignored if "
    "the state file exists.",
)
@_option("--provisioning-delay", default=0.0, type=_SECONDS, help="Seconds until a 202 order is finished.")
@_option("--ip-delay", default=0.0, type=_SECONDS, help="Seconds until a bought address appears.")
@click.option(
    "--tls",
    nargs=2,
    type=click.Path(exists=True, dir_okay=False),
    metavar="CERT KEY",
    help="Serve https with this certificate.",
)
@click.option(
    "--webhook-route",
    "routes",
    multiple=True,
    callback=_checked(_routes),
    metavar="ORIGIN=URL",
    help="Send webhooks for this origin to a URL on loopback; may be repeated.",
)
@click.option(
    "--profile",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Behave like the deployment for which `certify --save` wrote this file.",
)
@click.option(
    "--log",
    is_flag=True,
    help="Print one line for each request of the API on standard error, without keys and passwords.",
)
@click.option(
    "--export",
    is_flag=True,
    help="Run in the background, and print shell commands that set HOSTING_API_KEY and HOSTING_BASE_URL. "
    "Stop it with `kill $HOSTING_EMULATOR_PID`.",
)
@click.pass_context
def emulator(
    context: click.Context,
    /,
    host: str,
    allow_host: tuple[str, ...],
    port: int,
    state: Path | None,
    clock: str,
    now: float | None,
    account: Path | None,
    tls: tuple[str, str] | None,
    profile: Path | None,
    log: bool,
    export: bool,
    **options: Any,
) -> None:
    """Serve the whole API and a control interface until stopped.

    When it is ready, it prints one line of JSON: the base URL, the URL of the control interface, a live and a
    test key, and its process id. Exit codes: 0 after SIGINT or SIGTERM, 2 if it cannot start.

    Example: eval "$(pulumi-hosting emulator --export --state account.db)"; pulumi-hosting doctor
    """

    if export:
        _export(**context.params)
        return
    listener = _listen(host, port)
    time = Clock(manual=clock == "manual", start=now)
    origin = "" if now is not None and state is None else None
    try:
        if account is not None:
            from pulumi_hosting.emulator.control.account_file import preparation  # a tenth of the start

            options["prepare"] = preparation(account)
        if profile is not None:
            options |= _behaviour(profile, options["dialect"])
        state_file, store = open_state(state, time) if state is not None else (None, None)
        core = Core(clock=time, loaded=store, persistence=state_file, origin=origin, **options)
    except UnreadableStateFile as error:
        _fail(str(error))
    if log:
        core.show_request = _log
    serve(core, listener, host, allow_host, tls)


def _behaviour(profile: Path, dialect: str | None) -> dict[str, Any]:
    """The dialect, unless an option sets it, and the behaviour variants of a profile."""
    try:
        given = json.loads(profile.read_text("utf-8"))
        given |= {"dialect": dialect} if dialect else {}
        body = parsed(ServiceBody, ServiceBody.model_validate, given)
        return {name: value for name, value in body.given().items() if name in ("dialect", "readings")}
    except (OSError, ValueError, TypeError, ControlError) as error:
        _fail(f"cannot use the profile {profile}: {error}. Next: write it with `certify --save`")


def _log(line: str) -> None:
    with suppress(OSError):  # a terminal that was closed
        click.echo(line, err=True)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024
        )
    except OSError as error:
        _fail(f"cannot listen on {host} port {port}: {error.strerror or error}. Next: another --port, or 0")


def _fail(message: str) -> NoReturn:
    click.echo(f"pulumi-hosting emulator: {message}", err=True)
    sys.exit(2)


def serve(
    core: Core, listener: socket.socket, host: str, allow_host: tuple[str, ...], tls: tuple[str, str] | None
) -> None:
    """Serve until SIGINT or SIGTERM. Prints the ready line."""
    from pulumi_hosting.emulator.asgi import server_of  # a tenth of the start, and --help does not need it

    number = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    origin = f"{'https' if tls else 'http'}://{shown}:{number}"
    core.announce(f"{origin}/v1", f"{origin}/_control", os.getpid())
    names = {host_name(host), *allow_host}
    server = server_of(core, names, lambda: print(json.dumps(core.ready_line), flush=True), tls)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    # uvicorn raises the signal again after a clean shutdown; ignored here, so that the exit code is 0.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    server.run(sockets=[listener])


# --- --export: an emulator that goes on in the background, and its address for a shell


def _export(
    *, export: bool, log: bool, routes: Mapping[str, str], now: float | None, **options: object
) -> None:
    """Start an emulator in a process of its own, which outlives this one and its terminal; print where it is.

    From then on it has no standard output, and standard error only with ``log``: a shell that captures the
    output does not wait for it. If it ends before it is ready, this process ends with its exit code.
    """
    options |= {"webhook_route": routes, "now": format_timestamp(now)}
    command = [*command_line(options), *(["--log"] if log else [])]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if log else subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        emulator = wait_until_ready(process)
    except NotStarted:
        click.echo(process.communicate()[1] or "", err=True, nl=False)
        sys.exit(process.returncode)
    click.echo(exports(emulator))
    words = f"the emulator runs in process {emulator.pid}. Next: kill $HOSTING_EMULATOR_PID to end it"
    click.echo(words, err=True)


def exports(emulator: Running) -> str:
    """Commands for a POSIX shell that set the variables of every program to this emulator.

    >>> print(exports(Running("u", "c", "", "k", "t", 7)))
    export HOSTING_API_KEY=k
    export HOSTING_BASE_URL=u
    export HOSTING_EMULATOR_CONTROL_URL=c
    export HOSTING_EMULATOR_PID=7
    export HOSTING_EMULATOR_TEST_KEY=t
    """
    variables = {
        "HOSTING_API_KEY": emulator.live_key,
        "HOSTING_BASE_URL": emulator.base_url,
        "HOSTING_EMULATOR_CONTROL_URL": emulator.control_url,
        "HOSTING_EMULATOR_PID": emulator.pid,
        "HOSTING_EMULATOR_TEST_KEY": emulator.test_key,
    }
    return "\n".join(f"export {name}={shlex.quote(str(value))}" for name, value in variables.items())
