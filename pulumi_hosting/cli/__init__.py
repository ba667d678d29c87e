"""The command line ``pulumi-hosting``: ``commands`` declares it, and each command has a file for its work."""

import sys

from pulumi_hosting.installation import install_extras

try:
    import click as click
except ImportError:  # pragma: no cover - the base installation is the client alone
    step = install_extras("pulumi", "emulator")
    sys.exit(f"pulumi-hosting: the command line is an extra. Next: {step}")

from pulumi_hosting.cli.commands import main as main  # needs click
