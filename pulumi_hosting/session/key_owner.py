"""Whose key a client has."""

from collections.abc import Callable

from pulumi_hosting.api import models as m
from pulumi_hosting.client.client import Client


def ask_through(client: Client, ask: Callable[[], m.Me]) -> None:
    """How to find out whose key ``client`` has, where others may know it already."""
    client.key_owner.ask = ask


def account(client: Client, ask: Callable[[], m.Me] | None = None) -> m.Me:
    """Whose key this is; asked once per client, through ``ask`` where it is given."""
    return client.key_owner.get(ask)
