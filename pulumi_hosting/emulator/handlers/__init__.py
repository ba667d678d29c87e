"""One function per operation, named like it; the public functions of these modules are the handlers, so none can be forgotten."""

from collections.abc import Callable, Mapping
from inspect import isfunction
from types import ModuleType

from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.handlers import (
    addresses,
    api_keys,
    balance,
    catalog,
    domains,
    invoices,
    orders,
    server_actions,
    servers,
    service,
    ssh_keys,
    webhooks,
)
from pulumi_hosting.emulator.messages import Response
from pulumi_hosting.emulator.webhook_delivery import Outbound

Handler = Callable[[Call], Response | Outbound]


def _functions(module: ModuleType) -> dict[str, Handler]:
    return {
        name: value
        for name, value in vars(module).items()
        if isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


HANDLERS: Mapping[str, Handler] = {
    name: handler
    for module in (service, balance, invoices, catalog, servers, server_actions, orders, addresses, ssh_keys, domains, api_keys, webhooks)
    for name, handler in _functions(module).items()
}
