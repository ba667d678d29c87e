"""The list of `pulumi-hosting action`: one command for each action, made when it is called."""

from collections.abc import Mapping

import click

from pulumi_hosting.cli.lazy import Command, LazyGroup

ACTIONS: Mapping[str, tuple[str, str]] = {
    "api-key-revoke": ("Revoke the API key that makes the call, for good.", "--key-id 7"),
    "balance-topup": (
        "Ask for a top-up of the balance, and print its payment link.",
        "--amount 50.00 --balance-below 20.00 --gateway card",
    ),
    "domain-renew": (
        "Renew a domain until a date. Charges.",
        "--name example.com --until 2030-01-31 --max-charge 20.00",
    ),
    "invoice-pay": ("Pay an invoice from the balance. Charges.", "--id 40002 --max-charge 10.00"),
    "invoice-payment-link": ("Print a link to pay an invoice through a gateway.", "--id 40002"),
    "server-password": ("Reset the root password of a server.", "--name web --password-file web.password"),
    "server-reinstall": (
        "Reinstall a server. ERASES ITS DISK.",
        "--name web --erase web --os debian-12 --password-file web.password",
    ),
    "server-renew": (
        "Renew a server until a date. Charges.",
        "--name web --until 2030-01-31 --max-charge 10.00",
    ),
    "server-restart": ("Restart a server.", "--name web"),
    "webhook-redeliver": ("Queue dead deliveries of a webhook subscription again.", "--id 80001"),
    "webhook-test": ("Send a ping to a webhook subscription.", "--id 80001"),
}
"""Each command: its line in the list, and the options of its example. The rest is read from the action when
it is called."""


@click.group(
    cls=LazyGroup,
    lazy={
        name: Command("pulumi_hosting.cli.run_action:command", line, arguments=(name, line, example))
        for name, (line, example) in ACTIONS.items()
    },
)
def action() -> None:
    """Act on one object of the account: renew, pay, restart, reset a password.

    Each action says what it will do and charge, then asks. If you run it again, it does and charges nothing
    twice. It uses the account of HOSTING_API_KEY at HOSTING_BASE_URL.

    Example: pulumi-hosting action server-renew --name web --until 2030-01-31 --max-charge 10.00
    """
