"""One function per operation, named like it; the public functions of these modules are the handlers, so none can be forgotten."""

from collections.abc import Callable, Mapping
from inspect import isfunction
from types import ModuleType

from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.handlers import (
    actions,
    addresses,
    balance,
    domains,
    invoices,
    keys,
    meta,
    offers,
    orders,
    servers,
    ssh_keys,
    webhooks,
)
from pulumi_hosting.emulator.webhooks import Outbound
from pulumi_hosting.emulator.wire import Answer

Handler = Callable[[Call], Answer | Outbound]


def _functions(module: ModuleType) -> dict[str, Handler]:
    return {
        name: value
        for name, value in vars(module).items()
        if isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


HANDLERS: Mapping[str, Handler] = {
    name: handler
    for module in (meta, balance, invoices, offers, servers, actions, orders, addresses, ssh_keys, domains, keys, webhooks)
    for name, handler in _functions(module).items()
}
