"""Whose key a client has."""

from weakref import WeakKeyDictionary

from pulumi_hosting.api import models as m
from pulumi_hosting.client.client import Client

_ACCOUNTS: WeakKeyDictionary[Client, m.Me] = WeakKeyDictionary()


def know_account(client: Client, me: m.Me) -> None:
    """Take over what another client with the same key was answered."""
    _ACCOUNTS[client] = me


def account(client: Client) -> m.Me:
    """Whose key this is; read once per client."""
    me = _ACCOUNTS.get(client)
    if me is None:
        me = _ACCOUNTS[client] = client.me()
    return me
