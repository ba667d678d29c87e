"""Whose key a client has."""

import threading
from collections.abc import Callable
from weakref import WeakKeyDictionary

from pulumi_hosting.api import models as m
from pulumi_hosting.client.client import Client

_ACCOUNTS: WeakKeyDictionary[Client, m.Me] = WeakKeyDictionary()
_GUARD = threading.Lock()
_LOCKS: WeakKeyDictionary[Client, threading.Lock] = WeakKeyDictionary()
_ASK: WeakKeyDictionary[Client, Callable[[], m.Me]] = WeakKeyDictionary()


def ask_through(client: Client, ask: Callable[[], m.Me]) -> None:
    """How to find out whose key ``client`` has, where others may know it already."""
    _ASK[client] = ask


def account(client: Client, ask: Callable[[], m.Me] | None = None) -> m.Me:
    """Whose key this is; asked once per client, through ``ask`` where it is given."""
    with _GUARD:
        lock = _LOCKS.setdefault(client, threading.Lock())
    with lock:
        me = _ACCOUNTS.get(client)
        if me is None:
            me = _ACCOUNTS[client] = (ask or _ASK.get(client, client.me))()
        return me
