"""The commands of `pulumi-hosting action`: one for each action, made of the inputs that it declares."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from pulumi_hosting.cli.lazy import CommandGroup, works_in

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
    "server-password": (
        "Reset the root password of a server.",
        "--name web --password-file web.password",
    ),
    "server-reinstall": (
        "Install a server again. ERASES ITS DISK.",
        "--name web --erase web --os debian-12 --password-file web.password",
    ),
    "server-renew": (
        "Pay a server further ahead, until a date. Charges.",
        "--name web --until 2030-01-31 --max-charge 10.00",
    ),
    "server-restart": ("Restart a server.", "--name web"),
    "webhook-redeliver": ("Queue dead deliveries of a webhook subscription again.", "--id 80001"),
    "webhook-test": ("Send a ping to a webhook subscription.", "--id 80001"),
}
"""Each command: its line in the list, and the options of its example. The rest is read from the action when
it is called."""


class ActionGroup(CommandGroup):
    """Makes a command when it is called: the list of them loads no client."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(ACTIONS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ACTIONS:
            return None
        from pulumi_hosting.actions import ACTIONS as KNOWN

        return _command(cmd_name, KNOWN[cmd_name.replace("-", "_")])

    def line(self, ctx: click.Context, name: str) -> str:
        return ACTIONS[name][0]


@click.group(cls=ActionGroup)
def action() -> None:
    """Do one thing to what is on the account: renew, pay, restart, reset a password.

    It says what would happen and what it charges, and asks before it does it. Run again, an action does and
    charges nothing twice. The account is that of HOSTING_API_KEY at HOSTING_BASE_URL.

    Example: pulumi-hosting action server-renew --name web --until 2030-01-31 --max-charge 10.00
    """


def _command(name: str, one: Any) -> click.Command:
    from pulumi_hosting.schema.fields import fields

    given = [field for field in fields(one.Inputs) if not field.secret]
    options: list[click.Parameter] = [
        click.Option(
            [f"--{field.name.replace('_', '-')}", field.name],
            required=field.required,
            multiple=field.type.kind == "array",
            metavar="TEXT",
            help=field.description.replace("`", ""),
        )
        for field in given
    ]
    if one.makes_password:
        options.append(
            click.Option(
                ["--password-file", "password_file"],
                required=True,
                type=click.Path(dir_okay=False),
                help="A new file for the new password. It is shown nowhere else.",
            )
        )
    if one.charges:
        help = "Refuse to charge more than this (decimal, in the account's currency)."
        options.append(click.Option(["--max-charge", "max_charge"], metavar="AMOUNT", help=help))
    options += [
        click.Option(["--preview-only"], is_flag=True, help="Say what would happen, and do nothing."),
        click.Option(["--yes", "-y"], is_flag=True, help="Do not ask."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."),
    ]
    work = works_in("pulumi_hosting.cli.run_action:run")(_declared)
    return click.Command(name, callback=partial(work, kind=one.kind), params=options, help=_help(name, one))


def _declared() -> None:
    pass


def _help(name: str, one: Any) -> str:
    line, example = ACTIONS[name]
    scopes = ", ".join(one.scopes) or "none"
    return (
        f"{line}\n\nScopes of the key: {scopes}. Exit codes: 0 when it is done or there is nothing "
        "to do, 1 when it failed or was refused, 2 for options that cannot be used."
        f"\n\nExample: pulumi-hosting action {name} {example}"
    )
