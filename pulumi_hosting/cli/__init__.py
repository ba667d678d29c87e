"""The command line ``pulumi-hosting``: ``commands`` declares it, and each command has a file for its work."""

import os
import sys

from pulumi_hosting.installation import install_extras

try:
    import click
except ImportError:  # pragma: no cover - the base installation is the client alone
    step = install_extras("pulumi", "emulator")
    sys.exit(f"pulumi-hosting: the command line is an extra. Next: {step}")

from pulumi_hosting.cli.lazy import Command, LazyGroup  # needs click

_COMMANDS = "pulumi_hosting.cli.commands"
COMMANDS = {
    "audit": Command(_COMMANDS, "audit", "List what is on the account and in no stack and no playbook."),
    "cost": Command(
        _COMMANDS,
        "cost",
        "Say what the changes of a preview cost, now and per month.",
    ),
    "doctor": Command(_COMMANDS, "doctor", "Check key, account, service and installation."),
    "emulator": Command(
        "pulumi_hosting.emulator.cli", "emulator", "Serve the whole API on this machine.", ("emulator",)
    ),
    "import": Command(
        _COMMANDS,
        "import_account",
        "Write everything on the account as a program or a playbook.",
    ),
    "offline": Command(
        "pulumi_hosting.cli.offline",
        "offline",
        "Run a Pulumi program without Pulumi's CLI, for trying and testing.",
        ("pulumi",),
    ),
    "plugin": Command(_COMMANDS, "plugin", "Install Pulumi's plugin for programs in any language."),
    "recover": Command(
        _COMMANDS,
        "recover",
        "Say what a crashed run left unfinished, and what resolves it.",
    ),
    "rehearse": Command(
        _COMMANDS,
        "rehearse",
        "Run a Pulumi program through its life against a fresh emulator.",
    ),
    "validate": Command(
        _COMMANDS,
        "validate",
        "Name all mistakes of a Pulumi program at once, without an account.",
        ("pulumi", "emulator"),
    ),
    "webhook": Command(_COMMANDS, "webhook", "Receive webhooks on this machine."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pulumi-hosting", message="%(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Tools of the provider for hosting companies with the Hosting Client API v1.

    Commands read the account of HOSTING_API_KEY at HOSTING_BASE_URL.

    Example: pulumi-hosting doctor
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False  # of every command
